"""Predictions on disk, corpus by corpus, so that calibration needs no model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .calibration import Group
from .frontend import Array
from .labels import MODELS
from .metrics import confusion, recalls

KEPT = (*MODELS, "speech", "ood")


def save(folder: Path, corpus: str, truth: Array, said: Mapping[str, Array]) -> None:
    """Keep logits, shares of speech and out-of-distribution scores."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{corpus}.npz", truth=truth, **{k: said[k] for k in KEPT})


def load(folder: Path) -> dict[str, dict[str, Array]]:
    """corpus -> {"truth": ..., "4emotions": logits, ..., "speech": share, "ood": score}"""
    out = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            out[path.stem] = {k: file[k].astype(np.int64 if k == "truth" else np.float64) for k in file.files}
    return out


def groups(said: Mapping[str, Mapping[str, Array]], model: str) -> list[Group]:
    """(truth, logits, speech, score) of each corpus, of the windows whose emotion the model knows."""
    rows = []
    for one in said.values():
        known = one["truth"] < MODELS[model]
        if known.any():
            rows.append((one["truth"][known], one[model][known], one["speech"][known], one["ood"][known]))
    return rows


def mean_uar(folder: Path, model: str = "4emotions") -> float:
    """The mean of the corpora's UARs, so that corpora count the same whatever their size."""
    tables = [confusion(truth, logits.argmax(1), logits.shape[1]) for truth, logits, *_ in groups(load(folder), model)]
    return float(np.mean([np.nanmean(recalls(table)) for table in tables]))


def best_seed(folder: Path) -> Path:
    """Of the runs of one set of weights, the folder of the one with the best mean over its validation speakers."""
    runs = [path for path in sorted(folder.glob("seed-*")) if any((path / "validation").glob("*.npz"))]
    if not runs:
        raise FileNotFoundError(f"{folder} holds no trained model: run the step 'train' first")
    return max(runs, key=lambda path: mean_uar(path / "validation"))
