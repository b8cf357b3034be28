"""
The steps of the recipe, one command each. All read one recipe file; results go to its `work` folder.

python -m undertone_training prepare                 read all corpora into one packed file
python -m undertone_training train research          one model for each seed
python -m undertone_training leave-one-out research  the same recipe without each corpus in turn
python -m undertone_training calibrate research      temperatures of the probabilities
python -m undertone_training export research         the graph, and its row in the catalogue
python -m undertone_training evaluate research       every figure of the model card
python -m undertone_training card                    the card's pictures and tables
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import calibration, catalogue, config, corpora, labels, pack, pipeline, predictions, splits
from .config import Corpus, Recipe
from .labels import MODELS
from .predict import with_torch

if TYPE_CHECKING:
    from .model import VoiceModel

PROBLEMS = (config.ConfigError, corpora.CorpusError, labels.UnknownEmotionError, splits.SplitError, FileNotFoundError)
SHIPPED = Path(__file__).resolve().parents[2] / "packages/classifier/models"
CARD = Path(__file__).resolve().parents[2] / "docs/model-card"


def best_device() -> str:
    """A GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def prepare(recipe: Recipe, options: argparse.Namespace) -> None:
    """Read all corpora into one packed file."""
    clips = [c for corpus in recipe.corpora for c in corpora.read_corpus(corpus.name, corpus.kind, corpus.path)]
    pipeline.sides(clips, recipe)  # report a wrong split before the long reading
    packed = pack.write(clips, recipe.work / "pack", options.processes)
    hours = packed.length.sum() / 16000 / 3600
    print(f"{len(clips)} clips, {len({c.speaker for c in clips})} speakers, {hours:.2f} h in {recipe.work / 'pack'}")


class Trainer:
    """Trains models on one device and keeps their predictions."""

    def __init__(self, recipe: Recipe, options: argparse.Namespace) -> None:
        from .batches import Voices

        self.recipe, self.name, self.device = recipe, options.weights, options.device or best_device()
        self.voices = Voices(pack.read(recipe.work / "pack"), self.device)

    def train(self, recipe: Recipe, seed: int) -> VoiceModel:
        """Train a model."""
        return pipeline.train_weights(self.voices, recipe, self.name, seed)

    def keep(self, model: VoiceModel, corpus: Corpus, side: str | None, folder: Path) -> None:
        """Keep a model's predictions for one corpus."""
        windows = pipeline.measured_windows(self.voices.pack, self.recipe, corpus, side)
        if windows.clips:
            predictions.save(folder, corpus.name, windows.truth, with_torch(model, windows, self.device))

    def keep_validation(self, model: VoiceModel, recipe: Recipe, folder: Path) -> None:
        """Keep a model's predictions for the validation speakers of its training corpora."""
        for corpus in recipe.used_by(self.name):
            self.keep(model, corpus, "validation", folder / "validation")


def train(recipe: Recipe, options: argparse.Namespace) -> None:
    """Train one model for each seed; the later steps use the best of them."""
    from .quantise import ranges

    trainer = Trainer(recipe, options)
    for seed in [options.seed] if options.seed is not None else recipe.training.seeds:
        folder = recipe.work / options.weights / f"seed-{seed}"
        model = trainer.train(recipe, seed)
        catalogue.save_weights(folder / "model.npz", pipeline.numpy_state(model), ranges(model))
        trainer.keep_validation(model, recipe, folder)
        print(f"seed {seed}: mean UAR of the corpora {predictions.mean_uar(folder / 'validation'):.4f}, 4 emotions")


def leave_one_out(recipe: Recipe, options: argparse.Namespace) -> None:
    """Train again without each corpus in turn."""
    used = recipe.used_by(options.weights)
    if len(used) < 2:
        raise config.ConfigError(f"weights '{options.weights}' use one corpus: there is nothing to leave out")
    trainer = Trainer(recipe, options)
    for corpus in used:
        if options.corpus not in {None, corpus.name}:
            continue
        print(f"without {corpus.name}")
        folder, without = recipe.work / options.weights / "left-out" / corpus.name, recipe.without(corpus.name)
        model = trainer.train(without, recipe.training.seeds[0])
        trainer.keep(model, corpus, None, folder)
        trainer.keep_validation(model, without, folder)


