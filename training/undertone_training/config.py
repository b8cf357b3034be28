"""Reads recipe.toml: one file says everything a run does. Unknown or missing settings are named, not guessed."""
import pathlib
import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import Dict, List


class ConfigError(ValueError):
    pass


@dataclass
class Corpus:
    name: str
    kind: str
    path: str
    licence: str = ""
    commercial_use: bool = False
    weight: float = 1.0
    single: bool = False  # measured utterance by utterance, not in windows laid end to end


@dataclass
class Training:
    encoder: str  # the pretrained encoder, .npz
    layers: int = 6
    halve_after: List[int] = field(default_factory=list)
    steps: int = 1800
    batch: int = 128
    seconds: float = 5.0
    encoder_rate: float = 5e-5
    head_rate: float = 1e-3
    layer_decay: float = 0.9
    weight_decay: float = 0.01
    warmup: float = 0.08
    averaging: float = 0.995
    votes: float = 0.25
    smoothing: float = 0.05
    dropout: float = 0.2
    seed: int = 1
    teachers: int = 0  # models trained first, so that others can learn from their common answer
    students: int = 1  # models that learn from them, and runs that finish; of either the mean of the weights is taken
    distill: float = 0.5  # share of the teachers' answer in what is learnt
    student_steps: int = 2000
    student_rate: float = 4e-5  # the student's encoder has been fine-tuned already
    words: float = 0.0  # weight of knowing words, which the model to ship learns again at the end (words.py); 0: it does not
    finish_steps: int = 400  # in which it learns them
    finish_rate: float = 1e-4
    rounding_from: float = 0.6  # share of the student's steps after which products are rounded as in the shipped graph


@dataclass
class Recipe:
    corpora: List[Corpus]
    training: Training
    weights: Dict[str, List[str]]  # name of a set of weights -> the corpora it is made of
    validation: Dict[str, object]
    excluded: Dict[str, List[str]]
    work: pathlib.Path
    own: Dict[str, dict]  # name of a set of weights -> its own settings of training
    left_out: Dict[str, object]  # settings of training where a corpus is left out

    def of(self, name):
        """The recipe as it is for one set of weights."""
        return replace(self, training=replace(self.training, **self.own.get(name, {})))

    def without(self, corpus):
        """The recipe as if a corpus did not exist, with the shorter runs that are enough to see what that costs."""
        weights = {name: [c for c in used if c != corpus] for name, used in self.weights.items()}
        return replace(self, weights=weights, training=replace(self.training, **self.left_out))


def _fill(kind, table, where):
    known = {f.name for f in fields(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise ConfigError(f"{where}: unknown setting {', '.join(unknown)} (known: {', '.join(sorted(known))})")
    try:
        return kind(**table)
    except TypeError as problem:
        raise ConfigError(f"{where}: {problem}")


def read(path):
    path = pathlib.Path(path)
    if not path.is_file():
        raise ConfigError(f"no such recipe: {path}")
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path}: {problem}")
    base = path.parent
    corpora = [_fill(Corpus, row, f"{path}: corpus {row.get('name', '?')}") for row in table.get("corpus", [])]
    if not corpora:
        raise ConfigError(f"{path}: no [[corpus]] given")
    for corpus in corpora:
        corpus.path = str(base / corpus.path)
    names = [c.name for c in corpora]
    weights = table.get("weights", {"all": names})
    settings = table.get("training", {})
    own = {name: settings.pop(name) for name in list(settings) if isinstance(settings[name], dict)}
    training = _fill(Training, settings, f"{path}: [training]")
    training.encoder = str(base / training.encoder)
    for name, changes in own.items():
        if name not in weights:
            raise ConfigError(f"{path}: [training.{name}] is for weights that [weights] does not name")
        _fill(Training, {**vars(training), **changes}, f"{path}: [training.{name}]")
    left_out = table.get("left_out", {})
    _fill(Training, {**vars(training), **left_out}, f"{path}: [left_out]")
    for name, used in weights.items():
        unknown = sorted(set(used) - set(names))
        if unknown:
            raise ConfigError(f"{path}: weights '{name}' use unknown corpora: {', '.join(unknown)}")
    split = table.get("split", {})
    return Recipe(corpora, training, weights, split.get("validation", {}), split.get("excluded", {}),
                  base / table.get("work", "runs"), own, left_out)
