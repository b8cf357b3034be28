"""The windows that figures are measured on: always the same ones. numpy alone."""
from dataclasses import dataclass

import numpy as np

RATE = 16000
GAP = 0.1


@dataclass
class Windows:
    """Sounds in groups of equal length, with the clip rows that say whose they are."""

    samples: list  # of float32 [n], the lengths differ
    clips: list  # of Clip, one for each

    def select(self, wanted):
        rows = [i for i, c in enumerate(self.clips) if wanted(c)]
        return Windows([self.samples[i] for i in rows], [self.clips[i] for i in rows])

    @property
    def truth(self):
        return np.array([c.emotion for c in self.clips], np.int64)


def laid_end_to_end(pack, keep, seconds=5.0):
    """Windows of one length: the clips of one speaker and emotion one after another, a short gap between.

    The last window of a row looks back so that it is full; what is shorter than one window is one window,
    repeated from its beginning.
    """
    size, gap = int(seconds * RATE), np.zeros(int(GAP * RATE), np.int16)
    groups = {}
    for i in np.flatnonzero(keep):
        c = pack.clips[i]
        groups.setdefault((c.corpus, c.speaker, c.emotion, c.part), []).append(i)
    out = Windows([], [])
    for rows in groups.values():
        row = np.concatenate([piece for i in rows for piece in (pack.audio(i), gap)])
        if len(row) < size:
            row = np.tile(row, -(-size // len(row)))[:size]
        starts = list(range(0, len(row) - size + 1, size))
        if len(row) - (starts[-1] + size) > size // 2:
            starts.append(len(row) - size)
        for s in starts:
            out.samples.append(row[s : s + size].astype(np.float32) / 32768)
            out.clips.append(pack.clips[rows[0]])
    return out


def single_clips(pack, keep, grid=0.25, longest=10.0):
    """Every clip by itself, its end cut to a grid of lengths so that clips can be measured in batches."""
    out = Windows([], [])
    step = int(grid * RATE)
    for i in np.flatnonzero(keep):
        audio = pack.audio(i)
        size = max(RATE, min(len(audio) // step * step, int(longest * RATE)))
        samples = np.zeros(size, np.float32)
        samples[: min(size, len(audio))] = audio[:size].astype(np.float32) / 32768
        out.samples.append(samples)
        out.clips.append(pack.clips[i])
    return out


def thinned(windows, most):
    """At most so many windows, evenly chosen."""
    rows = np.unique(np.linspace(0, len(windows.clips) - 1, min(most, len(windows.clips))).astype(int))
    return Windows([windows.samples[i] for i in rows], [windows.clips[i] for i in rows])


def by_length(windows, batch):
    """Index lists of at most `batch` windows of one length."""
    groups = {}
    for i, s in enumerate(windows.samples):
        groups.setdefault(len(s), []).append(i)
    for _, rows in sorted(groups.items()):
        for at in range(0, len(rows), batch):
            yield rows[at : at + batch]
