"""How strange a voice is to a model: how unlike the voices that the model learned from its sound is summed up.

A model is as sure of itself with a stranger as at home, and wrong more often. What is strange is answered more modestly.
"""
import numpy as np

DIRECTIONS = 256  # in which known voices differ least: a stranger shows there first
SHRINK = 0.01  # share of the mean variance that each direction has at least, so that none counts without end


def measure(trained, unheard):
    """trained, unheard: summaries of each corpus, of voices learnt from and of others.

    -> (mean, root): |(summary - mean) @ root|^2 is the strangeness, 1 for a typical voice that was not heard.
    """
    mean = np.mean([x.mean(0) for x in trained], 0)
    spread = np.mean([(x - mean).T @ (x - mean) / len(x) for x in trained], 0)
    variance, directions = np.linalg.eigh(spread)  # the smallest first
    variance = np.maximum(variance, 0) + SHRINK * variance.mean()
    root = (directions / np.sqrt(variance))[:, :DIRECTIONS]
    typical = np.median([np.median(strangeness(x, mean, root)) for x in unheard or trained])
    return mean, root / np.sqrt(max(typical, 1e-9))


def strangeness(summary, mean, root):
    return (((summary - mean) @ root) ** 2).sum(-1)
