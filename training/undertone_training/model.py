"""
The voice model: encoder, a learned mix of its layers, weighted statistics over time, one head for each model.

A second output tells frame by frame whether there is a voice at all; where there is none, the answer is flat.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import ood
from .encoder import Encoder, LogMel
from .labels import MODELS

EMBEDDING = 256
ATTENTION = 128


class Answer(NamedTuple):
    """What the model says about a batch of windows."""

    logits: dict[str, Tensor]  # model -> [batch, emotions]
    voice: Tensor  # [batch, frames]: logit of a voice
    features: dict[str, Tensor]  # what the out-of-distribution score looks at


class VoiceModel(nn.Module):
    """Samples in, logits of every model out."""

    def __init__(self, encoder: Encoder, dropout: float = 0.2) -> None:
        super().__init__()
        width = encoder.width
        self.mel = LogMel()
        self.encoder = encoder
        self.layer_weights = nn.Parameter(torch.zeros(len(encoder.blocks) + 1))
        self.norm = nn.LayerNorm(width)
        self.voice = nn.Linear(width, 1)
        self.attention = nn.Sequential(nn.Linear(width, ATTENTION), nn.Tanh(), nn.Linear(ATTENTION, 1))
        self.embed = nn.Linear(2 * width, EMBEDDING)
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleDict({name: nn.Linear(EMBEDDING, size) for name, size in MODELS.items()})
        for name, size in ood.feature_width(width).items():
            self.register_buffer(f"ood_{name}_mean", torch.zeros(size))
            self.register_buffer(f"ood_{name}_root", torch.zeros(size, size))

    def from_mel(self, mel: Tensor) -> Answer:
        """Answer from a log-mel spectrogram."""
        mixed, middle = self.encoder(mel, self.layer_weights.softmax(0))
        x = self.norm(mixed)
        summary = mean_and_deviation(x.float(), self.attention(x).float().softmax(1))
        embedding = self.dropout(F.gelu(self.embed(summary)))
        logits = {name: head(embedding) for name, head in self.heads.items()}
        return Answer(logits, self.voice(x).squeeze(2), {"middle": middle, "spectrum": spectrum(mel)})

    def forward(self, samples: Tensor) -> Answer:
        """Answer from raw samples."""
        return self.from_mel(self.mel(samples))

    def ood_score(self, features: dict[str, Tensor]) -> Tensor:
        """The mean of the scores of all features."""
        scores = [
            ood.score(x, getattr(self, f"ood_{n}_mean"), getattr(self, f"ood_{n}_root")) for n, x in features.items()
        ]
        return torch.stack(scores).mean(0)


def mean_and_deviation(x: Tensor, weight: Tensor | float) -> Tensor:
    """Over time, weighted: [batch, frames, width] -> [batch, 2 * width]."""
    mean = (x * weight).sum(1)
    deviation = ((x * x * weight).sum(1) - mean * mean).clamp(min=1e-5).sqrt()
    return torch.cat([mean, deviation], 1)


def spectrum(mel: Tensor) -> Tensor:
    """Mean and deviation over time of each band of the log-mel."""
    return mean_and_deviation(mel.transpose(1, 2), 1 / mel.shape[2])


def speech_share(voice: Tensor) -> Tensor:
    """Share of frames with a voice in them, from their logits."""
    return voice.float().sigmoid().mean(1)
