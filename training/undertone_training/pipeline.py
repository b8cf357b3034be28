"""The order of training (float, rounding, out-of-distribution score), and which windows are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import ood, splits
from .config import Corpus, Recipe
from .corpora import Clip
from .frontend import Array
from .pack import Pack
from .predict import with_torch
from .windows import Windows, laid_end_to_end, single_clips

if TYPE_CHECKING:
    from .batches import BatchMaker, Voices
    from .model import VoiceModel

# The out-of-distribution score is fitted to windows of the training speakers, this many of each corpus and length:
# short windows vary more than long ones, and no length that the service accepts may count as unfamiliar.
OOD_WINDOWS, OOD_SECONDS = 100, (2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
TYPICAL_SECONDS = 5.0


def sides(clips: Sequence[Clip], recipe: Recipe) -> Array:
    """For each clip 'train', 'validation' or 'excluded'."""
    return np.array(splits.assign(clips, recipe.validation, recipe.excluded))


def of(pack: Pack, names: Iterable[str]) -> Array:
    """Which clips belong to the named corpora."""
    wanted = set(names)
    return np.array([c.corpus in wanted for c in pack.clips])


def spoken(pack: Pack) -> Array:
    """Which clips are speech: songs are used in training and left out of all figures."""
    return np.array([c.part != "song" for c in pack.clips])


def batch_maker(voices: Voices, recipe: Recipe, name: str, *, seed: int, levelling: float) -> BatchMaker:
    """Training windows of a set of weights."""
    from .batches import BatchMaker

    keep = (sides(voices.pack.clips, recipe) == "train") & of(voices.pack, recipe.weights[name])
    weights = {c.name: c.weight for c in recipe.corpora}
    return BatchMaker(voices, keep, weights, recipe.training, seed=seed, levelling=levelling)


def train_weights(voices: Voices, recipe: Recipe, name: str, seed: int) -> VoiceModel:
    """Train one model: in float, then with rounding on, then its out-of-distribution score."""
    from .train import fit, new_model

    training = recipe.training
    model = fit(
        new_model(training, voices.device, seed),
        batch_maker(voices, recipe, name, seed=seed, levelling=training.levelling),
        training,
        seed=seed,
        steps=training.steps,
        encoder_rate=training.encoder_rate,
        label=f"{name}, seed {seed}, {training.steps} steps",
    )
    model = fit(
        model,
        batch_maker(voices, recipe, name, seed=seed + 100, levelling=training.rounding_levelling),
        training,
        seed=seed,
        steps=training.rounding_steps,
        encoder_rate=training.rounding_rate,
        rounding=True,
        label=f"{name}, seed {seed}, {training.rounding_steps} steps with rounding",
    )
    fit_ood(model, voices.pack, recipe, recipe.weights[name], voices.device)
    return model


def fit_ood(model: VoiceModel, pack: Pack, recipe: Recipe, names: Sequence[str], device: str) -> None:
    """Fit the out-of-distribution score to the training speakers."""
    import torch

    keep, side = spoken(pack), sides(pack.clips, recipe)

    def features(wanted: str, lengths: Iterable[float]) -> Iterator[Array]:
        for name in names:
            rows = keep & of(pack, [name]) & (side == wanted)
            if rows.any():
                windows = [laid_end_to_end(pack, rows, seconds, OOD_WINDOWS) for seconds in lengths]
                yield np.concatenate([with_torch(model, w, device)["feature"] for w in windows]).astype(np.float64)

    mean, root = ood.fit(list(features("train", OOD_SECONDS)), list(features("validation", [TYPICAL_SECONDS])))
    model.ood_mean.copy_(torch.from_numpy(mean))
    model.ood_root.copy_(torch.from_numpy(root))


def measured_windows(pack: Pack, recipe: Recipe, corpus: Corpus, side: str | None = None) -> Windows:
    """The windows a corpus is measured on: validation speakers, or all but the excluded ones if side is None."""
    sides_ = sides(pack.clips, recipe)
    keep = of(pack, [corpus.name]) & spoken(pack) & ((sides_ == side) if side else (sides_ != "excluded"))
    return single_clips(pack, keep) if corpus.single else laid_end_to_end(pack, keep)


def numpy_state(model: VoiceModel) -> dict[str, Array]:
    """Weights as numpy arrays; with quantise.ranges, all that export needs."""
    return {k: v.detach().cpu().numpy() for k, v in model.state_dict().items() if ".rounding." not in k}
