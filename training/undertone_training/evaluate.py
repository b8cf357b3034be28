"""Measures an exported graph on validation speakers: as recorded, by telephone, in babble, softer, louder, shorter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from . import conditions
from .config import Corpus, Recipe
from .frontend import Array
from .labels import MODELS
from .metrics import confusion, summary
from .pack import Pack
from .pipeline import measured_windows, of, sides, spoken
from .pitch import genders
from .predict import Outputs, with_graph
from .progress import Progress
from .windows import Windows, laid_end_to_end, single_clips, thinned

ENOUGH = 900  # windows of a corpus, where there are many: single clips, and all speakers of one never trained on
FEW = 40  # windows of a corpus for the float graph, which is slow
LENGTHS = (2.0, 3.0, 5.0, 10.0)

Figures = dict[str, dict[str, Any]]  # model -> its summary


def known(windows: Windows, said: Outputs, model: str) -> tuple[Array, Array]:
    """Truth and probabilities of the windows whose emotion a model knows."""
    rows = windows.truth < MODELS[model]
    return windows.truth[rows], said[model][rows]


def figures(windows: Windows, said: Outputs) -> Figures:
    """A summary for each model that knows an emotion of these windows."""
    rows = {model: known(windows, said, model) for model in MODELS}
    return {model: summary(*row) for model, row in rows.items() if len(row[0])}


def joined(parts: Iterable[Windows]) -> Windows:
    """Several corpora as one."""
    parts = list(parts)
    return Windows([s for w in parts for s in w.samples], [c for w in parts for c in w.clips])


def mean_uar(windows: Windows, said: Outputs, model: str) -> float:
    """The mean of the corpora's UARs, so that corpora count the same whatever their size."""
    rows = []
    for corpus in sorted({c.corpus for c in windows.clips}):
        pick = np.array([c.corpus == corpus for c in windows.clips]) & (windows.truth < MODELS[model])
        if pick.any():
            rows.append(summary(windows.truth[pick], said[model][pick])["uar"])
    return float(np.mean(rows))


