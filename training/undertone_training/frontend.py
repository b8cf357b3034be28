"""Constants and tables that training and export share: sizes, Fourier kernels, mel bands. Needs only numpy."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

SAMPLE_RATE = 16000
HEAD_WIDTH = 64  # of every Whisper encoder
FFT, HOP, MELS = 400, 160, 80
# Bands above this are left empty: resampling to 16 kHz removes them, and a recording made at 16 kHz, which still has
# them, must get the same answer.
HIGHEST_HZ = 7200.0
MAX_POSITIONS = 500  # 10 s at the 50 frames a second that follow the convolutions


def ood_block(layers: int) -> int:
    """The block whose output the out-of-distribution score looks at: the last but one."""
    return max(1, layers - 1)


def mel_filters(n_fft: int = FFT, n_mels: int = MELS, rate: int = SAMPLE_RATE) -> Array:
    """Slaney-style mel bands: linear below 1 kHz, logarithmic above, each of unit area."""
    linear_step, break_hz = 200.0 / 3, 1000.0
    break_mel, log_step = break_hz / linear_step, math.log(6.4) / 27.0

    def to_mel(hz: float) -> float:
        return hz / linear_step if hz < break_hz else break_mel + math.log(hz / break_hz) / log_step

    mels = np.linspace(0.0, to_mel(rate / 2), n_mels + 2)
    hz = np.where(mels < break_mel, mels * linear_step, break_hz * np.exp(log_step * (mels - break_mel)))
    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    rising = (bins[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    falling = (hz[2:, None] - bins[None]) / (hz[2:] - hz[1:-1])[:, None]
    bank = np.maximum(0, np.minimum(rising, falling)) * (2.0 / (hz[2:] - hz[:-2]))[:, None]
    bank[hz[2:] > HIGHEST_HZ] = 0
    return bank.astype(np.float32)


def noise_bed() -> Array:
    """
    Power of a steady, speech-shaped noise in each mel band, added to every window at its common loudness.

    How quiet the room was tells which corpus a recording is from, and in some (a shy voice needs more gain, and the
    gain lifts the room) which emotion was acted. The bed hides that difference.
    """
    bands = mel_filters()
    area = bands.sum(1)
    centre = bands @ np.linspace(0, SAMPLE_RATE / 2, FFT // 2 + 1) / np.maximum(area, 1e-9)
    bed = SPEECH_POWER * (500.0 / np.maximum(centre, 500.0)) ** SPEECH_SLOPE * 10 ** (-BED_DB / 10)
    return np.where(area > 0, bed, 0).astype(np.float32)


def dft_kernels(n_fft: int = FFT) -> Array:
    """Real and imaginary parts of a Hann-windowed DFT as the kernels of one convolution."""
    n = np.arange(n_fft)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * n / n_fft)
    phase = 2 * np.pi * np.outer(np.arange(n_fft // 2 + 1), n) / n_fft
    kernels = np.concatenate([np.cos(phase), -np.sin(phase)]) * window
    return kernels[:, None].astype(np.float32)


# The loudness every window is brought to, and the one below which it is left alone as silence.
TARGET_RMS, SILENCE_RMS = 0.06, 1e-4

# The average spectrum of speech at that loudness: level up to 500 Hz, then falling 7 dB an octave; and how far below it
# the bed of noise lies.
SPEECH_POWER, SPEECH_SLOPE = 0.14, 2.33
BED_DB = 26.0

# A window counts as full of speech from this share of voiced frames on: talk has pauses of its own.
FULL_SPEECH = 0.6

# 7-bit weights: on x86-64 chips without VNNI two products of an unsigned and a signed byte are added in
# 16 bits, and 255 * 64 * 2 is the most that does not overflow there.
WEIGHT_LEVELS = 63


def quantise_weight(weight: Array) -> tuple[Array, Array]:
    """[out, ...] float -> int8 [out, in] with 7 bits in use, and one scale for each output."""
    flat = weight.reshape(len(weight), -1)
    scale = np.maximum(np.abs(flat).max(1), 1e-8) / WEIGHT_LEVELS
    return np.round(flat / scale[:, None]).astype(np.int8), scale.astype(np.float32)
