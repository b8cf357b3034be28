"""One flat file of all clips: read once, kept in the memory of the machine that trains.

samples.i16   all clips end to end, each starting at a multiple of 10 ms
voice.u8      for every 10 ms: does somebody speak?
clips.json    the table of clips
"""
import json
import multiprocessing
import pathlib
from dataclasses import dataclass

import numpy as np

from .corpora import Clip, CorpusError, load
from .progress import Progress

HOP = 160


@dataclass
class Pack:
    samples: np.ndarray  # int16
    voice: np.ndarray  # uint8, one for each HOP samples
    clips: list
    start: np.ndarray
    length: np.ndarray

    def audio(self, i):
        return self.samples[self.start[i] : self.start[i] + self.length[i]]


def voiced(samples, below_peak_db=32.0, longest_gap=30):
    """Which 10 ms steps of a clean clip hold speech: near enough to its loud parts; short pauses belong to it."""
    steps = -(-len(samples) // HOP)
    padded = np.zeros(steps * HOP)
    padded[: len(samples)] = samples
    level = 10 * np.log10((padded.reshape(steps, HOP) ** 2).mean(1) + 1.0)
    flags = level > max(np.percentile(level, 95) - below_peak_db, 8.0)
    spoken = np.flatnonzero(flags)
    for a, b in zip(spoken[:-1], spoken[1:]):
        if b - a <= longest_gap:
            flags[a:b] = True
    return flags.astype(np.uint8)


def _read(clip):
    try:
        samples = load(clip)
    except (ValueError, OSError) as problem:
        return None, str(problem)
    return samples, voiced(samples)


def write(clips, folder, processes=None):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    progress, start = Progress("reading clips", len(clips)), 0
    table = []
    with open(folder / "samples.i16", "wb") as out, open(folder / "voice.u8", "wb") as flags:
        with multiprocessing.Pool(processes) as pool:
            for clip, (samples, voice) in zip(clips, pool.imap(_read, clips, 32)):
                if samples is None:
                    raise CorpusError(voice)
                table.append([clip.corpus, clip.speaker, clip.emotion, clip.name, clip.votes, clip.part, start,
                              len(samples)])
                padded = np.zeros(len(voice) * HOP, np.int16)
                padded[: len(samples)] = samples
                out.write(padded.tobytes())
                flags.write(voice.tobytes())
                start += len(padded)
                progress.step()
    (folder / "clips.json").write_text(json.dumps(table))
    return read(folder)


def read(folder):
    folder = pathlib.Path(folder)
    if not (folder / "clips.json").is_file():
        raise CorpusError(f"{folder} holds no packed clips: run the step 'prepare' first")
    table = json.loads((folder / "clips.json").read_text())
    clips = [Clip(c, s, e, n, (), tuple(v) if v else None, p) for c, s, e, n, v, p, _, _ in table]
    return Pack(
        np.fromfile(folder / "samples.i16", np.int16),
        np.fromfile(folder / "voice.u8", np.uint8),
        clips,
        np.array([row[6] for row in table], np.int64),
        np.array([row[7] for row in table], np.int64),
    )
