"""Answers kept on disk: what a model said to the windows of each corpus, so that calibration needs no model."""
import pathlib

import numpy as np

from .familiar import VIEWS
from .labels import MODELS


def save(folder, corpus, truth, answers):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{corpus}.npz", truth=truth, **{k: v for k, v in answers.items() if k not in VIEWS})


def load(folder):
    """corpus -> {"truth": ..., "4emotions": logits, ..., "speech": share, "strangeness": ...}"""
    out = {}
    for path in sorted(pathlib.Path(folder).glob("*.npz")):
        with np.load(path) as file:
            out[path.stem] = {k: file[k].astype(np.int64 if k == "truth" else np.float64) for k in file.files}
    return out


def groups(answers, model):
    """(truth, logits, speech, strangeness) of each corpus, of the windows whose emotion the model knows."""
    rows = []
    for one in answers.values():
        known = one["truth"] < MODELS[model]
        if known.any():
            rows.append(tuple(one[key][known] for key in ("truth", model, "speech", "strangeness")))
    return rows
