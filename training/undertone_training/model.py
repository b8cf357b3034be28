"""The voice model: encoder, a learned mix of its layers, weighted statistics over time, one head per model.

A second output tells frame by frame whether there is a voice at all; where there is none, the answer is flat.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from .encoder import Encoder, LogMel
from .familiar import VIEWS, strangeness, views_of
from .frontend import WIDTH
from .labels import MODELS

EMBEDDING = 256
ATTENTION = 128


@dataclass
class Heard:
    summary: torch.Tensor  # [batch, 2 * WIDTH]: mean and deviation over time, all that the heads answer from
    last: torch.Tensor  # [batch, frames, WIDTH]: the states of the last block, which know the words (words.py)
    voice: torch.Tensor  # [batch, frames]: logit of a voice


class VoiceModel(nn.Module):
    def __init__(self, layers=6, halve_after=(), dropout=0.2, knows_words=False):
        super().__init__()
        self.mel = LogMel()
        self.encoder = Encoder(layers, halve_after)
        self.layer_weights = nn.Parameter(torch.zeros(layers + 1))
        self.norm = nn.LayerNorm(WIDTH)
        self.voice = nn.Linear(WIDTH, 1)
        self.attention = nn.Sequential(nn.Linear(WIDTH, ATTENTION), nn.Tanh(), nn.Linear(ATTENTION, 1))
        self.embed = nn.Linear(2 * WIDTH, EMBEDDING)
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleDict({name: nn.Linear(EMBEDDING, size) for name, size in MODELS.items()})
        self.views = views_of(knows_words)
        for name in self.views:
            view = VIEWS[name]
            self.register_buffer(f"familiar_{name}_mean", torch.zeros(view.width))
            self.register_buffer(f"familiar_{name}_root", torch.zeros(view.width, view.directions))

    def hear(self, mel):
        mixed, last = self.encoder(mel, self.layer_weights.softmax(0))
        x = self.norm(mixed)
        return Heard(mean_and_deviation(x.float(), self.attention(x).float().softmax(1)), last, self.voice(x).squeeze(2))

    def answer(self, summary):
        """-> logits of each head."""
        embedding = self.dropout(F.gelu(self.embed(summary)))
        return {name: head(embedding) for name, head in self.heads.items()}

    def seen(self, mel, heard):
        """All views of each window (familiar.py)."""
        return {"words": heard.last.float().mean(1), "summary": heard.summary, "spectrum": spectrum(mel)}

    def strangeness(self, seen):
        """Of each view of the windows; the mean of them counts."""
        each = [strangeness(seen[name], getattr(self, f"familiar_{name}_mean"), getattr(self, f"familiar_{name}_root"))
                for name in self.views]
        return sum(each) / len(each)

    def from_mel(self, mel):
        heard = self.hear(mel)
        return self.answer(heard.summary), heard.voice

    def forward(self, samples):
        return self.from_mel(self.mel(samples))


def mean_and_deviation(x, weight):
    """Over time, weighted: [batch, frames, width] -> [batch, 2 * width]."""
    mean = (x * weight).sum(1)
    deviation = ((x * x * weight).sum(1) - mean * mean).clamp(min=1e-5).sqrt()
    return torch.cat([mean, deviation], 1)


def spectrum(mel):
    """Mean and deviation over time of each band of the log-mel."""
    return mean_and_deviation(mel.transpose(1, 2), 1 / mel.shape[2])


def speech_share(voice):
    """Share of frames with a voice in them, from their logits."""
    return voice.float().sigmoid().mean(1)
