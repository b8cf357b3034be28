"""The pretrained speech encoder: Whisper's log-mel front end and its transformer blocks.

Attention is spelled out beside its fused form and only long-standing PyTorch calls are needed, so that the same
code trains on a current GPU build and runs on the old CPU builds that distributions ship.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .frontend import FFT, HEADS, HOP, MAX_POSITIONS, MELS, SILENCE_RMS, TARGET_RMS, WIDTH, dft_kernels, mel_filters, noise_bed
from .quantise import RoundedConv, RoundedLinear

class LogMel(nn.Module):
    """Raw samples [batch, n] -> Whisper's log-mel picture [batch, 80, n / 160], whatever the loudness."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kernels", torch.from_numpy(dft_kernels()), persistent=False)
        self.register_buffer("bands", torch.from_numpy(mel_filters()), persistent=False)
        self.register_buffer("bed", torch.from_numpy(noise_bed())[:, None], persistent=False)

    def forward(self, samples):
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
    """One pre-norm transformer block. q, k and v are one product."""

    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = RoundedLinear(WIDTH, 3 * WIDTH), RoundedLinear(WIDTH, WIDTH)
        self.fc1, self.fc2 = RoundedLinear(WIDTH, 4 * WIDTH), RoundedLinear(4 * WIDTH, WIDTH)

    def attend(self, x):
        batch, frames, _ = x.shape
        qkv = self.qkv(x).view(batch, frames, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        if hasattr(F, "scaled_dot_product_attention"):  # a fused kernel, where this PyTorch has it
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = torch.matmul(q * (WIDTH // HEADS) ** -0.5, k.transpose(2, 3))
            mixed = torch.matmul(scores.softmax(-1), v)
        return self.out(mixed.transpose(1, 2).reshape(batch, frames, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


def halve(x):
    """Means of neighbouring frames: [batch, frames, width] -> half the frames (an odd last one is dropped)."""
    frames = x.shape[1] // 2
    return x[:, : frames * 2].reshape(x.shape[0], frames, 2, x.shape[2]).mean(2)


class Encoder(nn.Module):
    """Convolutions, positions and blocks; after the blocks named in `halve_after` the frame rate halves.

    Emotion is slow: the later blocks need no 20 ms grid, and every halving makes them twice as cheap.
    """

    def __init__(self, layers=6, halve_after=()):
        super().__init__()
        self.halve_after = tuple(halve_after)
        self.conv1 = nn.Conv1d(MELS, WIDTH, 3, padding=1)
        self.conv2 = RoundedConv(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.zeros(MAX_POSITIONS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(layers))

    def forward(self, mel, weights):
        """Log-mel -> the weighted sum of the states after the convolutions and after every block, and the last state.

        Halving is linear, so the running sum is halved along with the state instead of every state apart.
        """
        x = F.gelu(self.conv1(mel))
        x = F.gelu(self.conv2(x)).transpose(1, 2)
        x = x + self.positions[: x.shape[1]]
        mixed = x * weights[0]
        for number in range(len(self.blocks) + 1):
            if number > 0:
                x = self.blocks[number - 1](x)
                mixed = mixed + x * weights[number]
            if number in self.halve_after:
                x, mixed = halve(x), halve(mixed)
        return mixed, x

    def load_pretrained(self, path):
        """Takes the weights of a Whisper encoder kept as a .npz of numpy arrays."""
        with np.load(path) as file:
            weights = {k: torch.from_numpy(file[k].astype(np.float32)) for k in file.files}
        state = {f"{c}.{p}": weights[f"{c}.{p}"] for c in ("conv1", "conv2") for p in ("weight", "bias")}
        state["positions"] = weights["pos"][:MAX_POSITIONS]
        for i in range(len(self.blocks)):
            old, new = f"layers.{i}.", f"blocks.{i}."
            q, k, v = (weights[f"{old}{n}.weight"] for n in "qkv")
            state[new + "qkv.weight"] = torch.cat([q, k, v])
            q, v = weights[old + "q.bias"], weights[old + "v.bias"]
            state[new + "qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
            for ours, theirs in (("out", "o"), ("fc1", "fc1"), ("fc2", "fc2"), ("ln1", "ln1"), ("ln2", "ln2")):
                for part in ("weight", "bias"):
                    state[f"{new}{ours}.{part}"] = weights[f"{old}{theirs}.{part}"]
        self.load_state_dict(state, strict=False)  # the ranges of the roundings are not pretrained
