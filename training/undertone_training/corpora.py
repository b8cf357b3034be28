"""
Readers of labelled recordings. Each returns clips of 16 kHz mono.

kinds
    shards    NAME.csv lists the clips, NAME.bin holds their Opus packets (needs libopus)
    ravdess   the folder of RAVDESS as published: Actor_01/03-01-05-01-02-01-12.wav
    cremad    the folder of CREMA-D as published: AudioWAV/1001_DFA_ANG_XX.wav
    csv       any folder with a CSV of path,speaker,emotion
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import opus
from .frontend import Array
from .labels import CREMAD_VOTES, EMOTIONS, emotion_index
from .wav import read_wav

RAVDESS_EMOTIONS = {
    "01": "neutral",
    "02": "calm",
    "03": "happy",
    "04": "sad",
    "05": "angry",
    "06": "fear",
    "07": "disgust",
    "08": "surprise",
}
CREMAD_EMOTIONS = {"ANG": "angry", "DIS": "disgust", "FEA": "fear", "HAP": "happy", "NEU": "neutral", "SAD": "sad"}


class CorpusError(ValueError):
    """A corpus cannot be read; the message names the file and line."""


@dataclass(frozen=True)
class Clip:
    """One labelled recording."""

    corpus: str
    speaker: str
    emotion: int
    name: str
    source: tuple[Any, ...]  # what load() needs: (reader, file, ...)
    votes: tuple[float, ...] | None = None  # share of listeners for each of EMOTIONS
    part: str = ""  # a part of the corpus with figures of its own, such as songs


def load(clip: Clip) -> Array:
    """The samples of one clip, int16."""
    reader, path, *rest = clip.source
    if reader == "opus":
        return opus.read_clip(path, *rest)
    return read_wav(path)


def read_corpus(name: str, kind: str, path: str | Path) -> list[Clip]:
    """All clips of one corpus, in a stable order."""
    readers = {"shards": _shards, "ravdess": _ravdess, "cremad": _cremad, "csv": _table}
    if kind not in readers:
        raise CorpusError(f"corpus '{name}': unknown kind '{kind}' (known: {', '.join(readers)})")
    path = Path(path)
    if not path.exists():
        raise CorpusError(f"corpus '{name}': no such folder: {path}")
    clips = list(readers[kind](name, path))
    if not clips:
        raise CorpusError(f"corpus '{name}': no clip found in {path}")
    return clips


def _rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    if not path.is_file():
        raise CorpusError(f"no such file: {path}")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [c for c in needed if c not in (reader.fieldnames or [])]
        if missing:
            raise CorpusError(f"{path}: missing column {', '.join(missing)}")
        for number, row in enumerate(reader, 2):
            yield f"{path}:{number}", row


def _shards(name: str, folder: Path) -> Iterator[Clip]:
    data = folder / f"{name}.bin"
    if not data.is_file():
        raise CorpusError(f"corpus '{name}': no such file: {data}")
    for where, row in _rows(folder / f"{name}.csv", ("speaker", "emotion", "offset", "length")):
        source = ("opus", str(data), int(row["offset"]), int(row["length"]))
        part = "song" if row.get("corpus", "").endswith("-song") else ""
        yield Clip(
            name,
            row["speaker"],
            emotion_index(row["emotion"], where),
            row.get("name") or row.get("path") or where,
            source,
            _votes(row.get("votes"), where),
            part,
        )


def _votes(text: str | None, where: str) -> tuple[float, ...] | None:
    if not text:
        return None
    try:
        counts = [int(n) for n in text.split("/")]
    except ValueError:
        counts = []
    if len(counts) != len(CREMAD_VOTES):
        raise CorpusError(f"{where}: votes must be {len(CREMAD_VOTES)} numbers, not '{text}'")
    if sum(counts) == 0:
        return None
    shares = [0.0] * len(EMOTIONS)
    for emotion, count in zip(CREMAD_VOTES, counts):
        shares[EMOTIONS.index(emotion)] = count / sum(counts)
    return tuple(shares)


def _ravdess(name: str, folder: Path) -> Iterator[Clip]:
    for path in sorted(folder.rglob("*.wav")):
        fields = path.stem.split("-")
        if len(fields) != 7 or fields[2] not in RAVDESS_EMOTIONS:
            raise CorpusError(f"{path}: not a RAVDESS file name")
        yield Clip(
            name,
            f"rav{fields[6]}",
            emotion_index(RAVDESS_EMOTIONS[fields[2]]),
            path.stem,
            ("wav", str(path)),
            None,
            "song" if fields[1] == "02" else "",
        )


def _cremad(name: str, folder: Path) -> Iterator[Clip]:
    for path in sorted(folder.rglob("*.wav")):
        fields = path.stem.split("_")
        if len(fields) != 4 or fields[2] not in CREMAD_EMOTIONS:
            raise CorpusError(f"{path}: not a CREMA-D file name")
        yield Clip(name, f"cre{fields[0]}", emotion_index(CREMAD_EMOTIONS[fields[2]]), path.stem, ("wav", str(path)))


def _table(name: str, folder: Path) -> Iterator[Clip]:
    tables = [folder] if folder.is_file() else sorted(folder.glob("*.csv"))
    for table in tables:
        for where, row in _rows(table, ("path", "speaker", "emotion")):
            path = table.parent / row["path"]
            if not path.is_file():
                raise CorpusError(f"{where}: no such file: {path}")
            if not row["speaker"].strip():
                raise CorpusError(f"{where}: no speaker given; the split into training and validation needs one")
            yield Clip(name, row["speaker"], emotion_index(row["emotion"], where), row["path"], ("wav", str(path)))
