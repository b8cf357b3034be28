"""The windows that are measured, the same in every run. Needs only numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .corpora import Clip
from .frontend import SAMPLE_RATE, Array
from .pack import Pack

GAP = 0.1


@dataclass
class Windows:
    """Audio of any length, with the clip each window comes from."""

    samples: list[Array]  # of float32 [n], the lengths differ
    clips: list[Clip]  # one for each

    def select(self, wanted: Callable[[Clip], bool]) -> Windows:
        """Return the windows of some clips."""
        return self.rows([i for i, c in enumerate(self.clips) if wanted(c)])

    def rows(self, numbers: list[int]) -> Windows:
        """Return the windows of these numbers."""
        return Windows([self.samples[i] for i in numbers], [self.clips[i] for i in numbers])

    @property
    def truth(self) -> Array:
        """The number of each window's emotion."""
        return np.array([c.emotion for c in self.clips], np.int64)


def laid_end_to_end(pack: Pack, keep: Array, seconds: float = 5.0, most: int | None = None) -> Windows:
    """
    Windows of one length: the clips of one speaker and emotion one after another, a short gap between.

    The last window of a row looks back so that it is full; what is shorter than one window is one window,
    repeated from its beginning. At most `most` windows, evenly chosen.
    """
    size, gap = int(seconds * SAMPLE_RATE), int(GAP * SAMPLE_RATE)
    groups: dict[tuple[str, str, int, str], list[int]] = {}
    for i in np.flatnonzero(keep):
        c = pack.clips[i]
        groups.setdefault((c.corpus, c.speaker, c.emotion, c.part), []).append(i)
    places: list[tuple[list[int], int]] = []
    for rows in groups.values():
        total = sum(int(pack.length[i]) + gap for i in rows)
        starts = list(range(0, max(total, size) - size + 1, size))
        if total - (starts[-1] + size) > size // 2:
            starts.append(total - size)
        places += [(rows, start) for start in starts]
    out = Windows([], [])
    silence, laid, row = np.zeros(gap, np.int16), None, np.zeros(0, np.int16)
    for number in spread(len(places), most):
        rows, start = places[number]
        if rows is not laid:
            laid, row = rows, np.concatenate([piece for i in rows for piece in (pack.audio(i), silence)])
            if len(row) < size:
                row = np.tile(row, -(-size // len(row)))[:size]
        out.samples.append(row[start : start + size].astype(np.float32) / 32768)
        out.clips.append(pack.clips[rows[0]])
    return out


def single_clips(pack: Pack, keep: Array, grid: float = 0.25, longest: float = 10.0) -> Windows:
    """Every clip by itself, its end cut to a grid of lengths so that clips can be measured in batches."""
    out = Windows([], [])
    step = int(grid * SAMPLE_RATE)
    for i in np.flatnonzero(keep):
        audio = pack.audio(i)
        size = max(SAMPLE_RATE, min(len(audio) // step * step, int(longest * SAMPLE_RATE)))
        samples = np.zeros(size, np.float32)
        samples[: min(size, len(audio))] = audio[:size].astype(np.float32) / 32768
        out.samples.append(samples)
        out.clips.append(pack.clips[i])
    return out


def spread(count: int, most: int | None) -> list[int]:
    """At most `most` of the numbers up to `count`, evenly chosen."""
    if most is None or count <= most:
        return list(range(count))
    return [int(i) for i in np.unique(np.linspace(0, count - 1, most).astype(int))]


def thinned(windows: Windows, most: int | None) -> Windows:
    """At most `most` windows, evenly chosen."""
    return windows.rows(spread(len(windows.clips), most))


def by_length(windows: Windows, batch: int) -> Iterator[list[int]]:
    """Index lists of at most `batch` windows of one length."""
    groups: dict[int, list[int]] = {}
    for i, s in enumerate(windows.samples):
        groups.setdefault(len(s), []).append(i)
    for _, rows in sorted(groups.items()):
        for at in range(0, len(rows), batch):
            yield rows[at : at + batch]
