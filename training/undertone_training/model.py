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
    """The outputs for a batch of windows."""

    logits: dict[str, Tensor]  # model -> [batch, emotions]
    voice: Tensor  # [batch, frames]: logit of a voice
    feature: Tensor  # [batch, width]: input of the out-of-distribution score


class VoiceModel(nn.Module):
    """Samples in, logits of every model out."""

    ood_mean: Tensor
    ood_root: Tensor

    def __init__(self, encoder: Encoder, *, bed: bool = False, dropout: float = 0.2) -> None:
        super().__init__()
        width = encoder.width
        self.mel = LogMel(bed=bed)
        self.encoder = encoder
        self.layer_weights = nn.Parameter(torch.zeros(len(encoder.blocks) + 1))
        self.norm = nn.LayerNorm(width)
        self.voice = nn.Linear(width, 1)
        self.attention = nn.Sequential(nn.Linear(width, ATTENTION), nn.Tanh(), nn.Linear(ATTENTION, 1))
        self.embed = nn.Linear(2 * width, EMBEDDING)
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleDict({name: nn.Linear(EMBEDDING, size) for name, size in MODELS.items()})
        self.register_buffer("ood_mean", torch.zeros(width))
        self.register_buffer("ood_root", torch.zeros(width, width))

    def from_mel(self, mel: Tensor) -> Answer:
        """Answer from a log-mel spectrogram."""
        mixed, feature = self.encoder(mel, self.layer_weights.softmax(0))
        x = self.norm(mixed)
        summary = mean_and_deviation(x.float(), self.attention(x).float().softmax(1))
        embedding = self.dropout(F.gelu(self.embed(summary)))
        logits = {name: head(embedding) for name, head in self.heads.items()}
        return Answer(logits, self.voice(x).squeeze(2), feature)

    def forward(self, samples: Tensor) -> Answer:
        """Answer from raw samples."""
        return self.from_mel(self.mel(samples))

    def ood_score(self, feature: Tensor) -> Tensor:
        """[batch]: 1 for a typical unheard speaker of a known corpus, more for what is unfamiliar."""
        return ood.score(feature, self.ood_mean, self.ood_root)


def mean_and_deviation(x: Tensor, weight: Tensor) -> Tensor:
    """Over time, weighted: [batch, frames, width] -> [batch, 2 * width]."""
    mean = (x * weight).sum(1)
    deviation = ((x * x * weight).sum(1) - mean * mean).clamp(min=1e-5).sqrt()
    return torch.cat([mean, deviation], 1)


def speech_share(voice: Tensor) -> Tensor:
    """Share of frames with a voice in them, from their logits."""
    return voice.float().sigmoid().mean(1)
