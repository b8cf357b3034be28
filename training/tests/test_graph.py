"""The exported graph answers like the trained model."""

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import RATE, voice

from undertone_training import catalogue, quantise
from undertone_training.calibration import probabilities
from undertone_training.encoder import LogMel, pretrained
from undertone_training.export import VoiceGraph, uncalibrated
from undertone_training.frontend import mel_filters, noise_bed
from undertone_training.labels import MODELS
from undertone_training.model import VoiceModel
from undertone_training.pipeline import numpy_state


def session(model, ranges=None):
    bed = bool(model.mel.bed.any())
    graph = VoiceGraph(numpy_state(model), model.encoder.halve_after, ranges, bed=bed).build(uncalibrated())
    return onnxruntime.InferenceSession(graph.SerializeToString())


@pytest.fixture(
    scope="module",
    params=[((0,), False), ((0,), True), ((0, 1), False)],
    ids=["halved once", "noise bed", "halved twice"],
)
def model(encoder, request):
    torch.manual_seed(3)
    halve_after, bed = request.param
    model = VoiceModel(pretrained(encoder, 2, halve_after), bed=bed).eval()
    model.ood_mean.normal_()
    model.ood_root.normal_(0, 0.01)
    return model


def sound(seconds, seed=0):
    return np.stack([voice(110 + 40 * i, seconds, seed + i) for i in range(2)]).astype(np.float32)


def answers(model, samples):
    with torch.no_grad():
        answer = model(torch.from_numpy(samples))
        ood = model.ood_score(answer.feature).numpy().astype(np.float64)
    speech = answer.voice.sigmoid().mean(1).numpy().astype(np.float64)
    said = {n: probabilities(x.numpy().astype(np.float64), speech, ood, 1.0) for n, x in answer.logits.items()}
    return said, speech


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
    quantise.set_mode(model, observing=True, active=False)
    answers(model, samples)
    quantise.set_mode(model, observing=False, active=True)
    try:
        want, _ = answers(model, samples)
        got = session(model, quantise.ranges(model)).run(["7emotions"], {"samples": samples})[0]
        assert np.abs(got - want["7emotions"]).max() < 0.01
    finally:
        quantise.set_mode(model, observing=False, active=False)


def test_the_stored_weights_are_those_of_the_int8_graph(model, tmp_path):
    samples = sound(2.0)
    quantise.set_mode(model, observing=True, active=False)
    answers(model, samples)
    quantise.set_mode(model, observing=False, active=False)
    state, ranges = numpy_state(model), quantise.ranges(model)
    catalogue.save_weights(tmp_path / "model.npz", state, ranges)
    assert (tmp_path / "model.npz").stat().st_size < 0.4 * sum(x.nbytes for x in state.values())
    loaded, same = catalogue.load_weights(tmp_path / "model.npz")
    assert same == pytest.approx(ranges)
    outputs = []
    for weights in (state, loaded):
        graph = VoiceGraph(weights, model.encoder.halve_after, ranges).build(uncalibrated()).SerializeToString()
        outputs.append(onnxruntime.InferenceSession(graph).run(["7emotions"], {"samples": samples})[0])
    assert np.abs(outputs[0] - outputs[1]).max() < 0.01


@pytest.mark.parametrize("bed", [False, True])
def test_log_mel_is_that_of_a_plain_fourier_transform(bed):
    samples = voice(140, 1.0).astype(np.float64)
    level = samples - samples.mean()
    level = level * 0.06 / np.sqrt((level**2).mean())
    padded = np.pad(level, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.stack([padded[i : i + 400] * window for i in range(0, len(padded) - 399, 160)])[:-1]
    power = mel_filters() @ (np.abs(np.fft.rfft(frames)) ** 2).T
    mel = power + (noise_bed()[:, None] if bed else 0)
    log = np.log10(np.maximum(mel, 1e-10))
    want = (np.maximum(log, log.max() - 8) + 4) / 4
    got = LogMel(bed=bed)(torch.from_numpy(samples.astype(np.float32))[None])[0].numpy()
    assert got.shape == (80, RATE // 160)
    assert np.abs(got - want).max() < 0.01


def test_loudness_does_not_matter_to_the_picture():
    samples = torch.from_numpy(voice(140, 1.0).astype(np.float32))[None]
    mel = LogMel()
    assert torch.allclose(mel(samples), mel(samples * 0.1), atol=1e-3)


def test_on_a_noise_bed_a_quiet_and_a_noisy_room_look_alike():
    quiet = voice(140, 3.0).astype(np.float32)
    quiet[RATE : 2 * RATE] = 0
    noise = np.random.default_rng(2).standard_normal(len(quiet)).astype(np.float32)
    noisy = quiet + noise * quiet.std() / 10 ** (45 / 20)
    mel, without = LogMel(bed=True), LogMel()

    def change(picture):
        a, b = (picture(torch.from_numpy(x)[None]) for x in (quiet, noisy))
        return (a - b).abs().mean().item()

    assert change(mel) < change(without) / 4
