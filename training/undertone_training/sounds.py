"""Sounds that are not a voice, made on the spot: the model must learn to say nothing about them."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch import Tensor

from .frontend import SAMPLE_RATE

Device: TypeAlias = "torch.device | str"
Generator: TypeAlias = "torch.Generator | None"


def coloured_noise(count: int, samples: int, slope: Tensor, device: Device, generator: Generator = None) -> Tensor:
    """Noise whose power falls with frequency to the power of `slope` ([count], 0 white, 1 pink, 2 brown)."""
    bins = samples // 2 + 1
    frequency = torch.arange(1, bins + 1, device=device, dtype=torch.float32)
    shape = frequency[None] ** (-slope[:, None] / 2)
    spectrum = torch.randn(count, bins, 2, device=device, generator=generator) * shape[..., None]
    noise = torch.fft.irfft(torch.view_as_complex(spectrum), n=samples)
    return noise / noise.pow(2).mean(1, keepdim=True).sqrt().clamp(min=1e-9)


def _tones(count: int, samples: int, device: Device, g: Generator) -> Tensor:
    """One to five steady tones with harmonics: sines, chords, dial tones, hums."""
    t = torch.arange(samples, device=device) / SAMPLE_RATE
    out = torch.zeros(count, samples, device=device)
    voices = 1 + (torch.rand(count, 5, device=device, generator=g) < 0.35).cumprod(1).sum(1)
    for number in range(6):
        pitch = 50 * 2 ** (torch.rand(count, 1, device=device, generator=g) * 6.3)
        loud = (voices > number).float()[:, None]
        harmonics = (torch.rand(count, 1, device=device, generator=g) < 0.4).float()
        phase = 2 * math.pi * (pitch * t[None] + torch.rand(count, 1, device=device, generator=g))
        out += loud * (phase.sin() + harmonics * (0.5 * (2 * phase).sin() + 0.3 * (3 * phase).sin()))
    return out


def _switched(sound: Tensor, device: Device, g: Generator) -> Tensor:
    """Switches a sound on and off at a steady beat, as signalling tones and machines do."""
    count, samples = sound.shape
    t = torch.arange(samples, device=device) / SAMPLE_RATE
    period = 0.1 + 2 * torch.rand(count, 1, device=device, generator=g)
    duty = 0.2 + 0.7 * torch.rand(count, 1, device=device, generator=g)
    on = ((t[None] / period + torch.rand(count, 1, device=device, generator=g)) % 1 < duty).float()
    beat = torch.rand(count, 1, device=device, generator=g) < 0.5
    return torch.where(beat, sound * on, sound)


def _melody(count: int, samples: int, device: Device, g: Generator) -> Tensor:
    """Notes one after another, each with harmonics and a falling loudness."""
    t = torch.arange(samples, device=device)
    length = (SAMPLE_RATE * (0.15 + 0.6 * torch.rand(count, 1, device=device, generator=g))).long()
    note = (t[None] // length).clamp(max=127)
    scale = torch.tensor([0, 2, 4, 7, 9, 12, 14, 16], device=device)
    pick = torch.randint(0, 8, (count, 128), device=device, generator=g)
    root = 60 * 2 ** (torch.rand(count, 1, device=device, generator=g) * 3.5)
    pitch = root * 2 ** (torch.gather(scale[pick], 1, note) / 12)
    phase = 2 * math.pi * torch.cumsum(pitch / SAMPLE_RATE, 1)
    fade = torch.exp(-3 * (t[None] % length) / length)
    return fade * (phase.sin() + 0.6 * (2 * phase).sin() + 0.4 * (3 * phase).sin() + 0.2 * (5 * phase).sin())


def _swept(count: int, samples: int, device: Device, g: Generator) -> Tensor:
    t = torch.arange(samples, device=device) / SAMPLE_RATE
    rate = 0.1 + 4 * torch.rand(count, 1, device=device, generator=g)
    low = 80 * 2 ** (4 * torch.rand(count, 1, device=device, generator=g))
    octaves = 3 * torch.rand(count, 1, device=device, generator=g)
    pitch = low * 2 ** (octaves * (0.5 + 0.5 * (2 * math.pi * rate * t[None]).sin()))
    return (2 * math.pi * torch.cumsum(pitch / SAMPLE_RATE, 1)).sin()


def _passing(count: int, samples: int, device: Device, g: Generator) -> Tensor:
    """Low noise that swells and fades: traffic, wind, machines."""
    noise = coloured_noise(count, samples, 1 + 1.5 * torch.rand(count, device=device, generator=g), device, g)
    t = torch.arange(samples, device=device) / SAMPLE_RATE
    rate = 0.05 + 3 * torch.rand(count, 1, device=device, generator=g)
    phase = 6.3 * torch.rand(count, 1, device=device, generator=g)
    return noise * (1 + 0.95 * (2 * math.pi * rate * t[None] + phase).sin())


def _clicks(count: int, samples: int, device: Device, g: Generator) -> Tensor:
    rate = 1 + 15 * torch.rand(count, 1, device=device, generator=g)
    hits = (torch.rand(count, samples, device=device, generator=g) < rate / SAMPLE_RATE).float()
    kernel_t = torch.arange(1600, device=device) / SAMPLE_RATE
    kernel = torch.exp(-kernel_t * 120) * torch.randn(1600, device=device, generator=g)
    n = samples + 1600
    return torch.fft.irfft(torch.fft.rfft(hits, n=n) * torch.fft.rfft(kernel, n=n)[None], n=n)[:, :samples]


def not_a_voice(count: int, samples: int, device: Device, generator: Generator = None) -> Tensor:
    """[count, samples] of mixed sounds without a voice, some of them digital silence."""
    g = generator
    kinds = torch.stack(
        [
            coloured_noise(count, samples, 2 * torch.rand(count, device=device, generator=g), device, g),
            _switched(_tones(count, samples, device, g), device, g),
            _melody(count, samples, device, g),
            _switched(_swept(count, samples, device, g), device, g),
            _passing(count, samples, device, g),
            _clicks(count, samples, device, g),
            torch.zeros(count, samples, device=device),
        ]
    )
    chance = torch.tensor([0.2, 0.25, 0.15, 0.1, 0.15, 0.08, 0.07], device=device)
    pick = torch.multinomial(chance, count, replacement=True, generator=g)
    sound = kinds[pick, torch.arange(count, device=device)]
    level = 10 ** (-2.5 * torch.rand(count, 1, device=device, generator=g))
    sound = level * sound / sound.pow(2).mean(1, keepdim=True).sqrt().clamp(min=1e-9)
    hiss = coloured_noise(count, samples, torch.rand(count, device=device, generator=g), device, g)
    faint = 10 ** (-2 - 3 * torch.rand(count, 1, device=device, generator=g))
    keep = torch.rand(count, 1, device=device, generator=g) < 0.5
    return torch.where(keep & (pick != 6)[:, None], sound + hiss * faint * level, sound)
