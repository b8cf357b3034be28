"""Reads recipe.toml, the one configuration file of a run. Unknown and missing settings are errors."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar


class ConfigError(ValueError):
    """The recipe is invalid; the message names the setting."""


@dataclass
class Corpus:
    """One [[corpus]] of the recipe."""

    name: str
    kind: str
    path: str
    licence: str = "not stated"
    attribution: str = ""  # how it asks to be cited; its name if empty
    commercial_use: bool = False
    weight: float = 1.0
    single: bool = False  # measured utterance by utterance, not in 5 s windows


@dataclass
class Training:
    """The settings of [training]."""

    encoder: str  # the pretrained encoder, .npz
    layers: int = 7
    halve_after: list[int] = field(default_factory=list)
    seeds: list[int] = field(default_factory=lambda: [1])  # one run each; the best of them ships
    steps: int = 1200
    batch: int = 128
    seconds: float = 5.0
    encoder_rate: float = 5e-5
    head_rate: float = 1e-3
    layer_decay: float = 0.9
    weight_decay: float = 0.01
    warmup: float = 0.08
    averaging: float = 0.995  # decay of the moving average of the weights, for each step
    votes: float = 0.25
    colouring: float = 0.25  # share of windows with the frequency response of another microphone
    bed: bool = False  # add a bed of steady noise to the log-mel (frontend.noise_bed)
    levelling: float = 0.0  # share of windows whose noise is set to a random level
    smoothing: float = 0.05
    dropout: float = 0.2
    rounding_steps: int = 300  # of quantisation-aware training at the end
    rounding_levelling: float = 0.85  # `levelling` in these last steps
    rounding_rate: float = 1e-5


@dataclass
class Recipe:
    """The contents of recipe.toml."""

    corpora: list[Corpus]
    training: Training
    weights: dict[str, list[str]]  # name of a set of weights -> the corpora it is made of
    licences: dict[str, str]  # name of a set of weights -> the licence its maker gives it
    validation: dict[str, Any]
    excluded: dict[str, list[str]]
    work: Path
    own: dict[str, dict[str, Any]]  # name of a set of weights -> its own settings of training
    left_out: dict[str, Any]  # settings of training where a corpus is left out

    def of(self, name: str) -> Recipe:
        """Return the recipe as it is for one set of weights."""
        return replace(self, training=replace(self.training, **self.own.get(name, {})))

    def without(self, corpus: str) -> Recipe:
        """Return the recipe without one corpus, with the settings of [left_out]."""
        weights = {name: [c for c in used if c != corpus] for name, used in self.weights.items()}
        return replace(self, weights=weights, training=replace(self.training, **self.left_out))

    def used_by(self, name: str) -> list[Corpus]:
        """Return the corpora of a set of weights."""
        return [c for c in self.corpora if c.name in self.weights[name]]


Table = TypeVar("Table", Corpus, Training)


def _fill(kind: type[Table], table: dict[str, Any], where: str) -> Table:
    known = {f.name for f in fields(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise ConfigError(f"{where}: unknown setting {', '.join(unknown)} (known: {', '.join(sorted(known))})")
    try:
        return kind(**table)
    except TypeError as problem:
        raise ConfigError(f"{where}: {problem}") from problem


def read(file: str | Path) -> Recipe:
    """Read a recipe and make its paths absolute."""
    path = Path(file)
    if not path.is_file():
        raise ConfigError(f"no such recipe: {path}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path}: {problem}") from problem
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
    return Recipe(
        corpora=corpora,
        training=training,
        weights=weights,
        licences=table.get("licences", {}),
        validation=split.get("validation", {}),
        excluded=split.get("excluded", {}),
        work=base / table.get("work", "runs"),
        own=own,
        left_out=left_out,
    )
