"""
Removes the steady noise of the room from recordings, so that training can use every voice with many noise levels.

Where a shy voice was recorded with more gain than a loud one, the noise under it tells the emotion as well as the voice
does: a model would learn the room. With a denoised twin of every clip the noise can be turned up and down at will.
"""

from __future__ import annotations

import torch
from torch import Tensor

FFT, HOP = 512, 128
QUIETEST = 0.12  # share of a clip's frames that are taken for its noise
TAKE = 2.5  # over-subtraction: the noise of a frame is often above its mean
LEAST = 0.03  # gain that is left where there is nothing but noise


def without_noise(clips: Tensor, lengths: Tensor) -> Tensor:
    """Spectral subtraction. clips: [count, n] float, zeros after each one's end."""
    window = torch.hann_window(FFT, device=clips.device)
    spectrum = torch.stft(clips, FFT, HOP, window=window, return_complex=True)
    power = spectrum.real**2 + spectrum.imag**2
    frames = power.shape[2]
    inside = torch.arange(frames, device=clips.device)[None] < (lengths // HOP).clamp(min=1)[:, None]
    loudness = power.sum(1).masked_fill(~inside, float("inf"))
    few = (QUIETEST * lengths / HOP).long().clamp(min=3)
    limit = loudness.sort(1).values.gather(1, few.clamp(max=frames - 1)[:, None])
    chosen = ((loudness <= limit) & inside)[:, None]
    noise = (power * chosen).sum(2, keepdim=True) / chosen.sum(2, keepdim=True).clamp(min=1)
    level = torch.nn.functional.avg_pool2d(power[:, None], (3, 5), 1, (1, 2), count_include_pad=False)[:, 0]
    gain = (1 - TAKE * noise / level.clamp(min=1e-12)).clamp(min=LEAST**2).sqrt()
    return torch.istft(spectrum * gain, FFT, HOP, window=window, length=clips.shape[1])


def denoised(samples: Tensor, start: Tensor, length: Tensor, batch: int = 64) -> tuple[Tensor, Tensor]:
    """All clips in one row (int16) -> that row without the noise, and how far below each clip its noise was in dB."""
    twins, ratios = samples.clone(), torch.zeros(len(length), device=samples.device)
    for rows in torch.argsort(length).split(batch):
        lengths = length[rows]
        grid = torch.arange(max(int(lengths.max()), FFT), device=samples.device)[None]
        inside = grid < lengths[:, None]
        index = (start[rows][:, None] + grid).clamp(max=len(samples) - 1)
        clips = samples[index].float() * inside
        clean = without_noise(clips, lengths)
        taken, whole = ((x * inside).pow(2).sum(1).clamp(min=1.0) for x in (clips - clean, clips))
        ratios[rows] = 10 * torch.log10(whole / taken)
        twins[index[inside]] = clean.round().clamp(-32768, 32767).to(torch.int16)[inside]
    return twins, ratios
