"""The pictures and tables of the model card, from the figures that `evaluate` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .config import Recipe
from .labels import EMOTIONS, MODELS

INK, BLUE, GREY = "#1f2933", "#2f6fab", "#9aa5b1"


def draw(recipe: Recipe, out: Path) -> list[Path]:
    """-> paths of the pictures and of figures.md."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "text.color": INK,
            "axes.edgecolor": GREY,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in recipe.weights:
        file = recipe.work / name / "figures.json"
        if not file.is_file():
            raise FileNotFoundError(f"no {file}: run the step 'evaluate' first")
        report = json.loads(file.read_text(encoding="utf-8"))
        for kind, painter in (("confusion", confusion), ("reliability", reliability), ("speakers", speakers)):
            figure = painter(plt, report, name)
            path = out / f"{name}-{kind}.png"
            figure.savefig(path, dpi=110, bbox_inches="tight")
            plt.close(figure)
            paths.append(path)
    path = out / "figures.md"
    path.write_text(
        "\n".join(
            [
                "# Figures",
                "",
                "Written by the training recipe's step `card`; the model card explains them.",
                "",
                *(line for name in recipe.weights for line in tables(recipe, name)),
            ]
        )
    )
    return [*paths, path]


def tables(recipe: Recipe, name: str) -> Iterator[str]:
    """The figures of one set of weights as Markdown."""
    report = json.loads((recipe.work / name / "figures.json").read_text(encoding="utf-8"))
    yield f"## `{name}`"
    yield from _table(
        "Validation speakers of the training corpora, 5 s windows (meld: single utterances)",
        {**report["corpora"], "**all windows**": report["all"]},
    )
    yield from _table("Validation speakers, single clips of their own length", report["single_clips"])
    if report["left_out"]:
        yield from _table("Corpora not used in training, all speakers", report["left_out"])
    if report["without"]:
        yield from _table("Each corpus left out in turn, all its speakers", report["without"])
    yield from _table("Women and men (classified by the pitch of their neutral speech)", report["genders"])
    yield from [
        "### What lowers it",
        "",
        "Mean of the corpora's UARs, at most 120 windows of each; in brackets, how often the",
        "main emotion is another than in the clean recording.",
        "",
        "| | " + " | ".join(MODELS) + " |",
        "|---|" + "---|" * len(MODELS),
    ]
    for condition, row in report["conditions"].items():
        yield (
            f"| {condition} | "
            + " | ".join(f"{row[m]['uar']:.3f} ({100 * row[m]['changed']:.1f} %)" for m in MODELS)
            + " |"
        )
    for length, row in report["lengths"].items():
        yield f"| windows of {length} | " + " | ".join(f"{row[m]:.3f}" for m in MODELS) + " |"
    yield from [
        "",
        "### Quantised beside float, mean of the corpora's UARs, at most 40 windows of each",
        "",
        "| | quantised | float |",
        "|---|---|---|",
    ]
    for model, row in report["float"].items():
        yield f"| {model} | {row['quantised']:.4f} | {row['float']:.4f} |"
    yield ""


def _table(title: str, rows: dict[str, Any]) -> Iterator[str]:
    yield from [
        f"### {title}",
        "",
        "| | model | windows | UAR | accuracy | macro-F1 | calibration error | confidence minus accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, models in rows.items():
        for model, s in models.items():
            yield (
                f"| {name} | {model} | {s['clips']} | {s['uar']:.3f} | {s['accuracy']:.3f} | {s['macro_f1']:.3f} | "
                f"{s['ece']:.3f} | {s['overconfidence']:+.3f} |"
            )
    yield ""


def confusion(plt: Any, report: dict[str, Any], name: str) -> Any:
    """How each emotion was answered."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), gridspec_kw={"width_ratios": [4, 5, 7], "wspace": 0.5})
    for axis, (model, size) in zip(axes, MODELS.items()):
        table = np.array(report["confusion"][model], float)
        share = table / np.maximum(table.sum(1, keepdims=True), 1)
        axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for i in range(size):
            for j in range(size):
                if share[i, j] >= 0.005:
                    axis.text(
                        j,
                        i,
                        f"{100 * share[i, j]:.0f}",
                        ha="center",
                        va="center",
                        color="white" if share[i, j] > 0.6 else INK,
                        fontsize=8,
                    )
        axis.set_xticks(range(size), EMOTIONS[:size], rotation=45, ha="right")
        axis.set_yticks(range(size), EMOTIONS[:size])
        axis.set_title(f"{model}, UAR {report['all'][model]['uar']:.2f}", fontsize=10)
    axes[0].set_ylabel("meant")
    figure.supxlabel("answered", y=-0.08, fontsize=9)
    figure.suptitle(f"{name}: of each emotion, per cent answered as ... (validation speakers)", fontsize=11, y=1.02)
    return figure


def reliability(plt: Any, report: dict[str, Any], name: str) -> Any:
    """Accuracy over confidence."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True)
    for axis, model in zip(axes, MODELS):
        rows = report["reliability"][model]
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
        sizes = np.array([r["count"] for r in rows], float)
        axis.scatter(
            [r["confidence"] for r in rows],
            [r["accuracy"] for r in rows],
            s=15 + 200 * sizes / sizes.max(),
            color=BLUE,
            alpha=0.8,
        )
        axis.set_xlim(0, 1.02)
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("confidence")
        axis.set_title(f"{model}, error {report['all'][model]['ece']:.3f}", fontsize=10)
    axes[0].set_ylabel("share that was right")
    figure.suptitle(f"{name}: is confidence calibrated? (area: windows in the bin)", fontsize=11, y=1.04)
    return figure


def speakers(plt: Any, report: dict[str, Any], name: str) -> Any:
    """Every speaker's accuracy."""
    rows = report["speakers"]
    corpora = sorted({r["corpus"] for r in rows.values()})
    figure, axis = plt.subplots(figsize=(8, 0.5 * len(corpora) + 1.2))
    jitter = np.random.default_rng(5)
    for y, corpus in enumerate(corpora):
        values = [r["accuracy"] for r in rows.values() if r["corpus"] == corpus]
        axis.scatter(values, y + jitter.uniform(-0.15, 0.15, len(values)), s=22, color=BLUE, alpha=0.7)
        axis.plot([np.mean(values)] * 2, [y - 0.3, y + 0.3], color=INK, linewidth=1.5)
    axis.set_yticks(range(len(corpora)), corpora)
    axis.set_xlim(0, 1.02)
    axis.set_xlabel("accuracy, 4 emotions; a dot is a speaker, a line their mean")
    axis.set_title(f"{name}: accuracy by speaker (validation speakers with 8 windows or more)", fontsize=10)
    return figure
