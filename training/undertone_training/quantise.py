"""Quantisation-aware training: rounds as the shipped int8 products do, so that the graph answers like the model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .frontend import WEIGHT_LEVELS


def straight_through(x: Tensor, rounded: Tensor) -> Tensor:
    """The value of `rounded`, the gradient of `x` (the straight-through estimator)."""
    return x + (rounded - x).detach()


def round_weight(weight: Tensor) -> Tensor:
    """Round to 7 bits with one scale for each output channel."""
    flat = weight.flatten(1)
    scale = flat.detach().abs().amax(1).clamp(min=1e-8) / WEIGHT_LEVELS
    scale = scale.view(-1, *[1] * (weight.dim() - 1))
    return straight_through(weight, torch.round(weight / scale) * scale)


class Rounding(nn.Module):
    """Sits before a product: first observes the range of its inputs, then rounds them to 8 bits within it."""

    low: Tensor
    high: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))
        self.active, self.observing = False, False

    def observe(self, x: Tensor) -> None:
        """Widen the range to hold all but a few in a hundred thousand of the values seen."""
        flat = x.detach().flatten()
        flat = flat[:: max(1, len(flat) // 1_000_000)].float()  # sorting more is slow, and tells no more
        few = max(1, len(flat) // 50_000)
        self.low.copy_(torch.minimum(self.low, -torch.topk(-flat, few).values[-1]))
        self.high.copy_(torch.maximum(self.high, torch.topk(flat, few).values[-1]))

    def rounded(self, x: Tensor) -> Tensor:
        """Round to the 256 levels of the range."""
        scale = (self.high - self.low) / 255
        zero = torch.round(-self.low / scale).clamp(0, 255)
        return (torch.round(x / scale + zero).clamp(0, 255) - zero) * scale

    def forward(self, x: Tensor) -> Tensor:
        """Observe, round or neither, as set_mode says."""
        if self.observing:
            self.observe(x)
        if not self.active:
            return x
        rounded = self.rounded(x.float()).to(x.dtype)
        # Outside the range the gradient stops, as the value does.
        kept = torch.maximum(torch.minimum(x, self.high.to(x.dtype)), self.low.to(x.dtype))
        return straight_through(kept, rounded)


class RoundedLinear(nn.Linear):
    """A dense layer that can round like the shipped graph."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.rounding = Rounding()

    def forward(self, x: Tensor) -> Tensor:
        """Multiply, with rounding where it is on."""
        x = self.rounding(x)
        return F.linear(x, round_weight(self.weight) if self.rounding.active else self.weight, self.bias)


class RoundedConv(nn.Conv1d):
    """A convolution that can round like the shipped graph."""

    def __init__(self, *arguments: int, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.rounding = Rounding()

    def forward(self, x: Tensor) -> Tensor:
        """Convolve, with rounding where it is on."""
        x = self.rounding(x)
        weight = round_weight(self.weight) if self.rounding.active else self.weight
        return F.conv1d(x, weight, self.bias, self.stride, self.padding)


def roundings(model: nn.Module) -> dict[str, Rounding]:
    """Name of each product -> the rounding before it."""
    return {name[: -len(".rounding")]: m for name, m in model.named_modules() if isinstance(m, Rounding)}


def set_mode(model: nn.Module, *, observing: bool, active: bool) -> None:
    """Switch all roundings of a model."""
    for rounding in roundings(model).values():
        rounding.observing, rounding.active = observing, active


def ranges(model: nn.Module) -> dict[str, tuple[float, float]]:
    """Name of each product -> (low, high), what export needs."""
    return {name: (float(r.low), float(r.high)) for name, r in roundings(model).items()}