class Examination:
    """One set of weights under examination."""

    def __init__(self, session: Any, pack: Pack, recipe: Recipe, name: str, most: int | None = None) -> None:
        """most: at most this many windows of each corpus, for a quick look."""
        self.session, self.pack, self.recipe, self.name, self.most = session, pack, recipe, name, most
        used = recipe.weights[name]
        self.home = dict(self._windows((c for c in recipe.corpora if c.name in used), "validation", most))
        self.away = dict(self._windows((c for c in recipe.corpora if c.name not in used), None, most or ENOUGH))
        self.all = joined(self.home.values())

    def _windows(self, corpora: Iterable[Corpus], side: str | None, most: int | None) -> Iterator[tuple[str, Windows]]:
        for corpus in corpora:
            windows = thinned(measured_windows(self.pack, self.recipe, corpus, side), most)
            if windows.clips:
                yield corpus.name, windows

    def ask(self, windows: Windows) -> Outputs:
        """The predictions of the graph."""
        return with_graph(self.session, windows)

    def report(self, float_session: Any) -> dict[str, Any]:
        """All figures of the model card."""
        progress = Progress(f"measuring {self.name}", len(self.home) + len(self.away) + 4)

        def asked(windows: Windows) -> Outputs:
            said = self.ask(windows)
            progress.step()
            return said

        answers = {corpus: asked(windows) for corpus, windows in self.home.items()}
        said = {k: np.concatenate([a[k] for a in answers.values()]) for k in (*MODELS, "speech")}
        report = {
            "corpora": {corpus: figures(windows, answers[corpus]) for corpus, windows in self.home.items()},
            "left_out": {corpus: figures(windows, asked(windows)) for corpus, windows in self.away.items()},
            "all": figures(self.all, said),
            "confusion": {m: self._confusion(said, m) for m in MODELS},
            "reliability": {m: reliability(*known(self.all, said, m)) for m in MODELS},
            "speakers": by_speaker(self.all, said),
            "genders": self.by_gender(said),
        }
        for part, measure in (
            ("single_clips", self.single_clips),
            ("conditions", self.under_conditions),
            ("lengths", self.by_length),
        ):
            report[part] = measure()
            progress.step()
        few = joined(thinned(w, FEW) for w in self.home.values())
        said, other = self.ask(few), with_graph(float_session, few)
        report["float"] = {m: {"quantised": mean_uar(few, said, m), "float": mean_uar(few, other, m)} for m in MODELS}
        progress.step()
        return report

    def _confusion(self, said: Outputs, model: str) -> list[list[int]]:
        truth, probabilities = known(self.all, said, model)
        table: list[list[int]] = confusion(truth, probabilities.argmax(1), MODELS[model]).tolist()
        return table

    def _validation_clips(self, corpus: str) -> Array:
        return of(self.pack, [corpus]) & spoken(self.pack) & (sides(self.pack.clips, self.recipe) == "validation")

    def by_gender(self, said: Outputs) -> dict[str, Figures]:
        """Figures for women and for men."""
        gender = genders(self.pack, (sides(self.pack.clips, self.recipe) == "validation") & spoken(self.pack))
        out = {}
        for group in ("women", "men"):
            rows = [i for i, c in enumerate(self.all.clips) if gender.get(c.speaker) == group]
            out[group] = figures(self.all.rows(rows), {k: v[rows] for k, v in said.items()})
        return out

    def single_clips(self) -> dict[str, Figures]:
        """Single clips of their own length."""
        out = {}
        for corpus in self.home:
            windows = thinned(single_clips(self.pack, self._validation_clips(corpus)), self.most or ENOUGH)
            out[corpus] = figures(windows, self.ask(windows))
        return out

    def under_conditions(self) -> dict[str, Any]:
        """The same windows under other conditions."""
        windows = joined(thinned(w, 120) for w in self.home.values())
        clean = self.ask(windows)
        ways: dict[str, conditions.Condition] = {
            "telephone": conditions.telephone,
            "babble 10 dB": conditions.babble(windows.samples),
            "20 dB softer": conditions.gain(-20),
            "20 dB louder": conditions.gain(20),
        }
        answers = {"clean": clean, **{n: self.ask(conditions.apply(windows, way)) for n, way in ways.items()}}
        return {
            name: {
                m: {
                    "uar": mean_uar(windows, said, m),
                    "changed": float((said[m].argmax(1) != clean[m].argmax(1)).mean()),
                }
                for m in MODELS
            }
            for name, said in answers.items()
        }

    def by_length(self, most: int = 80) -> dict[str, dict[str, float]]:
        """The same voices in windows of other lengths."""
        out = {}
        for seconds in LENGTHS:
            windows = joined(
                laid_end_to_end(self.pack, self._validation_clips(corpus), seconds, most) for corpus in self.home
            )
            said = self.ask(windows)
            out[f"{seconds:g} s"] = {m: mean_uar(windows, said, m) for m in MODELS}
        return out


def reliability(truth: Array, probabilities: Array, bins: int = 10) -> list[dict[str, float]]:
    """For each bin of confidence: how many, how sure, how often right."""
    confidence, hit = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        {
            "count": int((place == b).sum()),
            "confidence": float(confidence[place == b].mean()),
            "accuracy": float(hit[place == b].mean()),
        }
        for b in range(bins)
        if (place == b).any()
    ]


def by_speaker(windows: Windows, said: Outputs, model: str = "4emotions") -> dict[str, dict[str, Any]]:
    """Accuracy of every speaker with enough windows."""
    out = {}
    for speaker in sorted({c.speaker for c in windows.clips}):
        pick = np.array([c.speaker == speaker for c in windows.clips]) & (windows.truth < MODELS[model])
        if pick.sum() >= 8:
            hit = said[model][pick].argmax(1) == windows.truth[pick]
            corpus = next(c.corpus for c in windows.clips if c.speaker == speaker)
            out[speaker] = {"corpus": corpus, "windows": int(pick.sum()), "accuracy": float(hit.mean())}
    return out
