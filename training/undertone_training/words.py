"""Teaches a model again to know words, by which it tells strangers (familiar.py).

Whisper's encoder knows words. A model that learns emotions forgets them, and with them the best sign that a recording
is unlike those it learned from: most corpora have all their actors say the same few sentences, so that words tell a
corpus better than rooms or voices do. Here the last block learns to say again what the untouched encoder would say.
"""
import torch
from torch import nn

from .encoder import Encoder, halve
from .frontend import WIDTH

SHRINK = 0.02  # share of the mean variance that each direction has at least, so that none is asked for without end
FRAMES = 0.1  # weight of single frames beside the mean over time


class WordEar(nn.Module):
    def __init__(self, training, device):
        super().__init__()
        self.whisper = Encoder(training.layers)
        self.whisper.load_pretrained(training.encoder)
        self.whisper.requires_grad_(False)
        self.halvings = len(training.halve_after)
        self.guess = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("root", torch.eye(WIDTH))
        self.to(device)

    @torch.no_grad()
    def words(self, mel):
        """What the untouched encoder hears, at the frame rate of the model, in directions that all vary alike."""
        states = self.whisper(mel, torch.zeros(len(self.whisper.blocks) + 1, device=mel.device))[1].float()
        for _ in range(self.halvings):
            states = halve(states)
        return (states - self.mean) @ self.root

    @torch.no_grad()
    def settle(self, mels):
        """Measures how windows differ. The guess begins as if the model were still the untouched encoder."""
        means = torch.cat([self.words(mel).mean(1) for mel in mels]).double()
        mean = means.mean(0)
        variance, directions = torch.linalg.eigh((means - mean).T @ (means - mean) / len(means))
        variance = variance.clamp(min=0) + SHRINK * variance.mean()
        self.mean.copy_(mean)
        self.root.copy_(directions / variance.sqrt())
        self.guess.weight.copy_(self.root.T)
        self.guess.bias.copy_(-self.mean @ self.root)

    def loss(self, mel, last):
        wanted = self.words(mel)
        frames = min(wanted.shape[1], last.shape[1])
        wanted, guess = wanted[:, :frames], self.guess(last[:, :frames]).float()
        return (guess.mean(1) - wanted.mean(1)).pow(2).mean() + FRAMES * (guess - wanted).pow(2).mean()
