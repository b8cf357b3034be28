"""Training windows, built where the model is: clips of one speaker and one emotion laid one after another."""
from dataclasses import dataclass

import numpy as np
import torch

from .augment import augment
from .labels import EMOTIONS
from .pack import HOP
from .quiet import quiet_twins
from .sounds import not_a_voice

RATE = 16000
CLIPS = 3  # clips laid after another in one window at the most
LEVELLED = 0.85  # share of windows whose noise is brought to a level drawn at random


@dataclass
class Batch:
    samples: torch.Tensor  # [batch, n]
    emotion: torch.Tensor  # [batch], number in EMOTIONS
    target: torch.Tensor  # [batch, 7] soft label
    known: torch.Tensor  # [batch] is there enough voice to ask for an emotion?
    voice: torch.Tensor  # [batch, n / HOP] is somebody speaking?
    corpus: torch.Tensor  # [batch]


class BatchMaker:
    def __init__(self, pack, keep, weights, votes, device, seed, silence=0.07):
        """keep: which clips to train on. weights: corpus -> how often. votes: share of the listeners in soft labels."""
        self.device, self.silence = device, silence
        self.generator = torch.Generator(device=device).manual_seed(seed)
        order = sorted(np.flatnonzero(keep), key=lambda i: self._group(pack.clips[i]))
        # Only the clips to train on are here: not even as talk in the background may a measured voice be heard.
        steps = -(-pack.length[order] // HOP)
        begin = pack.start[order] // HOP
        self.samples = torch.from_numpy(np.concatenate(
            [pack.samples[b * HOP : (b + n) * HOP] for b, n in zip(begin, steps)])).to(device)
        self.voice = torch.from_numpy(np.concatenate([pack.voice[b : b + n] for b, n in zip(begin, steps)])).to(device)
        self.start = torch.from_numpy((np.cumsum(steps) - steps) * HOP).to(device)
        self.length = torch.from_numpy(pack.length[order]).to(device)
        self.quiet, self.ratio = quiet_twins(self.samples, self.start, self.length)
        groups = [self._group(pack.clips[i]) for i in order]
        first = [i for i in range(len(groups)) if i == 0 or groups[i] != groups[i - 1]]
        sizes = np.diff([*first, len(groups)])
        names = [groups[i] for i in first]
        self.first, self.size = torch.tensor(first, device=device), torch.from_numpy(sizes).to(device)
        self.chance = torch.from_numpy(self._chances(names, sizes, weights)).to(device)
        self.group_emotion = torch.tensor([n[2] for n in names], device=device)
        self.corpora = sorted({n[0] for n in names})
        self.group_corpus = torch.tensor([self.corpora.index(n[0]) for n in names], device=device)
        self.targets = torch.from_numpy(soft_labels([pack.clips[i] for i in order], votes)).to(device)

    @staticmethod
    def _group(clip):
        return clip.corpus, clip.speaker, clip.emotion, clip.part

    @staticmethod
    def _chances(names, sizes, weights):
        """Emotions of a corpus come equally often; within one, speakers by the root of how much they said."""
        chance = np.sqrt(sizes.astype(np.float64))
        total = {}
        for name, c in zip(names, chance):
            total[name[0], name[2]] = total.get((name[0], name[2]), 0) + c
        emotions = {}
        for name in names:
            emotions.setdefault(name[0], set()).add(name[2])
        return np.array([c / total[n[0], n[2]] / len(emotions[n[0]]) * weights.get(n[0], 1.0)
                         for n, c in zip(names, chance)])

    def _rand(self, *shape):
        return torch.rand(*shape, device=self.device, generator=self.generator)

    def _gather(self, position, begin, length, quiet):
        """Samples at fractional positions of clips, 0 outside them; `quiet` is the share of the twin without noise."""
        inside = (position >= 0) & (position < length - 1)
        whole = position.clamp(min=0).floor()
        part = (position - whole).clamp(0, 1)
        index = torch.where(inside, begin + whole.long(), torch.zeros_like(begin))
        a, b = (torch.lerp(self.samples[i].float(), self.quiet[i].float(), quiet) for i in (index, index + 1))
        return torch.where(inside, a + (b - a) * part, torch.zeros_like(part)) / 32768

    def make(self, count, seconds, alone=False, plain=False):
        """alone: one clip from its beginning instead of several at random offsets."""
        device, samples = self.device, int(seconds * RATE)
        group = torch.multinomial(self.chance, count, replacement=True, generator=self.generator)
        pick = self.first[group][:, None] + (self._rand(count, CLIPS) * self.size[group][:, None]).long()
        length = self.length[pick].double()
        begin = self.start[pick]
        speed = torch.where(self._rand(count, 1) < 0.5, 0.88 + 0.24 * self._rand(count, 1), torch.ones(1, device=device))
        gaps = 0.02 + 0.5 * self._rand(count, CLIPS) ** 2
        laid = length / speed + gaps * RATE
        # The window begins inside the first clip, or a little before it when one clip is to be heard alone.
        offset = -(self._rand(count) * laid[:, 0] * 0.9) if not alone else self._rand(count).double() * 0.2 * RATE
        offset = torch.where(self._rand(count) < 0.3, self._rand(count).double() * 0.3 * RATE, offset)
        starts = offset[:, None] + torch.cumsum(laid, 1) - laid
        few = 1 if alone else CLIPS
        sparse = self._rand(count) < 0.12  # windows that hold a voice only in part
        # The noise under the voice is turned down, or (in augment) added, to a ratio that no emotion can be told from.
        ratio = 4 + 42 * self._rand(count, 1)
        levelled = self._rand(count, 1) < LEVELLED
        quiet = (1 - 10 ** ((self.ratio[pick] - ratio) / 20)).clamp(0, 1) * levelled
        x = torch.zeros(count, samples, device=device)
        grid = torch.arange(samples, device=device, dtype=torch.float64)[None]
        frames = torch.arange(0, samples, HOP, device=device, dtype=torch.float64)[None] + HOP / 2
        voice = torch.zeros(count, frames.shape[1], device=device)
        heard = torch.zeros(count, CLIPS, device=device)
        for k in range(few):
            on = torch.ones_like(sparse) if k == 0 else ~sparse
            at = (grid - starts[:, k : k + 1]) * speed
            x += self._gather(at, begin[:, k : k + 1], length[:, k : k + 1], quiet[:, k : k + 1]) * on[:, None]
            at = (frames - starts[:, k : k + 1]) * speed
            inside = (at >= 0) & (at < length[:, k : k + 1])
            index = torch.where(inside, (begin[:, k : k + 1] + at.long()) // HOP, torch.zeros_like(at.long()))
            flags = self.voice[index].float() * inside * on[:, None]
            voice = torch.maximum(voice, flags)
            heard[:, k] = flags.sum(1)
        target = (self.targets[pick] * heard[..., None]).sum(1) / heard.sum(1).clamp(min=1)[:, None]
        emotion = self.group_emotion[group]
        if not plain:
            x = augment(x, self._babble(count, samples), ratio, levelled, self.generator)
            quiet = max(1, round(count * self.silence))
            x[:quiet] = not_a_voice(quiet, samples, device, self.generator)
            voice[:quiet] = 0
        known = voice.mean(1) > 0.12
        return Batch(x, emotion, target, known, voice, self.group_corpus[group])

    def _babble(self, count, samples, talkers=5):
        total = torch.zeros(count, samples, device=self.device)
        last = len(self.samples) - samples - 1
        for _ in range(talkers):
            begin = (self._rand(count, 1) * max(last, 0)).long()
            index = (begin + torch.arange(samples, device=self.device)[None]) % len(self.samples)
            part = self.samples[index].float()
            total += part / part.pow(2).mean(1, keepdim=True).sqrt().clamp(min=30)
        return total


def soft_labels(clips, votes):
    """What was meant, mixed with what listeners heard where they were asked."""
    labels = np.zeros((len(clips), len(EMOTIONS)), np.float32)
    for row, clip in zip(labels, clips):
        row[clip.emotion] = 1
        if clip.votes is not None and votes > 0:
            row[:] = (1 - votes) * row + votes * np.array(clip.votes)
    return labels
