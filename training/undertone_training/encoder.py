"""
The pretrained speech encoder: Whisper's log-mel front end, its convolutions and its transformer blocks.

Attention has a plain form beside the fused one, and only long-standing PyTorch calls are used, so that the same code
trains on a current GPU build and runs on the old CPU builds of Linux distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .frontend import (
    FFT,
    HEAD_WIDTH,
    HOP,
    MAX_POSITIONS,
    MELS,
    SILENCE_RMS,
    TARGET_RMS,
    Array,
    dft_kernels,
    mel_filters,
    noise_bed,
    ood_block,
)
from .quantise import RoundedConv, RoundedLinear


class LogMel(nn.Module):
    """Raw samples [batch, n] -> Whisper's log-mel spectrogram [batch, 80, n / 160], whatever the loudness."""

    kernels: Tensor
    bands: Tensor
    bed: Tensor

    def __init__(self, *, bed: bool = False) -> None:
        super().__init__()
        self.register_buffer("kernels", torch.from_numpy(dft_kernels()), persistent=False)
        self.register_buffer("bands", torch.from_numpy(mel_filters()), persistent=False)
        noise = noise_bed() if bed else np.zeros(MELS, np.float32)
        self.register_buffer("bed", torch.from_numpy(noise)[:, None], persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        """Scale to one loudness, then short-time Fourier transform, mel bands and logarithm."""
        samples = samples - samples.mean(1, keepdim=True)
        rms = samples.pow(2).mean(1, keepdim=True).sqrt()
        samples = samples * (TARGET_RMS / rms.clamp(min=SILENCE_RMS))
        padded = F.pad(samples[:, None], (FFT // 2, FFT // 2), mode="reflect").squeeze(1)
        # One product over overlapping frames: the same as a convolution, and many times faster on a GPU.
        spectrum = torch.matmul(padded.unfold(1, FFT, HOP)[:, :-1], self.kernels.squeeze(1).T)
        real, imaginary = spectrum.transpose(1, 2).chunk(2, dim=1)
        mel = torch.matmul(self.bands, real * real + imaginary * imaginary) + self.bed
        log = torch.log(mel.clamp(min=1e-10)) * (1 / math.log(10.0))
        floor = log.amax(dim=(1, 2), keepdim=True) - 8.0
        return (torch.maximum(log, floor) + 4.0) / 4.0


class Block(nn.Module):
    """One pre-norm transformer block. Query, key and value are one product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = RoundedLinear(width, 3 * width), RoundedLinear(width, width)
        self.fc1, self.fc2 = RoundedLinear(width, 4 * width), RoundedLinear(4 * width, width)

    def attend(self, x: Tensor) -> Tensor:
        """Self-attention over all frames."""
        batch, frames, width = x.shape
        qkv = self.qkv(x).view(batch, frames, 3, self.heads, HEAD_WIDTH).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        if hasattr(F, "scaled_dot_product_attention"):  # a fused kernel, where this PyTorch has it
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = torch.matmul(q * HEAD_WIDTH**-0.5, k.transpose(2, 3))
            mixed = torch.matmul(scores.softmax(-1), v)
        return self.out(mixed.transpose(1, 2).reshape(batch, frames, width))

    def forward(self, x: Tensor) -> Tensor:
        """Attention, then the feed-forward part."""
        x = x + self.attend(self.ln1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


def halve(x: Tensor) -> Tensor:
    """Means of neighbouring frames: [batch, frames, width] -> half the frames (an odd last one is dropped)."""
    frames = x.shape[1] // 2
    return x[:, : frames * 2].reshape(x.shape[0], frames, 2, x.shape[2]).mean(2)


class States(NamedTuple):
    """What the encoder made of a batch."""

    mixed: Tensor  # [batch, frames, width]: weighted sum of the states after the convolutions and after every block
    feature: Tensor  # [batch, width]: mean over time of a late state, for the out-of-distribution score


class Encoder(nn.Module):
    """
    Convolutions, positions and blocks; the frame rate halves after the blocks named in `halve_after`.

    0 means the convolutions. Emotion is slow and needs no 20 ms grid, and every halving makes the blocks
    after it twice as cheap.
    """

    def __init__(self, width: int, layers: int, halve_after: Sequence[int] = ()) -> None:
        super().__init__()
        self.width = width
        self.halve_after = tuple(halve_after)
        self.conv1 = nn.Conv1d(MELS, width, 3, padding=1)
        self.conv2 = RoundedConv(width, width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.zeros(MAX_POSITIONS, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, mel: Tensor, weights: Tensor) -> States:
        """Halving is linear, so the running sum is halved with the state instead of each state separately."""
        x = F.gelu(self.conv1(mel))
        x = F.gelu(self.conv2(x)).transpose(1, 2)
        x = x + self.positions[: x.shape[1]]
        mixed = x * weights[0]
        late = x
        for number in range(len(self.blocks) + 1):
            if number > 0:
                x = self.blocks[number - 1](x)
                mixed = mixed + x * weights[number]
            if number == ood_block(len(self.blocks)):
                late = x
            if number in self.halve_after:
                x, mixed = halve(x), halve(mixed)
        return States(mixed, late.float().mean(1))


def pretrained(path: str | Path, layers: int, halve_after: Sequence[int] = ()) -> Encoder:
    """An encoder with the weights of a Whisper encoder kept as a .npz of numpy arrays."""
    arrays = read_arrays(path)
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    encoder = Encoder(len(arrays["conv1.bias"]), layers, halve_after)
    state = {f"{c}.{p}": weights[f"{c}.{p}"] for c in ("conv1", "conv2") for p in ("weight", "bias")}
    state["positions"] = weights["pos"][:MAX_POSITIONS]
    for i in range(layers):
        old, new = f"layers.{i}.", f"blocks.{i}."
        if f"{old}q.weight" not in weights:
            raise FileNotFoundError(f"{path} has only {i} layers; the recipe asks for {layers}")
        state[new + "qkv.weight"] = torch.cat([weights[f"{old}{n}.weight"] for n in "qkv"])
        q, v = weights[old + "q.bias"], weights[old + "v.bias"]
        state[new + "qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
        for ours, theirs in (("out", "o"), ("fc1", "fc1"), ("fc2", "fc2"), ("ln1", "ln1"), ("ln2", "ln2")):
            for part in ("weight", "bias"):
                state[f"{new}{ours}.{part}"] = weights[f"{old}{theirs}.{part}"]
    encoder.load_state_dict(state, strict=False)  # the ranges of the roundings are not pretrained
    return encoder


def read_arrays(path: str | Path) -> dict[str, Array]:
    """All arrays as float32. A matrix W may be stored in 8 bits as `W|q`, `W|s` and `W|z`: W = (q - z) * s."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such encoder: {path}")
    with np.load(path) as file:
        arrays = {name: file[name].astype(np.float32) for name in file.files}
    for name in [n.removesuffix("|q") for n in arrays if n.endswith("|q")]:
        quantised, scale, zero = (arrays.pop(f"{name}|{part}") for part in "qsz")
        arrays[name] = (quantised - zero) * scale
    return arrays