def calibrate(recipe: Recipe, options: argparse.Namespace) -> None:
    """Choose a temperature for each model."""
    chosen = predictions.best_seed(recipe.work / options.weights)
    validation = predictions.load(chosen / "validation")
    folders = left_out_folders(recipe, options.weights)
    left_out = {corpus: said for one in folders for corpus, said in predictions.load(one).items()}
    print(f"{chosen.name} has the best mean UAR")
    result = {}
    for model in MODELS:
        home, away = predictions.groups(validation, model), predictions.groups(left_out, model)
        result[model] = temperature = calibration.choose_temperature(home, away)
        error = calibration.pooled_error(home, temperature)
        print(f"{model}: temperature {temperature:.3f}, calibration error {error:.3f} on validation speakers")
    (recipe.work / options.weights / "calibration.json").write_text(json.dumps(result, indent=2), encoding="utf-8")


def export(recipe: Recipe, options: argparse.Namespace) -> None:
    """Write the graph and its row in the catalogue."""
    for path in catalogue.write(recipe, options.weights, Path(options.models)):
        print(path)


def evaluate(recipe: Recipe, options: argparse.Namespace) -> None:
    """Measure every figure of the model card."""
    import onnxruntime

    from .evaluate import Examination

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    folder = recipe.work / options.weights
    paths = (Path(options.models) / f"{options.weights}.onnx", folder / "float.onnx")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no such graph: {path}: run the step 'export' first")
    shipped, twin = (onnxruntime.InferenceSession(str(p), settings) for p in paths)
    examination = Examination(shipped, pack.read(recipe.work / "pack"), recipe, options.weights, options.most)
    report = examination.report(twin)
    report["without"] = left_out_figures(recipe, options.weights)
    (folder / "figures.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    catalogue.add_figures(Path(options.models), options.weights, report)
    print(json.dumps({m: {k: round(report["all"][m][k], 3) for k in ("uar", "accuracy", "ece")} for m in MODELS}))


def left_out_folders(recipe: Recipe, name: str) -> list[Path]:
    """One for each corpus that was left out."""
    return sorted(path for path in (recipe.work / name / "left-out").glob("*") if path.is_dir())


def left_out_figures(recipe: Recipe, name: str) -> dict[str, dict[str, Any]]:
    """Figures of models on the corpus left out, at temperatures from their own validation speakers."""
    from .metrics import summary

    out: dict[str, dict[str, Any]] = {}
    for folder in left_out_folders(recipe, name):
        validation = predictions.load(folder / "validation")
        for corpus, said in predictions.load(folder).items():
            out[corpus] = {}
            for model in MODELS:
                for truth, logits, speech, ood in predictions.groups({corpus: said}, model):
                    temperature = calibration.choose_temperature(predictions.groups(validation, model))
                    out[corpus][model] = summary(truth, calibration.probabilities(logits, speech, ood, temperature))
    return out


def card(recipe: Recipe, options: argparse.Namespace) -> None:
    """Draw the card's pictures and tables."""
    from .card import draw

    for path in draw(recipe, Path(options.out)):
        print(path)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="undertone_training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="recipe.toml", help="the configuration file (default: %(default)s)")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    commands = {
        "prepare": prepare,
        "train": train,
        "leave-one-out": leave_one_out,
        "calibrate": calibrate,
        "export": export,
        "evaluate": evaluate,
        "card": card,
    }
    for name, function in commands.items():
        step = steps.add_parser(name)
        step.set_defaults(run=function)
        if name not in {"prepare", "card"}:
            step.add_argument("weights", help="a name from [weights] in the recipe")
        if name == "prepare":
            step.add_argument("--processes", type=int, help="readers at a time (default: one for each core)")
        if name in {"train", "leave-one-out"}:
            step.add_argument("--device", default=None, help="cpu or cuda (default: a GPU where there is one)")
        if name == "train":
            step.add_argument("--seed", type=int, help="only this run (default: all seeds of the recipe)")
        if name == "leave-one-out":
            step.add_argument("--corpus", help="leave out only this corpus (default: each in turn)")
        if name in {"export", "evaluate"}:
            step.add_argument("--models", default=str(SHIPPED), help="folder of the models (default: %(default)s)")
        if name == "evaluate":
            step.add_argument("--threads", type=int, default=2)
            step.add_argument("--most", type=int, help="at most this many windows of each corpus, for a quick look")
        if name == "card":
            step.add_argument("--out", default=str(CARD))
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one step."""
    options = arguments(argv)
    try:
        recipe = config.read(options.recipe)
        if hasattr(options, "weights"):
            if options.weights not in recipe.weights:
                known = ", ".join(recipe.weights)
                raise config.ConfigError(f"no weights '{options.weights}' in {options.recipe} (there are: {known})")
            recipe = recipe.of(options.weights)
        options.run(recipe, options)
    except PROBLEMS as problem:
        sys.exit(f"undertone_training: {problem}")


if __name__ == "__main__":
    main()
