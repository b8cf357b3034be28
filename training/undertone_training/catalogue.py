"""The shipped files: stored weights, the graph of each set, and catalog.json that describes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .config import Corpus, Recipe
from .frontend import Array, quantise_weight
from .labels import EMOTIONS, MODELS
from .predictions import best_seed

VERSION = "1.1.0"
Ranges = dict[str, tuple[float, float]]


def save_weights(path: Path, state: dict[str, Array], ranges: Ranges) -> None:
    """Store rounded products as the graph does, in 8 bits (`|q`, `|s`), and other matrices as float16."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Array] = {f"range:{k}": np.array(v, np.float32) for k, v in ranges.items()}
    for name, value in state.items():
        if name.removesuffix(".weight") in ranges:
            quantised, arrays[f"{name}|s"] = quantise_weight(value)
            arrays[f"{name}|q"] = quantised.reshape(value.shape)
        else:
            arrays[name] = value.astype(np.float16 if value.ndim > 1 else np.float32)
    np.savez(path, **arrays)


def load_weights(path: Path) -> tuple[dict[str, Array], Ranges]:
    """What save_weights stored, as float32."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights in {path}: run the step 'train' first")
    state, ranges = {}, {}
    with np.load(path) as file:
        for name in file.files:
            if name.startswith("range:"):
                ranges[name.removeprefix("range:")] = (float(file[name][0]), float(file[name][1]))
            elif name.endswith("|q"):
                scale = file[name.removesuffix("q") + "s"]
                quantised = file[name].astype(np.float32)
                state[name.removesuffix("|q")] = quantised * scale.reshape(-1, *[1] * (quantised.ndim - 1))
            elif not name.endswith("|s"):
                state[name] = file[name].astype(np.float32)
    return state, ranges


def write(recipe: Recipe, name: str, models: Path) -> tuple[Path, Path]:
    """Write NAME.onnx and its row in catalog.json to `models`, and the float twin beside the weights."""
    import onnx

    from .export import VoiceGraph

    folder, training = recipe.work / name, recipe.training
    state, ranges = load_weights(best_seed(folder) / "model.npz")
    path = folder / "calibration.json"
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: run the step 'calibrate' first")
    temperatures = json.loads(path.read_text(encoding="utf-8"))
    used = recipe.used_by(name)
    metadata = {
        "weights": name,
        "version": VERSION,
        "licence": licence(used, recipe.licences.get(name)),
        "corpora": ", ".join(f"{c.name} ({c.licence})" for c in used),
    }
    models.mkdir(parents=True, exist_ok=True)
    shipped, twin = models / f"{name}.onnx", folder / "float.onnx"
    for target, given in ((shipped, ranges), (twin, None)):
        graph = VoiceGraph(state, training.halve_after, given, bed=training.bed)
        onnx.save(graph.build(temperatures, metadata), target)
    describe(models, name, used, metadata["licence"])
    return shipped, twin


def licence(used: Sequence[Corpus], given: str | None = None) -> str:
    """Permitted use and attribution of the weights; both follow from their corpora."""
    if not all(c.commercial_use for c in used):
        names = [c.attribution.split(" (")[0] or c.name for c in used if not c.commercial_use]
        return f"{given or 'non-commercial use'}, under the terms of {', '.join(names)} (see the model card)"
    named = " and ".join(f"{c.attribution or c.name} ({c.licence})" for c in used)
    return f"{given or 'commercial use allowed'}, with attribution of {named}"


def describe(models: Path, name: str, used: Sequence[Corpus], terms: str) -> None:
    """Write or renew one row of the catalogue."""
    path = models / "catalog.json"
    catalog: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"weights": {}}
    content = (models / f"{name}.onnx").read_bytes()
    catalog["version"] = VERSION
    catalog["models"] = [{"id": m, "emotions": list(EMOTIONS[:size])} for m, size in MODELS.items()]
    catalog["weights"][name] = {
        "file": f"{name}.onnx",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": terms,
        "commercial_use": all(c.commercial_use for c in used),
        "summary": f"trained on {', '.join(c.name for c in used)}",
        "figures": {},
    }
    path.write_text(json.dumps(catalog, indent=2) + "\n", encoding="utf-8")


def add_figures(models: Path, name: str, report: dict[str, Any]) -> None:
    """Put the measured figures into the catalogue's row."""
    path = models / "catalog.json"
    catalog = json.loads(path.read_text(encoding="utf-8"))
    catalog["weights"][name]["figures"] = {
        m: {
            **{k: round(report["all"][m][k], 4) for k in ("uar", "accuracy", "macro_f1", "ece")},
            "split": f"{report['all'][m]['clips']} windows of validation speakers of the training corpora, "
            "none of them heard in training",
            "new_speakers": by_corpus(report["corpora"], m),
            "never_heard": by_corpus({**report["left_out"], **report["without"]}, m),
        }
        for m in MODELS
    }
    path.write_text(json.dumps(catalog, indent=2) + "\n", encoding="utf-8")


def by_corpus(measured: dict[str, dict[str, Any]], model: str) -> dict[str, float]:
    """Give the UAR of a model in each corpus."""
    return {corpus: round(of_model[model]["uar"], 3) for corpus, of_model in measured.items() if model in of_model}
