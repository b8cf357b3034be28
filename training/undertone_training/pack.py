"""
One flat file of all clips: read once, kept in the memory of the machine that trains.

samples.i16   all clips end to end, each starting at a multiple of 10 ms
voice.u8      1 for every 10 ms of speech
clips.json    the table of clips
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .corpora import Clip, CorpusError, load
from .frontend import HOP, Array
from .progress import Progress


@dataclass
class Pack:
    """All clips, mapped into memory."""

    samples: Array  # int16
    voice: Array  # uint8, one for each HOP samples
    clips: list[Clip]
    start: Array
    length: Array

    def audio(self, i: int) -> Array:
        """Return the samples of one clip."""
        return self.samples[self.start[i] : self.start[i] + self.length[i]]


def voiced(samples: Array, below_peak_db: float = 32.0, longest_gap: int = 30) -> Array:
    """Which 10 ms steps of a clean clip hold speech: near enough to its loud parts; short pauses belong to it."""
    steps = -(-len(samples) // HOP)
    padded = np.zeros(steps * HOP)
    padded[: len(samples)] = samples
    level = 10 * np.log10((padded.reshape(steps, HOP) ** 2).mean(1) + 1.0)
    flags = level > max(np.percentile(level, 95) - below_peak_db, 8.0)
    spoken = np.flatnonzero(flags)
    for a, b in itertools.pairwise(spoken):
        if b - a <= longest_gap:
            flags[a:b] = True
    return flags.astype(np.uint8)


def _read(clip: Clip) -> tuple[Array, Array] | str:
    try:
        samples = load(clip)
    except (ValueError, OSError) as problem:
        return str(problem)
    return samples, voiced(samples)


def write(clips: Sequence[Clip], folder: Path, processes: int | None = None) -> Pack:
    """Decode all clips into one file."""
    folder.mkdir(parents=True, exist_ok=True)
    progress, start = Progress("reading clips", len(clips)), 0
    table = []
    with (
        (folder / "samples.i16").open("wb") as out,
        (folder / "voice.u8").open("wb") as flags,
        multiprocessing.Pool(processes) as pool,
    ):
        for clip, found in zip(clips, pool.imap(_read, clips, 32)):
            if isinstance(found, str):
                raise CorpusError(found)
            samples, voice = found
            row = [clip.corpus, clip.speaker, clip.emotion, clip.name, clip.votes, clip.part, start, len(samples)]
            table.append(row)
            padded = np.zeros(len(voice) * HOP, np.int16)
            padded[: len(samples)] = samples
            out.write(padded.tobytes())
            flags.write(voice.tobytes())
            start += len(padded)
            progress.step()
    (folder / "clips.json").write_text(json.dumps(table), encoding="utf-8")
    return read(folder)


def read(folder: Path) -> Pack:
    """Read what write wrote."""
    if not (folder / "clips.json").is_file():
        raise CorpusError(f"{folder} holds no packed clips: run the step 'prepare' first")
    table = json.loads((folder / "clips.json").read_text(encoding="utf-8"))
    clips = [Clip(c, s, e, n, (), tuple(v) if v else None, p) for c, s, e, n, v, p, _, _ in table]
    return Pack(
        # Mapped, not read: several processes share one copy.
        np.memmap(folder / "samples.i16", np.int16, mode="c"),
        np.memmap(folder / "voice.u8", np.uint8, mode="c"),
        clips,
        np.array([row[6] for row in table], np.int64),
        np.array([row[7] for row in table], np.int64),
    )
