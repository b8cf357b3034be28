"""The voice model: encoder, a learned mix of its layers, weighted statistics over time, one head per model.

A second output tells frame by frame whether there is a voice at all; where there is none, the answer is flat.
"""
import torch
from torch import nn
from torch.nn import functional as F

from .encoder import Encoder, LogMel
from .familiar import VIEWS, strangeness
from .frontend import WIDTH
from .labels import MODELS

EMBEDDING = 256
ATTENTION = 128


class VoiceModel(nn.Module):
    def __init__(self, layers=6, halve_after=(), dropout=0.2):
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
        for name, view in VIEWS.items():
            self.register_buffer(f"familiar_{name}_mean", torch.zeros(view.width))
            self.register_buffer(f"familiar_{name}_root", torch.zeros(view.width, view.directions))

    def summarise(self, mel):
        """-> mean and deviation over time, [batch, 2 * WIDTH], and the logit of voice in each frame."""
        x = self.norm(self.encoder(mel, self.layer_weights.softmax(0)))
        voice = self.voice(x).squeeze(2)
        return mean_and_deviation(x.float(), self.attention(x).float().softmax(1)), voice

    def answer(self, summary):
        """-> logits of each head."""
        embedding = self.dropout(F.gelu(self.embed(summary)))
        return {name: head(embedding) for name, head in self.heads.items()}

    def strangeness(self, **seen):
        """Of each view of the windows; the mean of them counts."""
        each = [strangeness(view, getattr(self, f"familiar_{name}_mean"), getattr(self, f"familiar_{name}_root"))
                for name, view in seen.items()]
        return sum(each) / len(each)

    def from_mel(self, mel):
        summary, voice = self.summarise(mel)
        return self.answer(summary), voice

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
