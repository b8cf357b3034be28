"""Conditions to measure under: telephone, babble, loudness. Needs only numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .frontend import SAMPLE_RATE, Array
from .windows import Windows

Condition = Callable[[Array, np.random.Generator], Array]


def telephone(samples: Array, _: object = None) -> Array:
    """8 kHz, 300-3400 Hz, mu-law: a call as it arrives."""
    n = len(samples)
    spectrum = np.fft.rfft(samples)
    hz = np.fft.rfftfreq(n, 1 / SAMPLE_RATE)
    spectrum[(hz < 300) | (hz > 3400)] = 0
    x = np.fft.irfft(spectrum, n)
    # The band is below 4 kHz already: every other sample holds all of it.
    half = mu_law(x[::2])
    back = np.zeros(2 * len(half))
    back[::2] = 2 * half
    spectrum = np.fft.rfft(back[:n] if len(back) >= n else np.pad(back, (0, n - len(back))))
    spectrum[hz > 4000] = 0
    return np.fft.irfft(spectrum, n).astype(np.float32)


def mu_law(x: Array, levels: float = 255.0) -> Array:
    """Eight-bit companding, there and back."""
    y = np.sign(x) * np.log1p(levels * np.minimum(np.abs(x), 1)) / np.log1p(levels)
    y = np.round(y * 127) / 127
    return np.sign(y) * np.expm1(np.abs(y) * np.log1p(levels)) / levels


def babble(voices: Sequence[Array], snr_db: float = 10.0, talkers: int = 6) -> Condition:
    """-> a condition that adds the talk of several of `voices` at a signal-to-noise ratio."""

    def add(samples: Array, generator: np.random.Generator) -> Array:
        total = np.zeros(len(samples))
        for pick in generator.choice(len(voices), talkers):
            voice = np.resize(voices[pick], len(samples)).astype(np.float64)
            total += voice / max(np.sqrt((voice**2).mean()), 1e-4)
        power = (samples.astype(np.float64) ** 2).mean()
        total *= np.sqrt(power * 10 ** (-snr_db / 10) / max((total**2).mean(), 1e-12))
        return (samples + total).astype(np.float32)

    return add


def gain(db: float) -> Condition:
    """-> a condition that plays softer or louder, in the steps of 16 bits."""

    def play(samples: Array, _: object = None) -> Array:
        return (np.round(samples * 10 ** (db / 20) * 32768) / 32768).astype(np.float32)

    return play


def apply(windows: Windows, condition: Condition, seed: int = 11) -> Windows:
    """Do it to every window."""
    generator = np.random.default_rng(seed)
    return Windows([condition(s, generator) for s in windows.samples], windows.clips)
