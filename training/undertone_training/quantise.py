"""Training with the rounding that the shipped int8 products have, so that the shipped graph answers like the float one."""
import torch
from torch import nn
from torch.nn import functional as F

from .frontend import WEIGHT_LEVELS


def straight_through(x, rounded):
    """The value of `rounded`, the gradient of `x`."""
    return x + (rounded - x).detach()


def round_weight(weight):
    flat = weight.flatten(1)
    scale = flat.detach().abs().amax(1).clamp(min=1e-8) / WEIGHT_LEVELS
    scale = scale.view(-1, *[1] * (weight.dim() - 1))
    return straight_through(weight, torch.round(weight / scale) * scale)


class Rounding(nn.Module):
    """Sits before a product: first watches the range of what comes in, then rounds to 8 bits within it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))
        self.active, self.watching = False, False

    def watch(self, x):
        """Widens the range to hold all but a few in a hundred thousand of the values seen."""
        flat = x.detach().float().flatten()
        few = max(1, len(flat) // 50_000)
        self.low.copy_(torch.minimum(self.low, -torch.topk(-flat, few).values[-1]))
        self.high.copy_(torch.maximum(self.high, torch.topk(flat, few).values[-1]))

    @staticmethod
    def rounded(x, low, high):
        scale = (high - low) / 255
        zero = torch.round(-low / scale).clamp(0, 255)
        level = torch.round(x / scale + zero).clamp(0, 255)
        return (level - zero) * scale

    def forward(self, x):
        if self.watching:
            self.watch(x)
        if not self.active:
            return x
        rounded = self.rounded(x.float(), self.low, self.high).to(x.dtype)
        # Outside the range the gradient stops, as the value does.
        kept = torch.maximum(torch.minimum(x, self.high.to(x.dtype)), self.low.to(x.dtype))
        return straight_through(kept, rounded)


class RoundedLinear(nn.Linear):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.rounding = Rounding()

    def forward(self, x):
        x = self.rounding(x)
        return F.linear(x, round_weight(self.weight) if self.rounding.active else self.weight, self.bias)


class RoundedConv(nn.Conv1d):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.rounding = Rounding()

    def forward(self, x):
        x = self.rounding(x)
        weight = round_weight(self.weight) if self.rounding.active else self.weight
        return F.conv1d(x, weight, self.bias, self.stride, self.padding)


def roundings(model):
    return {name[: -len(".rounding")]: m for name, m in model.named_modules() if isinstance(m, Rounding)}


def set_mode(model, watching, active):
    for rounding in roundings(model).values():
        rounding.watching, rounding.active = watching, active


def widen(model, others):
    """Makes room in a model's ranges for all that others saw."""
    for other in others:
        for mine, theirs in zip(roundings(model).values(), roundings(other).values()):
            mine.low.copy_(torch.minimum(mine.low, theirs.low))
            mine.high.copy_(torch.maximum(mine.high, theirs.high))


def ranges(model):
    """name of the product -> (low, high), what export needs."""
    return {name: (float(r.low), float(r.high)) for name, r in roundings(model).items()}
