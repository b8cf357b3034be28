"""The order of things: teachers, then the model that learns from them; and the same with one corpus left out in turn."""
import copy

import numpy as np
import torch

from . import familiar, quantise, splits
from .predict import with_torch
from .train import fit, new_model
from .windows import laid_end_to_end, single_clips, thinned

# Windows of each corpus that say which voices are known: so many of each length. The service hears all lengths from 4 to
# 10 s, and to a model that knows words a length far from any of these is strange in itself.
FAMILIAR, FAMILIAR_SECONDS = 200, (2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
TYPICAL_SECONDS = 5.0


def sides(pack, recipe):
    return np.array(splits.assign(pack.clips, recipe.validation, recipe.excluded))


def corpus_weights(recipe):
    return {c.name: c.weight for c in recipe.corpora}


def of(pack, names):
    """Which clips belong to the named corpora."""
    return np.array([c.corpus in names for c in pack.clips])


def spoken(pack):
    """Which clips are speech: songs help in training, and are no part of any figure."""
    return np.array([c.part != "song" for c in pack.clips])


def train_weights(pack, recipe, name, device):
    """-> the model to ship, with rounding on."""
    teachers = [train_teacher(pack, recipe, name, number, device) for number in range(recipe.training.teachers)]
    model = averaged([train_student(pack, recipe, name, number, teachers, device)
                      for number in range(recipe.training.students)])
    if recipe.training.words:
        model = averaged([finish(pack, recipe, name, number, model, device) for number in range(recipe.training.students)])
    make_familiar(model, pack, recipe, recipe.weights[name], device)
    return model


def trained_clips(pack, recipe, name):
    return (sides(pack, recipe) == "train") & of(pack, recipe.weights[name])


def train_teacher(pack, recipe, name, number, device):
    training = copy.copy(recipe.training)
    training.halve_after = teacher_halving(recipe.training, number)
    return fit(pack, trained_clips(pack, recipe, name), corpus_weights(recipe), training, device,
               seed=training.seed + number, label=f"{name}, teacher {number + 1} of {training.teachers}")


def teacher_halving(training, number):
    """Every other teacher hears at the full frame rate: teachers that differ know more together."""
    return [] if number % 2 else training.halve_after


def train_student(pack, recipe, name, number, teachers, device):
    training = copy.copy(recipe.training)
    training.encoder_rate = training.student_rate
    alike = [t for t in teachers if list(t.encoder.halve_after) == list(training.halve_after)]
    student = averaged(alike) if alike else new_model(training, device)
    return fit(pack, trained_clips(pack, recipe, name), corpus_weights(recipe), training, device, model=student,
               teachers=teachers, steps=training.student_steps, rounding=True, seed=training.seed + 100 + number,
               label=f"{name}, student {number + 1} of {training.students}")


def finish(pack, recipe, name, number, model, device):
    """Teaches a model to know words again (words.py), with itself as the teacher of everything else."""
    training = copy.copy(recipe.training)
    training.encoder_rate = training.finish_rate
    learner = copy.deepcopy(model)
    quantise.set_mode(learner, watching=False, active=False)
    return fit(pack, trained_clips(pack, recipe, name), corpus_weights(recipe), training, device, model=learner,
               teachers=[model.eval()], steps=training.finish_steps, rounding=True, words=True,
               seed=training.seed + 200 + number, label=f"{name}, finish {number + 1} of {training.students}")


def averaged(models):
    """The mean of the weights of models that began alike."""
    result = copy.deepcopy(models[0])
    with torch.no_grad():
        for parameter, *others in zip(result.parameters(), *(m.parameters() for m in models[1:])):
            for other in others:
                parameter.add_(other)
            parameter.div_(len(models))
        quantise.widen(result, models[1:])
    return result


def make_familiar(model, pack, recipe, names, device):
    """Tells a trained model which voices it knows, so that it is more modest with strangers (see familiar.py)."""
    keep, side = spoken(pack), sides(pack, recipe)

    def seen(wanted, lengths):
        """Of each corpus, windows of all these lengths."""
        for name in names:
            rows = keep & of(pack, [name]) & (side == wanted)
            windows = [thinned(laid_end_to_end(pack, rows, seconds), FAMILIAR) for seconds in lengths if rows.any()]
            if windows:
                answers = [with_torch(model, w, device) for w in windows]
                yield {view: np.concatenate([a[view] for a in answers]).astype(np.float64) for view in model.views}

    trained, unheard = list(seen("train", FAMILIAR_SECONDS)), list(seen("validation", [TYPICAL_SECONDS]))
    for name in model.views:
        mean, root = familiar.measure([x[name] for x in trained], [x[name] for x in unheard], familiar.VIEWS[name])
        getattr(model, f"familiar_{name}_mean").copy_(torch.from_numpy(mean))
        getattr(model, f"familiar_{name}_root").copy_(torch.from_numpy(root))


def measured_windows(pack, recipe, corpus, side=None):
    """The windows a corpus is measured on: validation speakers, or all but the excluded ones if side is None."""
    sides_ = sides(pack, recipe)
    keep = of(pack, [corpus.name]) & spoken(pack) & ((sides_ == side) if side else (sides_ != "excluded"))
    return single_clips(pack, keep) if corpus.single else laid_end_to_end(pack, keep)


def numpy_state(model):
    """Weights as numpy arrays and the ranges of the rounded products: all that export needs."""
    state = {k: v.detach().cpu().numpy() for k, v in model.state_dict().items() if ".rounding." not in k}
    return state, quantise.ranges(model)
