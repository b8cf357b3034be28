"""Augmentation: rooms, telephones, microphones and babble. Whole batches at once, on any device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .frontend import SAMPLE_RATE
from .sounds import Device, Generator, coloured_noise

TAIL = 8000  # half a second of room
PHONE_CHANCE = 0.3  # share of windows that sound like a telephone


def _chosen(count: int, chance: float, device: Device, g: Generator) -> Tensor:
    return torch.rand(count, 1, device=device, generator=g) < chance


def _uniform(count: int, low: float, high: float, device: Device, g: Generator) -> Tensor:
    return low + (high - low) * torch.rand(count, 1, device=device, generator=g)


def colouring(count: int, bins: int, chance: float, device: Device, g: Generator) -> tuple[Tensor, Tensor]:
    """A gain for each frequency: microphone curves, tilts and band limits down to a telephone's. -> (gain, phone?)"""
    hz = torch.linspace(0, SAMPLE_RATE / 2, bins, device=device)[None]
    points = 10
    place = (torch.log2(hz.clamp(min=60) / 60) / math.log2(8000 / 60) * (points - 1)).clamp(0, points - 1.001)
    left = place.long()
    knots = torch.randn(count, points, device=device, generator=g) * 5
    curve = knots.gather(1, left.expand(count, -1)) * (1 - (place - left)) + knots.gather(
        1, (left + 1).expand(count, -1)
    ) * (place - left)
    tilt = _uniform(count, -4, 4, device, g) * torch.log2(hz.clamp(min=60) / 1000)
    gain_db = torch.where(_chosen(count, chance, device, g), curve + tilt, torch.zeros_like(curve))
    phone = _chosen(count, PHONE_CHANCE, device, g)
    low = torch.where(phone, _uniform(count, 150, 350, device, g), _uniform(count, 20, 150, device, g))
    high = torch.where(phone, _uniform(count, 3200, 3900, device, g), _uniform(count, 3500, 9000, device, g))
    banded = phone | _chosen(count, 0.15, device, g)
    limit = 1 / (1 + (low / hz.clamp(min=1)) ** 8) / (1 + (hz / high) ** 24)
    gain = 10 ** (gain_db / 20) * torch.where(banded, limit.sqrt(), torch.ones_like(limit))
    return gain, phone


def rooms(count: int, device: Device, g: Generator, chance: float = 0.35) -> Tensor:
    """Impulse responses: the direct sound and a decaying tail."""
    t = torch.arange(TAIL, device=device)[None] / SAMPLE_RATE
    decay = _uniform(count, 0.08, 0.7, device, g)
    tail = torch.randn(count, TAIL, device=device, generator=g) * torch.exp(-6.9 * t / decay)
    tail = tail * (t > 0.002)
    tail = tail / tail.pow(2).sum(1, keepdim=True).sqrt().clamp(min=1e-9)
    wet = 10 ** (_uniform(count, -18, 3, device, g) / 20) * _chosen(count, chance, device, g)
    response = tail * wet
    response[:, 0] += 1
    return response


def mu_law(x: Tensor, levels: float = 255.0) -> Tensor:
    """Eight-bit companding, there and back."""
    peak = x.abs().amax(1, keepdim=True).clamp(min=1e-6)
    y = x / peak
    y = torch.sign(y) * torch.log1p(levels * y.abs()) / math.log1p(levels)
    y = torch.round(y * 127) / 127
    return torch.sign(y) * (torch.expm1(y.abs() * math.log1p(levels))) / levels * peak


def add_at(x: Tensor, other: Tensor, snr_db: Tensor, chosen: Tensor) -> Tensor:
    """Adds a sound at a signal-to-noise ratio where chosen."""
    power = x.pow(2).mean(1, keepdim=True)
    other = other / other.pow(2).mean(1, keepdim=True).sqrt().clamp(min=1e-9)
    return x + torch.where(chosen, other * (power * 10 ** (-snr_db / 10)).sqrt(), torch.zeros_like(x))


def augment(
    x: Tensor, babble: Tensor, noise_db: Tensor, noisy: Tensor, *, colour: float, g: Generator = None
) -> Tensor:
    """
    Rooms, noise, talk in the background, colouring, telephones, clipping.

    x: [batch, samples]. babble: talk for the last rows of it. noise_db, noisy: [batch, 1], how far below the voice
    noise is added, and where. colour: share of windows with another microphone.
    """
    count, samples = x.shape
    device = x.device
    x = x + 1e-5 * torch.randn(x.shape, device=device, generator=g)
    n = 1 << (samples + TAIL - 1).bit_length()
    spectrum = torch.fft.rfft(x, n=n) * torch.fft.rfft(rooms(count, device, g), n=n)
    x = torch.fft.irfft(spectrum, n=n)[:, :samples]
    slope = 2 * torch.rand(count, device=device, generator=g)
    hiss = coloured_noise(count, samples, slope, device, g)
    x = add_at(x, hiss, noise_db, noisy)
    last = x[count - len(babble) :]
    talk_db = _uniform(len(babble), 4, 25, device, g)
    x = torch.cat([x[: count - len(babble)], add_at(last, babble, talk_db, torch.ones_like(talk_db).bool())])
    gain, phone = colouring(count, n // 2 + 1, colour, device, g)
    x = torch.fft.irfft(torch.fft.rfft(x, n=n) * gain, n=n)[:, :samples]
    x = torch.where(phone & _chosen(count, 0.7, device, g), mu_law(x), x)
    peak = x.abs().amax(1, keepdim=True)
    limit = peak * _uniform(count, 0.2, 0.8, device, g)
    return torch.where(_chosen(count, 0.08, device, g), torch.maximum(torch.minimum(x, limit), -limit), x)
