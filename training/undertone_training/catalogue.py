"""The shipped files: weights on their way, the graph of each set, and catalog.json that describes them."""
import hashlib
import json
import pathlib

import numpy as np
import onnx

from .export import VoiceGraph
from .labels import EMOTIONS, MODELS

VERSION = "1.0.0"


def save_weights(path, state, ranges):
    """Matrices as float16: the graph stores them so, or rounder."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    arrays = {k: v.astype(np.float16 if v.ndim > 1 else np.float32) for k, v in state.items()}
    np.savez(path, **arrays, **{f"range:{k}": np.array(v, np.float32) for k, v in ranges.items()})


def load_weights(path):
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no weights in {path}: run the step 'train' first")
    with np.load(path) as file:
        state = {k: file[k].astype(np.float32) for k in file.files if not k.startswith("range:")}
        ranges = {k[len("range:"):]: tuple(float(x) for x in file[k]) for k in file.files if k.startswith("range:")}
    return state, ranges


def write(recipe, name, models):
    """Writes NAME.onnx and its row in catalog.json to `models`, and the float twin beside the weights."""
    folder = recipe.work / name
    state, ranges = load_weights(folder / "model.npz")
    path = folder / "calibration.json"
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: run the step 'calibrate' first")
    temperatures = json.loads(path.read_text())
    training = recipe.training
    used = [c for c in recipe.corpora if c.name in recipe.weights[name]]
    metadata = {"weights": name, "version": VERSION, "licence": licence(used),
                "corpora": ", ".join(f"{c.name} ({c.licence})" for c in used)}
    models.mkdir(parents=True, exist_ok=True)
    shipped, twin = models / f"{name}.onnx", folder / "float.onnx"
    for target, given in ((shipped, ranges), (twin, None)):
        onnx.save(VoiceGraph(state, training.layers, training.halve_after, given).build(temperatures, metadata), target)
    describe(models, name, used)
    return shipped, twin


def licence(used):
    if all(c.commercial_use for c in used):
        return "Apache-2.0, with attribution of CREMA-D (ODbL 1.0) and EmoGator" if used else "Apache-2.0"
    return "non-commercial research use: CC BY-NC-SA 4.0 and the terms of the corpora in the model card"


def describe(models, name, used):
    """Writes or renews one row of the catalogue."""
    path = models / "catalog.json"
    catalog = json.loads(path.read_text()) if path.is_file() else {"weights": {}}
    content = (models / f"{name}.onnx").read_bytes()
    commercial = all(c.commercial_use for c in used)
    catalog["version"] = VERSION
    catalog["models"] = [{"id": m, "emotions": list(EMOTIONS[:size])} for m, size in MODELS.items()]
    catalog["weights"][name] = {
        "file": f"{name}.onnx",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": licence(used),
        "commercial_use": commercial,
        "summary": f"trained on {', '.join(c.name for c in used)}",
        "figures": {},
    }
    path.write_text(json.dumps(catalog, indent=2) + "\n")


def add_figures(models, name, report):
    """Puts the measured figures into the catalogue's row."""
    path = models / "catalog.json"
    catalog = json.loads(path.read_text())
    catalog["weights"][name]["figures"] = {
        m: {**{k: round(report["all"][m][k], 4) for k in ("uar", "accuracy", "macro_f1", "ece")},
            "split": f"{report['all'][m]['clips']} windows of validation speakers of the training corpora, "
                     "none of them heard in training"}
        for m in MODELS
    }
    path.write_text(json.dumps(catalog, indent=2) + "\n")
