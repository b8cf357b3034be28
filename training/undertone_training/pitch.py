"""A speaker's usual pitch, to separate the figures of men and women where a corpus does not say. Needs only numpy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .frontend import SAMPLE_RATE, Array
from .pack import Pack

FRAME = 1024
WOMEN_FROM = 160.0  # Hz; the neutral speech of men is below, that of women above, with few exceptions


def median_pitch(clips: Iterable[Array]) -> float:
    """Median of the autocorrelation peaks of voiced frames, or nan. clips: int16 arrays."""
    found = []
    shortest, longest = SAMPLE_RATE // 400, SAMPLE_RATE // 65
    for clip in clips:
        wave = clip.astype(np.float64)
        for at in range(0, len(wave) - FRAME, FRAME // 2):
            frame = wave[at : at + FRAME] - wave[at : at + FRAME].mean()
            if frame.std() < 150:
                continue
            spectrum = np.fft.rfft(frame, 2 * FRAME)
            r = np.fft.irfft(spectrum * spectrum.conj())[:FRAME]
            lag = shortest + int(np.argmax(r[shortest:longest]))
            if r[lag] > 0.5 * r[0]:
                found.append(SAMPLE_RATE / lag)
    return float(np.median(found)) if found else float("nan")


def genders(pack: Pack, keep: Array) -> dict[str, str]:
    """speaker -> 'women' or 'men', by the pitch of what they said most calmly (neutral, else all)."""
    spoken: dict[str, list[tuple[bool, int]]] = {}
    for i in np.flatnonzero(keep):
        clip = pack.clips[i]
        spoken.setdefault(clip.speaker, []).append((clip.emotion != 2, i))
    result = {}
    for speaker, rows in spoken.items():
        calm = [i for _, i in sorted(rows)[:12]]
        result[speaker] = "women" if median_pitch([pack.audio(i) for i in calm]) >= WOMEN_FROM else "men"
    return result
