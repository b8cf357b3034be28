"""Temperature scaling: makes probabilities match how often they are right. Needs only numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .frontend import FULL_SPEECH, Array
from .metrics import calibration_error

# The temperature grows with the third power of the out-of-distribution score; below this score it stays as it is.
LEAST_OOD, OOD_POWER = 0.7, 3
LOWEST, HIGHEST = 0.4, 4.0  # temperatures that may be chosen

Group = tuple[Array, Array, Array, Array]  # truth, logits, share of speech, out-of-distribution score


def probabilities(logits: Array, speech: Array, ood: Array, temperature: float) -> Array:
    """What the exported graph computes: softmax at a temperature, flattened where speech is missing."""
    z = logits / (temperature * np.maximum(ood, LEAST_OOD) ** OOD_POWER)[:, None]
    z = np.exp(z - z.max(1, keepdims=True))
    amount = np.clip(speech / FULL_SPEECH, 0, 1)[:, None]
    return amount * z / z.sum(1, keepdims=True) + (1 - amount) / logits.shape[1]


def loss(group: Group, temperature: float) -> float:
    """Negative log likelihood."""
    truth, logits, speech, ood = group
    p = probabilities(logits, speech, ood, temperature)
    return float(-np.log(p[np.arange(len(truth)), truth] + 1e-9).mean())


def fit_temperature(groups: Sequence[Group]) -> float:
    """Return one temperature for several corpora, each counting the same whatever its size."""
    return float(min(np.geomspace(0.3, 6.0, 150), key=lambda t: np.mean([loss(group, t) for group in groups])))


def pooled_error(groups: Sequence[Group], temperature: float) -> float:
    """Calibration error over all windows together."""
    truth, logits, speech, ood = (np.concatenate([g[i] for g in groups]) for i in range(4))
    return calibration_error(truth, probabilities(logits, speech, ood, temperature))


def choose_temperature(validation: Sequence[Group], left_out: Sequence[Group] = (), limit: float = 0.05) -> float:
    """
    Return the temperature of the left-out corpora, or as near to it as the validation speakers allow.

    A temperature fitted on known corpora is overconfident on other recordings; one fitted on those is
    underconfident on known corpora. `limit` is the highest calibration error on the validation speakers.
    """
    at_home = fit_temperature(validation)
    highest = max(at_home, fit_temperature(left_out)) if left_out else HIGHEST
    steps = [t for t in np.geomspace(min(LOWEST, at_home), HIGHEST, 300) if t <= highest]
    found = {float(t): pooled_error(validation, t) for t in steps}
    allowed = [t for t, error in found.items() if error <= limit]
    return max(allowed, default=min(found, key=lambda t: found[t]))
