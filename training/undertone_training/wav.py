"""Reads a wav of any common rate and depth as 16 kHz mono int16, with the standard library and numpy alone."""

from __future__ import annotations

import math
import wave
from pathlib import Path

import numpy as np

from .frontend import SAMPLE_RATE, Array


def read_wav(path: str | Path) -> Array:
    """int16 samples at 16 kHz, channels mixed."""
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate, frames = file.getparams()[:4]
            raw = file.readframes(frames)
    except (wave.Error, EOFError, OSError) as problem:
        raise ValueError(f"{path}: not a readable wav ({problem or 'it ends too early'})") from problem
    if width == 1:
        samples = (np.frombuffer(raw, np.uint8).astype(np.float64) - 128) / 128
    elif width == 2:
        samples = np.frombuffer(raw, "<i2").astype(np.float64) / 2**15
    elif width == 3:
        bytes3 = np.frombuffer(raw, np.uint8)[: len(raw) // 3 * 3].reshape(-1, 3).astype(np.int32)
        values = bytes3[:, 0] | bytes3[:, 1] << 8 | bytes3[:, 2] << 16
        samples = (values - ((values & 0x800000) << 1)) / 2**23
    else:
        samples = np.frombuffer(raw, "<i4").astype(np.float64) / 2**31
    samples = samples[: len(samples) // channels * channels].reshape(-1, channels).mean(1)
    if len(samples) == 0:
        raise ValueError(f"{path}: holds no sound")
    return np.clip(np.round(resample(samples, rate) * 32767), -32768, 32767).astype(np.int16)


def resample(samples: Array, rate: int, target: int = SAMPLE_RATE, half_width: int = 32) -> Array:
    """Windowed-sinc resampling in one go; clips are short."""
    if rate == target:
        return samples
    count = round(len(samples) * target / rate)
    cutoff = min(1.0, target / rate) * 0.97
    reach = math.ceil(half_width / cutoff)
    out = np.empty(count)
    padded = np.concatenate([np.zeros(reach), samples, np.zeros(reach + 1)])
    offsets = np.arange(-reach, reach + 1)
    for begin in range(0, count, 65536):
        position = np.arange(begin, min(count, begin + 65536)) * rate / target
        nearest = np.floor(position).astype(int)
        distance = position[:, None] - (nearest[:, None] + offsets)
        window = np.cos(np.clip(distance / (reach + 1), -1, 1) * np.pi / 2) ** 2
        taps = cutoff * np.sinc(cutoff * distance) * window
        out[begin : begin + len(position)] = (padded[nearest[:, None] + offsets + reach] * taps).sum(1)
    return out
