"""How strange a voice is to a model: how unlike the voices that the model learned from it sounds.

A model is as sure of itself with a stranger as at home, and wrong more often. What is strange is answered more modestly.
Two views are taken of every window, since some strangers show in one of them only: what the encoder makes of it, and its
plain spectrum, which knows little of emotions and much of languages, microphones and rooms. What the encoder makes of it
is the words, if it was taught to know them (words.py), or else what it sums up for the answer.
"""
from dataclasses import dataclass

import numpy as np

from .frontend import MELS, WIDTH


@dataclass
class View:
    width: int
    directions: int  # those in which known voices differ least: a stranger shows there first
    shrink: float  # share of the mean variance that each direction has at least, so that none counts without end


VIEWS = {
    "words": View(WIDTH, 128, 0.01),
    "summary": View(2 * WIDTH, 256, 0.01),
    "spectrum": View(2 * MELS, 2 * MELS, 0.03),
}


def views_of(knows_words):
    """The names of the views by which a model tells strangers."""
    return ("words" if knows_words else "summary", "spectrum")


def measure(trained, unheard, view):
    """trained, unheard: what is seen of each corpus, of voices learnt from and of others.

    -> (mean, root): |(seen - mean) @ root|^2 is the strangeness, 1 for a typical voice that was not heard.
    """
    mean = np.mean([x.mean(0) for x in trained], 0)
    spread = np.mean([(x - mean).T @ (x - mean) / len(x) for x in trained], 0)
    variance, directions = np.linalg.eigh(spread)  # the smallest first
    variance = np.maximum(variance, 0) + view.shrink * variance.mean()
    root = (directions / np.sqrt(variance))[:, : view.directions]
    typical = np.median([np.median(strangeness(x, mean, root)) for x in unheard or trained])
    return mean, root / np.sqrt(max(typical, 1e-9))


def strangeness(seen, mean, root):
    """Of arrays or of tensors."""
    return (((seen - mean) @ root) ** 2).sum(-1)
