"""Training windows: the noise of the room does not reveal the emotion."""

import numpy as np
import torch
from conftest import RATE, voice

from undertone_training.batches import BatchMaker, Voices
from undertone_training.config import Training
from undertone_training.corpora import Clip
from undertone_training.denoise import denoised
from undertone_training.frontend import HOP
from undertone_training.pack import Pack, voiced


def spoken(noise_db, seed=0, seconds=3.0):
    """A voice with pauses in noise at this level below it, as 16-bit samples; and which samples are pause."""
    samples = voice(120 + 10 * seed, seconds, seed)
    pause = (np.arange(len(samples)) // (RATE // 2)) % 3 == 2
    samples[pause] = 0
    noise = np.random.default_rng(seed).standard_normal(len(samples)) * samples.std() / 10 ** (noise_db / 20)
    return np.round((samples + noise) * 8000).astype(np.int16), pause


def twins(clips):
    lengths = torch.tensor([len(c) for c in clips])
    starts = torch.cumsum(lengths, 0) - lengths
    quiet, ratio = denoised(torch.from_numpy(np.concatenate(clips)), starts, lengths)
    return [quiet[s : s + n].numpy().astype(float) for s, n in zip(starts, lengths)], ratio.numpy()


def test_a_denoised_clip_has_the_voice_and_less_of_the_noise():
    (clip, pause) = spoken(15)
    (quiet,), _ = twins([clip])
    assert quiet[pause].std() < 0.25 * clip[pause].std()
    assert 0.85 < quiet[~pause].std() / clip[~pause].std() < 1.05


def test_the_noise_under_a_voice_is_measured():
    clips = [spoken(db, seed)[0] for seed, db in enumerate((8, 15, 22, 30))]
    _, ratio = twins(clips)
    assert np.all(np.abs(ratio - np.array([8, 15, 22, 30])) < 4), ratio


def test_clips_of_any_length_can_be_denoised():
    clips = [np.zeros(n, np.int16) for n in (1, 100, 512, 3000)] + [spoken(20)[0]]
    quiet, ratio = twins(clips)
    assert [len(q) for q in quiet] == [len(c) for c in clips]
    assert np.isfinite(ratio).all()


def test_training_windows_of_a_noisy_and_a_quiet_emotion_are_equally_noisy():
    """Two emotions recorded 24 dB apart, as a quiet and a loud voice are: the pauses must sound alike."""
    clips, rows, start = [], [], 0
    for emotion, db in ((0, 34), (3, 10)):
        for n in range(6):
            samples = spoken(db, seed=n)[0]
            samples = np.pad(samples, (0, -len(samples) % HOP))
            rows.append((Clip("c", f"s{n}", emotion, str(n), ()), start, len(samples)))
            clips.append(samples)
            start += len(samples)
    whole = np.concatenate(clips)
    pack = Pack(
        whole,
        np.concatenate([voiced(c) for c in clips]),
        [r[0] for r in rows],
        np.array([r[1] for r in rows]),
        np.array([r[2] for r in rows]),
    )
    maker = BatchMaker(Voices(pack, "cpu"), np.ones(12, bool), {}, Training("", votes=0.0), seed=1, levelling=0.85)
    levels: dict[int, list[float]] = {0: [], 3: []}
    for _ in range(6):
        batch = maker.make(32, 3.0)
        step = batch.samples.reshape(32, -1, HOP).pow(2).mean(2).sqrt()
        depth = 20 * torch.log10(step.quantile(0.05, dim=1) / batch.samples.pow(2).mean(1).sqrt())
        for emotion, d in zip(batch.emotion[batch.known].tolist(), depth[batch.known].tolist()):
            levels[emotion].append(d)
    assert abs(np.median(levels[0]) - np.median(levels[3])) < 8
