"""Metrics. Needs only numpy. `truth` is label numbers, `probabilities` is [clips, classes]."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frontend import Array


def confusion(truth: Array, predicted: Array, classes: int) -> Array:
    """How often each class was predicted as each."""
    table = np.zeros((classes, classes), int)
    np.add.at(table, (truth, predicted), 1)
    return table


def recalls(table: Array) -> Array:
    """Recall of each class that occurs; nan for the others."""
    count = table.sum(1)
    return np.where(count > 0, np.diag(table) / np.maximum(count, 1), np.nan)


def calibration_error(truth: Array, probabilities: Array, bins: int = 10) -> float:
    """Expected calibration error of the top answer, equal-width bins."""
    confidence = probabilities.max(1)
    hit = probabilities.argmax(1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(
        sum(
            abs(hit[place == b].mean() - confidence[place == b].mean()) * (place == b).mean()
            for b in range(bins)
            if (place == b).any()
        )
    )


def summary(truth: Array, probabilities: Array) -> dict[str, Any]:
    """UAR, accuracy, macro-F1, calibration error and how much confidence exceeds accuracy."""
    classes = probabilities.shape[1]
    predicted = probabilities.argmax(1)
    table = confusion(truth, predicted, classes)
    recall = recalls(table)
    occurring = ~np.isnan(recall)
    precision = np.diag(table) / np.maximum(table.sum(0), 1)
    recall0 = np.nan_to_num(recall)
    f1 = 2 * precision * recall0 / np.maximum(precision + recall0, 1e-12)
    accuracy = float((predicted == truth).mean())
    return {
        "clips": len(truth),
        "uar": float(recall[occurring].mean()),
        "accuracy": accuracy,
        "macro_f1": float(f1[occurring].mean()),
        "ece": calibration_error(truth, probabilities),
        "overconfidence": float(probabilities.max(1).mean() - accuracy),
        "recalls": [None if np.isnan(r) else round(float(r), 4) for r in recall],
    }
