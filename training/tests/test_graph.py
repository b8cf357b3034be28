"""The exported graph says what the trained model says."""
import copy

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import RATE, voice

from undertone_training import quantise
from undertone_training.calibrate import probabilities
from undertone_training.export import VoiceGraph, uncalibrated
from undertone_training.frontend import mel_filters, noise_bed
from undertone_training.encoder import LogMel
from undertone_training.labels import MODELS
from undertone_training.model import VoiceModel
from undertone_training.pipeline import averaged, numpy_state


def session(model, ranges=None):
    state, _ = numpy_state(model)
    graph = VoiceGraph(state, len(model.encoder.blocks), model.encoder.halve_after, ranges).build(uncalibrated())
    return onnxruntime.InferenceSession(graph.SerializeToString())


@pytest.fixture(scope="module", params=[True, False], ids=["by words", "by summary"])
def model(encoder, request):
    """Models of both kinds, which tell strangers by what they say or by what is made of it."""
    torch.manual_seed(3)
    model = VoiceModel(2, (1,), knows_words=request.param).eval()
    model.encoder.load_pretrained(encoder)
    for name in model.views:
        getattr(model, f"familiar_{name}_mean").normal_()
        getattr(model, f"familiar_{name}_root").normal_(0, 0.2 if name == "spectrum" else 0.05)
    return model


def sound(seconds, seed=0):
    return np.stack([voice(110 + 40 * i, seconds, seed + i) for i in range(2)]).astype(np.float32)


def answers(model, samples):
    with torch.no_grad():
        mel = model.mel(torch.from_numpy(samples))
        heard = model.hear(mel)
        strange = model.strangeness(model.seen(mel, heard)).numpy().astype(np.float64)
        logits = model.answer(heard.summary)
    speech = heard.voice.sigmoid().mean(1).numpy().astype(np.float64)
    return {n: probabilities(x.numpy().astype(np.float64), speech, strange, 1.0) for n, x in logits.items()}, speech


@pytest.mark.parametrize("seconds", [1.0, 1.37, 4.999, 5.0, 10.0])
def test_the_float_graph_equals_the_model_at_any_length(model, seconds):
    samples = sound(seconds)
    want, speech = answers(model, samples)
    names = [*MODELS, "speech"]
    got = dict(zip(names, session(model).run(names, {"samples": samples})))
    assert np.abs(got["speech"] - speech).max() < 1e-3
    for name in MODELS:
        assert np.abs(got[name] - want[name]).max() < 1e-3
        assert np.allclose(got[name].sum(1), 1, atol=1e-5)


def test_the_int8_graph_equals_the_model_that_was_trained_with_rounding(model):
    samples = sound(3.0)
    quantise.set_mode(model, watching=True, active=False)
    answers(model, samples)
    quantise.set_mode(model, watching=False, active=True)
    try:
        want, _ = answers(model, samples)
        got = session(model, quantise.ranges(model)).run(["7emotions"], {"samples": samples})[0]
        assert np.abs(got - want["7emotions"]).max() < 0.01
    finally:
        quantise.set_mode(model, watching=False, active=False)


def test_the_mean_of_two_models_lies_between_them_and_has_room_for_what_both_saw(model):
    one, other = copy.deepcopy(model), copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    for each, high in ((one, 2.0), (other, 3.0)):
        for rounding in quantise.roundings(each).values():
            rounding.low.fill_(-high)
            rounding.high.fill_(high)
    mean = averaged([one, other])
    for a, b in zip(mean.parameters(), model.parameters()):
        assert torch.allclose(a, b + 0.5, atol=1e-5)
    assert set(quantise.ranges(mean).values()) == {(-3.0, 3.0)}


def test_log_mel_is_that_of_a_plain_fourier_transform():
    samples = voice(140, 1.0).astype(np.float64)
    level = samples - samples.mean()
    level = level * 0.06 / np.sqrt((level**2).mean())
    padded = np.pad(level, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.stack([padded[i : i + 400] * window for i in range(0, len(padded) - 399, 160)])[:-1]
    mel = mel_filters() @ (np.abs(np.fft.rfft(frames)) ** 2).T + noise_bed()[:, None]
    log = np.log10(np.maximum(mel, 1e-10))
    want = (np.maximum(log, log.max() - 8) + 4) / 4
    got = LogMel()(torch.from_numpy(samples.astype(np.float32))[None])[0].numpy()
    assert got.shape == (80, RATE // 160)
    assert np.abs(got - want).max() < 0.01


def test_loudness_does_not_matter_to_the_picture():
    samples = torch.from_numpy(voice(140, 1.0).astype(np.float32))[None]
    mel = LogMel()
    assert torch.allclose(mel(samples), mel(samples * 0.1), atol=1e-3)


def test_how_quiet_the_room_was_hardly_changes_the_picture():
    quiet = voice(140, 3.0).astype(np.float32)
    quiet[RATE : 2 * RATE] = 0
    noise = np.random.default_rng(2).standard_normal(len(quiet)).astype(np.float32)
    noisy = quiet + noise * quiet.std() / 10 ** (45 / 20)
    mel = LogMel()
    without = LogMel()
    without.bed.zero_()

    def change(picture):
        a, b = (picture(torch.from_numpy(x)[None]) for x in (quiet, noisy))
        return (a - b).abs().mean().item()

    assert change(mel) < change(without) / 4
