"""How strange a voice is to a model: how far its embedding lies from those of the voices the model learned from.

A model is as sure of itself with a stranger as at home, and wrong more often. What is strange is answered more modestly.
"""
import numpy as np

SHRINK = 0.01  # share of a round cloud mixed into the measured one, so that no direction counts without end


def measure(trained, unheard):
    """trained, unheard: embeddings of each corpus, of voices learnt from and of others.

    -> (mean, root): |(embedding - mean) @ root|^2 is the strangeness, 1 for a typical voice that was not heard.
    """
    mean = np.mean([x.mean(0) for x in trained], 0)
    spread = np.mean([(x - mean).T @ (x - mean) / len(x) for x in trained], 0)
    spread = spread + SHRINK * np.trace(spread) / len(spread) * np.eye(len(spread))
    root = np.linalg.cholesky(np.linalg.inv(spread))
    typical = np.median([np.median(strangeness(x, mean, root)) for x in unheard or trained])
    return mean, root / np.sqrt(max(typical, 1e-9))


def strangeness(embedding, mean, root):
    return (((embedding - mean) @ root) ** 2).sum(-1)
