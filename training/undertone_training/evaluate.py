"""Measures an exported graph on voices it never heard: at home, by telephone, in babble, softer, louder, shorter."""
import numpy as np

from . import conditions
from .labels import MODELS
from .metrics import confusion, summary
from .pipeline import measured_windows, of, sides, spoken
from .pitch import genders
from .predict import with_graph
from .progress import Progress
from .windows import Windows, laid_end_to_end, single_clips, thinned

ENOUGH = 900  # windows of a corpus, where there are many: single clips, and all speakers of one never trained on


def known(windows, answers, model):
    rows = windows.truth < MODELS[model]
    return windows.truth[rows], answers[model][rows]


def figures(windows, answers):
    """A summary for each model that knows an emotion of these windows."""
    rows = {model: known(windows, answers, model) for model in MODELS}
    return {model: summary(*row) for model, row in rows.items() if len(row[0])}


def joined(parts):
    parts = list(parts)
    return Windows([s for w in parts for s in w.samples], [c for w in parts for c in w.clips])


def mean_uar(windows, answers, model):
    """The mean of the corpora's UARs, so that a large corpus does not drown a small one."""
    rows = []
    for corpus in sorted({c.corpus for c in windows.clips}):
        pick = np.array([c.corpus == corpus for c in windows.clips]) & (windows.truth < MODELS[model])
        if pick.any():
            rows.append(summary(windows.truth[pick], answers[model][pick])["uar"])
    return float(np.mean(rows))


def evaluate(session, pack, recipe, name, float_session=None, most=None):
    """Everything the card tells about one set of weights, as one dictionary."""
    names = recipe.weights[name]
    home = {c.name: measured_windows(pack, recipe, c, "validation") for c in recipe.corpora if c.name in names}
    away = {c.name: measured_windows(pack, recipe, c) for c in recipe.corpora if c.name not in names}
    away = {k: thinned(w, most or ENOUGH) for k, w in away.items()}
    if most:
        home = {k: thinned(w, most) for k, w in home.items()}
    progress = Progress(f"measuring {name}", len(home) + len(away) + 8)
    report = {"corpora": {}, "left_out": {}, "conditions": {}}
    everything, said = joined(home.values()), None
    parts = []
    for corpus, windows in home.items():
        parts.append(with_graph(session, windows))
        report["corpora"][corpus] = figures(windows, parts[-1])
        progress.step()
    said = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    for corpus, windows in away.items():
        report["left_out"][corpus] = figures(windows, with_graph(session, windows))
        progress.step()
    report["all"] = figures(everything, said)
    report["confusion"] = {m: confusion(known(everything, said, m)[0], known(everything, said, m)[1].argmax(1),
                                        MODELS[m]).tolist() for m in MODELS}
    report["reliability"] = {m: reliability(*known(everything, said, m)) for m in MODELS}
    report["speakers"] = by_speaker(everything, said)
    report["genders"] = by_gender(pack, recipe, everything, said)
    report["single_clips"] = singles(session, pack, recipe, names, most or ENOUGH)
    progress.step()
    report["conditions"] = under_conditions(session, joined(thinned(w, 120) for w in home.values()), progress)
    report["lengths"] = by_length(session, pack, recipe, names)
    progress.step()
    if float_session:
        other = {m: mean_uar(everything, with_graph(float_session, everything), m) for m in MODELS}
        report["float"] = {m: {"quantised": mean_uar(everything, said, m), "float": other[m]} for m in MODELS}
    progress.step(count=progress.total - progress.done)
    return report


def reliability(truth, probabilities, bins=10):
    """For each bin of confidence: how many, how sure, how often right."""
    confidence, hit = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return [{"count": int((place == b).sum()), "confidence": float(confidence[place == b].mean()),
             "accuracy": float(hit[place == b].mean())} for b in range(bins) if (place == b).any()]


def by_speaker(windows, answers, model="4emotions"):
    out = {}
    for speaker in sorted({c.speaker for c in windows.clips}):
        pick = np.array([c.speaker == speaker for c in windows.clips]) & (windows.truth < MODELS[model])
        if pick.sum() >= 8:
            hit = answers[model][pick].argmax(1) == windows.truth[pick]
            corpus = next(c.corpus for c in windows.clips if c.speaker == speaker)
            out[speaker] = {"corpus": corpus, "windows": int(pick.sum()), "accuracy": float(hit.mean())}
    return out


def by_gender(pack, recipe, windows, answers):
    keep = (sides(pack, recipe) == "validation") & spoken(pack)
    gender = genders(pack, keep)
    out = {}
    for group in ("women", "men"):
        pick = np.array([gender.get(c.speaker) == group for c in windows.clips])
        chosen = Windows([s for s, p in zip(windows.samples, pick) if p], [c for c, p in zip(windows.clips, pick) if p])
        out[group] = figures(chosen, {k: v[pick] for k, v in answers.items()})
    return out


def singles(session, pack, recipe, names, most):
    """Clips one by one, as short as they are."""
    out = {}
    for corpus in names:
        keep = of(pack, [corpus]) & spoken(pack) & (sides(pack, recipe) == "validation")
        windows = thinned(single_clips(pack, keep), most)
        out[corpus] = figures(windows, with_graph(session, windows))
    return out


def under_conditions(session, windows, progress):
    others = [s for s in windows.samples]
    ways = {"clean": lambda s, g: s, "telephone": conditions.telephone, "babble 10 dB": conditions.babble(others),
            "20 dB softer": conditions.gain(-20), "20 dB louder": conditions.gain(20)}
    plain, out = None, {}
    for name, way in ways.items():
        answers = with_graph(session, conditions.apply(windows, way))
        plain = plain or answers
        out[name] = {m: {"uar": mean_uar(windows, answers, m),
                         "changed": float((answers[m].argmax(1) != plain[m].argmax(1)).mean())} for m in MODELS}
        progress.step()
    return out


def by_length(session, pack, recipe, names, most=80):
    """The same voices in windows of other lengths."""
    out = {}
    for seconds in (2.0, 3.0, 5.0, 10.0):
        parts = []
        for corpus in names:
            keep = of(pack, [corpus]) & spoken(pack) & (sides(pack, recipe) == "validation")
            parts.append(thinned(laid_end_to_end(pack, keep, seconds), most))
        windows = joined(parts)
        answers = with_graph(session, windows)
        out[f"{seconds:g} s"] = {m: mean_uar(windows, answers, m) for m in MODELS}
    return out
