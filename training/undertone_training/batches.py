"""Training windows, built where the model is: clips of one speaker and one emotion laid end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .augment import augment
from .config import Training
from .corpora import Clip
from .denoise import denoised
from .frontend import HOP, SAMPLE_RATE, Array
from .labels import EMOTIONS
from .pack import Pack
from .sounds import not_a_voice

CLIPS = 3  # most clips in one window
SILENT = 0.07  # share of windows without a voice
BABBLE, TALKERS = 0.3, 5  # share of windows with babble, and its number of talkers


class Batch(NamedTuple):
    """Windows with what is known of them."""

    samples: Tensor  # [batch, n]
    emotion: Tensor  # [batch], number in EMOTIONS
    target: Tensor  # [batch, 7] soft label
    known: Tensor  # [batch] is there enough speech for an emotion?
    voice: Tensor  # [batch, n / HOP] 1 where there is speech


class Voices:
    """All clips on the training device, as they are and without their noise."""

    def __init__(self, pack: Pack, device: str) -> None:
        self.pack, self.device = pack, device
        self.samples = torch.from_numpy(pack.samples).to(device)
        self.voice = torch.from_numpy(pack.voice).to(device)
        self.start = torch.from_numpy(pack.start).to(device)
        self.length = torch.from_numpy(pack.length).to(device)
        self.denoised, self.noise_db = denoised(self.samples, self.start, self.length)


Group = tuple[str, str, int, str]


class BatchMaker:
    """Draws augmented windows from the clips to train on."""

    def __init__(
        self,
        voices: Voices,
        keep: Array,
        weights: Mapping[str, float],
        training: Training,
        *,
        seed: int,
        levelling: float,
    ) -> None:
        """keep: which clips to train on. weights: corpus -> how often. levelling: see config."""
        self.voices, self.device, self.colour, self.levelling = voices, voices.device, training.colouring, levelling
        self.generator = torch.Generator(device=self.device).manual_seed(seed)
        clips = voices.pack.clips
        order = sorted(np.flatnonzero(keep), key=lambda i: _group(clips[i]))
        groups = [_group(clips[i]) for i in order]
        first = [i for i in range(len(groups)) if i == 0 or groups[i] != groups[i - 1]]
        sizes = np.diff([*first, len(groups)])
        names = [groups[i] for i in first]
        self.clip = torch.tensor(np.array(order), device=self.device)
        self.first, self.size = torch.tensor(first, device=self.device), torch.from_numpy(sizes).to(self.device)
        self.chance = torch.from_numpy(_chances(names, sizes, weights)).to(self.device)
        self.emotion = torch.tensor([n[2] for n in names], device=self.device)
        self.targets = torch.from_numpy(soft_labels(clips, training.votes)).to(self.device)

    def _rand(self, *shape: int) -> Tensor:
        return torch.rand(*shape, device=self.device, generator=self.generator)

    def _gather(self, position: Tensor, begin: Tensor, length: Tensor, clean: Tensor) -> Tensor:
        """Samples at fractional positions of clips, 0 outside them; `clean` is the share of the denoised twin."""
        voices = self.voices
        inside = (position >= 0) & (position < length - 1)
        whole = position.clamp(min=0).floor()
        part = (position - whole).clamp(0, 1).float()
        index = torch.where(inside, begin + whole.long(), torch.zeros_like(begin))
        a, b = (torch.lerp(voices.samples[i].float(), voices.denoised[i].float(), clean) for i in (index, index + 1))
        return torch.where(inside, a + (b - a) * part, torch.zeros_like(part)) / 32768

    def make(self, count: int, seconds: float, *, alone: bool = False) -> Batch:
        """alone: one clip from its beginning instead of several at random offsets."""
        device, samples = self.device, int(seconds * SAMPLE_RATE)
        group = torch.multinomial(self.chance, count, replacement=True, generator=self.generator)
        pick = self.clip[self.first[group][:, None] + (self._rand(count, CLIPS) * self.size[group][:, None]).long()]
        length = self.voices.length[pick].double()
        begin = self.voices.start[pick]
        speed = torch.where(
            self._rand(count, 1) < 0.5, 0.88 + 0.24 * self._rand(count, 1), torch.ones(1, device=device)
        )
        gaps = 0.02 + 0.5 * self._rand(count, CLIPS) ** 2
        laid = length / speed + gaps * SAMPLE_RATE
        # The window begins inside the first clip, or a little before it when it holds one clip alone.
        offset = self._rand(count).double() * 0.2 * SAMPLE_RATE if alone else -(self._rand(count) * laid[:, 0] * 0.9)
        offset = torch.where(self._rand(count) < 0.3, self._rand(count).double() * 0.3 * SAMPLE_RATE, offset)
        starts = offset[:, None] + torch.cumsum(laid, 1) - laid
        sparse = self._rand(count) < 0.12  # windows that hold a voice only in part
        # The noise under the voice is turned down, or (in augment) added, to a ratio that no emotion can be told from.
        ratio = 4 + 42 * self._rand(count, 1)
        levelled = self._rand(count, 1) < self.levelling
        clean = (1 - 10 ** ((self.voices.noise_db[pick] - ratio) / 20)).clamp(0, 1) * levelled
        x = torch.zeros(count, samples, device=device)
        grid = torch.arange(samples, device=device, dtype=torch.float64)[None]
        frames = torch.arange(0, samples, HOP, device=device, dtype=torch.float64)[None] + HOP / 2
        voice = torch.zeros(count, frames.shape[1], device=device)
        heard = torch.zeros(count, CLIPS, device=device)
        for k in range(1 if alone else CLIPS):
            on = torch.ones_like(sparse) if k == 0 else ~sparse
            one = slice(k, k + 1)
            at = (grid - starts[:, one]) * speed
            x += self._gather(at, begin[:, one], length[:, one], clean[:, one]) * on[:, None]
            at = (frames - starts[:, one]) * speed
            inside = (at >= 0) & (at < length[:, one])
            index = torch.where(inside, (begin[:, one] + at.long()) // HOP, torch.zeros_like(at.long()))
            flags = self.voices.voice[index].float() * inside * on[:, None]
            voice = torch.maximum(voice, flags)
            heard[:, k] = flags.sum(1)
        target = (self.targets[pick] * heard[..., None]).sum(1) / heard.sum(1).clamp(min=1)[:, None]
        babble = self._babble(round(count * BABBLE), samples)
        x = augment(x, babble, ratio, levelled, colour=self.colour, g=self.generator)
        silent = max(1, round(count * SILENT))
        x[:silent] = not_a_voice(silent, samples, device, self.generator)
        voice[:silent] = 0
        return Batch(x, self.emotion[group], target, voice.mean(1) > 0.12, voice)

    def _babble(self, count: int, samples: int) -> Tensor:
        """Several people at once, each repeating one clip. Only training clips: no measured voice is used."""
        total = torch.zeros(count, samples, device=self.device)
        grid = torch.arange(samples, device=self.device)[None]
        for _ in range(TALKERS):
            pick = self.clip[(self._rand(count, 1) * len(self.clip)).long()]
            length = self.voices.length[pick]
            position = (grid + (self._rand(count, 1) * length).long()) % length
            part = self.voices.samples[self.voices.start[pick] + position].float()
            total += part / part.pow(2).mean(1, keepdim=True).sqrt().clamp(min=30)
        return total


def _group(clip: Clip) -> Group:
    return clip.corpus, clip.speaker, clip.emotion, clip.part


def _chances(names: Sequence[Group], sizes: Array, weights: Mapping[str, float]) -> Array:
    """Emotions of a corpus come equally often; within one, speakers by the root of how much they said."""
    chance = np.sqrt(sizes.astype(np.float64))
    total: dict[tuple[str, int], float] = {}
    emotions: dict[str, set[int]] = {}
    for (corpus, _, emotion, _), c in zip(names, chance):
        total[corpus, emotion] = total.get((corpus, emotion), 0) + c
        emotions.setdefault(corpus, set()).add(emotion)
    return np.array(
        [c / total[n[0], n[2]] / len(emotions[n[0]]) * weights.get(n[0], 1.0) for n, c in zip(names, chance)]
    )


def soft_labels(clips: Sequence[Clip], votes: float) -> Array:
    """The intended emotion, mixed with the votes of listeners where there are any."""
    labels = np.zeros((len(clips), len(EMOTIONS)), np.float32)
    for row, clip in zip(labels, clips):
        row[clip.emotion] = 1
        if clip.votes is not None and votes > 0:
            row[:] = (1 - votes) * row + votes * np.array(clip.votes)
    return labels
