"""
A Mahalanobis out-of-distribution score: how unlike the training windows a window is.

On unfamiliar recordings a model is as confident as on known ones, and wrong more often. So the temperature of its
probabilities grows with this score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .frontend import Array

# Share of the mean variance that is added to every direction, so that none counts without end.
SHRINKAGE = 0.02


def fit(trained: Sequence[Array], unheard: Sequence[Array]) -> tuple[Array, Array]:
    """
    Fit the score to features of each training corpus and of each corpus's unheard speakers.

    -> (mean, root): |(feature - mean) @ root| is the Mahalanobis distance, 1 for a typical unheard speaker.
    """
    mean = np.mean([x.mean(0) for x in trained], 0)
    covariance = np.mean([(x - mean).T @ (x - mean) / len(x) for x in trained], 0)
    variance, directions = np.linalg.eigh(covariance)
    root = directions / np.sqrt(np.maximum(variance, 0) + SHRINKAGE * variance.mean())
    typical = np.median([np.median(score(x, mean, root)) for x in unheard or trained])
    return mean, root / max(typical, 1e-9)


def score(features: Array, mean: Array, root: Array) -> Array:
    """Of arrays or of tensors."""
    return (((features - mean) @ root) ** 2).sum(-1) ** 0.5
