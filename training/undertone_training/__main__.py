"""The steps of the recipe, one command each. All read one recipe file; results lie under its `work` folder.

    python -m undertone_training prepare                 read all corpora into one packed file
    python -m undertone_training train research          teachers, then the model to ship
    python -m undertone_training leave-one-out research  the same recipe without each corpus in turn
    python -m undertone_training calibrate research      probabilities that mean what they say
    python -m undertone_training export research         the graph, and its row in the catalogue
    python -m undertone_training evaluate research       every figure of the model card
    python -m undertone_training card                    the card's pictures and tables
"""
import argparse
import json
import pathlib
import sys


from . import answers, calibrate, catalogue, config, corpora, labels, pack, pipeline, splits
from .labels import MODELS

PROBLEMS = (config.ConfigError, corpora.CorpusError, labels.UnknownEmotion, splits.SplitError, FileNotFoundError)


def best_device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def prepare(recipe, options):
    clips = [c for corpus in recipe.corpora for c in corpora.read_corpus(corpus.name, corpus.kind, corpus.path)]
    pipeline.sides(argparse.Namespace(clips=clips), recipe)  # a wrong split is told before the long reading
    packed = pack.write(clips, recipe.work / "pack", options.processes)
    hours = packed.length.sum() / 16000 / 3600
    print(f"{len(clips)} clips, {len({c.speaker for c in clips})} speakers, {hours:.2f} h in {recipe.work / 'pack'}")


def train(recipe, options):
    packed = pack.read(recipe.work / "pack")
    model = pipeline.train_weights(packed, recipe, options.weights, options.device)
    folder = recipe.work / options.weights
    catalogue.save_weights(folder / "model.npz", *pipeline.numpy_state(model))
    keep_validation(model, packed, recipe, options, folder)


def keep_validation(model, packed, recipe, options, folder):
    """What a model says to the validation speakers of the corpora it learned from."""
    for corpus in recipe.corpora:
        if corpus.name in recipe.weights[options.weights]:
            keep_answers(model, packed, recipe, corpus, "validation", folder / "validation", options.device)


def keep_answers(model, packed, recipe, corpus, side, folder, device):
    from .predict import with_torch

    windows = pipeline.measured_windows(packed, recipe, corpus, side)
    if windows.clips:
        answers.save(folder, corpus.name, windows.truth, with_torch(model, windows, device))


def leave_one_out(recipe, options):
    packed = pack.read(recipe.work / "pack")
    folder = recipe.work / options.weights / "left-out"
    used = [c for c in recipe.corpora if c.name in recipe.weights[options.weights]]
    if len(used) < 2:
        raise config.ConfigError(f"weights '{options.weights}' use one corpus: there is nothing to leave out")
    for corpus in used:
        print(f"without {corpus.name}")
        without = recipe.without(corpus.name)
        model = pipeline.train_weights(packed, without, options.weights, options.device)
        keep_answers(model, packed, recipe, corpus, None, folder / corpus.name, options.device)
        keep_validation(model, packed, without, options, folder / corpus.name)


def calibrate_(recipe, options):
    folder = recipe.work / options.weights
    validation = answers.load(folder / "validation")
    left_out = {corpus: said for one in left_out_folders(recipe, options.weights) for corpus, said in answers.load(one).items()}
    if not validation:
        raise FileNotFoundError(f"{folder / 'validation'} holds no answers: run the step 'train' first")
    result = {}
    for model in MODELS:
        home, away = answers.groups(validation, model), answers.groups(left_out, model)
        temperature = calibrate.choose_temperature(home, away)
        result[model] = temperature
        print(f"{model}: temperature {temperature:.3f}, calibration error {calibrate.pooled_error(home, temperature):.3f}"
              f" on validation speakers")
    (folder / "calibration.json").write_text(json.dumps(result, indent=2))


def export(recipe, options):
    for path in catalogue.write(recipe, options.weights, pathlib.Path(options.models)):
        print(path)


def evaluate(recipe, options):
    import onnxruntime

    from .evaluate import evaluate as measure

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    folder = recipe.work / options.weights
    paths = (pathlib.Path(options.models) / f"{options.weights}.onnx", folder / "float.onnx")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no such graph: {path}: run the step 'export' first")
    sessions = [onnxruntime.InferenceSession(str(p), settings) for p in paths]
    report = measure(sessions[0], pack.read(recipe.work / "pack"), recipe, options.weights, sessions[1], options.most)
    report["without"] = left_out_figures(recipe, options.weights)
    (folder / "figures.json").write_text(json.dumps(report, indent=1))
    catalogue.add_figures(pathlib.Path(options.models), options.weights, report)
    print(json.dumps({m: {k: round(report["all"][m][k], 3) for k in ("uar", "accuracy", "ece")} for m in MODELS}))


def left_out_folders(recipe, name):
    return sorted(path for path in (recipe.work / name / "left-out").glob("*") if path.is_dir())


def left_out_figures(recipe, name):
    """Of each model that never heard a corpus: what it says about it, at a temperature from its own validation speakers."""
    from .metrics import summary

    out = {}
    for folder in left_out_folders(recipe, name):
        validation = answers.load(folder / "validation")
        for corpus, said in answers.load(folder).items():
            out[corpus] = {}
            for model in MODELS:
                for truth, *rest in answers.groups({corpus: said}, model):
                    temperature = calibrate.choose_temperature(answers.groups(validation, model))
                    out[corpus][model] = summary(truth, calibrate.probabilities(*rest, temperature))
    return out


def card(recipe, options):
    from .card import draw

    for path in draw(recipe, pathlib.Path(options.out)):
        print(path)


def arguments(argv):
    parser = argparse.ArgumentParser(prog="undertone_training", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="recipe.toml", help="the configuration file (default: %(default)s)")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    commands = {"prepare": prepare, "train": train, "leave-one-out": leave_one_out, "calibrate": calibrate_,
                "export": export, "evaluate": evaluate, "card": card}
    models = pathlib.Path(__file__).resolve().parents[2] / "packages/classifier/models"
    for name, function in commands.items():
        step = steps.add_parser(name)
        step.set_defaults(run=function)
        if name not in ("prepare", "card"):
            step.add_argument("weights", help="a name from [weights] in the recipe")
        if name == "prepare":
            step.add_argument("--processes", type=int, help="readers at a time (default: one for each core)")
        if name in ("train", "leave-one-out"):
            step.add_argument("--device", default=None, help="cpu or cuda (default: a GPU where there is one)")
        if name in ("export", "evaluate"):
            step.add_argument("--models", default=str(models), help="folder of the shipped models (default: %(default)s)")
        if name == "evaluate":
            step.add_argument("--threads", type=int, default=2)
            step.add_argument("--most", type=int, help="at most so many windows of each corpus, for a quick look")
        if name == "card":
            step.add_argument("--out", default=str(models.parents[2] / "docs/model-card"))
    return parser.parse_args(argv)


def main(argv=None):
    options = arguments(argv)
    try:
        recipe = config.read(options.recipe)
        if getattr(options, "weights", None) not in (None, *recipe.weights):
            raise config.ConfigError(f"no weights '{options.weights}' in {options.recipe} "
                                     f"(there are: {', '.join(recipe.weights)})")
        if hasattr(options, "weights"):
            recipe = recipe.of(options.weights)
        if hasattr(options, "device"):
            options.device = options.device or best_device()
        options.run(recipe, options)
    except PROBLEMS as problem:
        sys.exit(f"undertone_training: {problem}")


if __name__ == "__main__":
    main()
