"""Turns logits into probabilities that mean what they say. numpy alone."""
import numpy as np

from .frontend import FULL_SPEECH
from .metrics import calibration_error


# The temperature grows with how strange the voice is (familiar.py); no voice is so familiar that more than this is made
# of it.
LEAST_STRANGE = 0.5
COOLEST, HOTTEST = 0.4, 4.0  # temperatures that may be chosen


def probabilities(logits, speech, strange, temperature):
    """What the exported graph computes: softmax at a temperature, flattened where speech is missing."""
    z = logits / (temperature * np.maximum(strange, LEAST_STRANGE))[:, None]
    z = np.exp(z - z.max(1, keepdims=True))
    amount = np.clip(speech / FULL_SPEECH, 0, 1)[:, None]
    return amount * z / z.sum(1, keepdims=True) + (1 - amount) / logits.shape[1]


def loss(truth, logits, speech, strange, temperature):
    p = probabilities(logits, speech, strange, temperature)
    return float(-np.log(p[np.arange(len(truth)), truth] + 1e-9).mean())


def fit_temperature(groups, grid=np.geomspace(0.3, 6.0, 150)):
    """One temperature for several groups of (truth, logits, speech, strangeness), each counting the same whatever its size."""
    return float(min(grid, key=lambda t: np.mean([loss(*group, t) for group in groups])))


def pooled_error(groups, temperature):
    """Calibration error over all windows together."""
    truth, *said = (np.concatenate([g[i] for g in groups]) for i in range(4))
    return calibration_error(truth, probabilities(*said, temperature))


def choose_temperature(validation, left_out=(), limit=0.051):
    """The temperature of the left-out corpora, or as near to it as the validation speakers allow.

    A temperature fitted on known corpora is far too sure of itself on other people's recordings; one fitted on
    recordings from elsewhere is too modest at home. `limit` is how wrong confidence may be at home.
    """
    at_home = fit_temperature(validation)
    highest = max(at_home, fit_temperature(left_out)) if left_out else HOTTEST
    steps = [t for t in np.geomspace(min(COOLEST, at_home), HOTTEST, 300) if t <= highest]
    found = {float(t): pooled_error(validation, t) for t in steps}
    allowed = [t for t, error in found.items() if error <= limit]
    return max(allowed, default=min(found, key=found.get))
