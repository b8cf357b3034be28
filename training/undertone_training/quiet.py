"""Takes the steady noise of the room out of recordings, so that training can hear every voice in many rooms.

Where a shy voice was recorded with more gain than a loud one, the noise under it tells the emotion as well as the voice
does: a model would learn the room. With a quiet twin of every clip the room can be turned up and down at will.
"""
import torch

FFT, HOP = 512, 128
QUIETEST = 0.12  # share of a clip's frames that are taken for its noise
TAKE = 2.5  # how much more than the estimate is taken away: the noise of a frame is often above its mean
LEAST = 0.03  # gain that is left where there is nothing but noise


def without_noise(clips, lengths):
    """clips: [count, n] float, zeros after each one's end. -> the same, quieter between the words."""
    window = torch.hann_window(FFT, device=clips.device)
    spectrum = torch.stft(clips, FFT, HOP, window=window, return_complex=True)
    power = spectrum.real ** 2 + spectrum.imag ** 2
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


def quiet_twins(samples, start, length, batch=64):
    """samples: all clips in one row (int16). -> the same row without the noise, and how far below
    each clip its noise was, in dB."""
    twins, ratios = samples.clone(), torch.zeros(len(length), device=samples.device)
    order = torch.argsort(length).tolist()
    starts, lengths = start.tolist(), length.tolist()
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        longest = max(max(lengths[i] for i in rows), FFT)
        clips = torch.zeros(len(rows), longest, device=samples.device)
        for row, i in enumerate(rows):
            clips[row, : lengths[i]] = samples[starts[i] : starts[i] + lengths[i]].float()
        quiet = without_noise(clips, torch.tensor([lengths[i] for i in rows], device=samples.device))
        taken, whole = (x.pow(2).sum(1).clamp(min=1.0) for x in (clips - quiet, clips))
        ratios[rows] = 10 * torch.log10(whole / taken)
        quiet = quiet.round().clamp(-32768, 32767).to(torch.int16)
        for row, i in enumerate(rows):
            twins[starts[i] : starts[i] + lengths[i]] = quiet[row, : lengths[i]]
    return twins, ratios
