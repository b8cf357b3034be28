"""A model that forgot words learns them again, as the untouched encoder knows them."""
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import voice

from undertone_training.model import VoiceModel
from undertone_training.words import WordEar


def sound(seconds, seed):
    return torch.from_numpy(np.stack([voice(110 + 25 * i, seconds, seed + i) for i in range(8)]).astype(np.float32))


@pytest.fixture
def model(encoder):
    torch.manual_seed(5)
    model = VoiceModel(2, (), knows_words=True).eval()
    model.encoder.load_pretrained(encoder)
    return model


@pytest.fixture
def ear(encoder, model):
    ear = WordEar(SimpleNamespace(encoder=encoder, layers=2, halve_after=()), "cpu")
    ear.settle(model.mel(sound(2.0, 10 * i)) for i in range(4))
    return ear


def forget(model):
    with torch.no_grad():
        for parameter in model.encoder.blocks[-1].parameters():
            parameter.add_(0.3 * parameter.std() * torch.randn_like(parameter))


def loss(ear, model, samples):
    mel = model.mel(samples)
    return ear.loss(mel, model.hear(mel).last)


def test_the_untouched_encoder_knows_all_words_and_one_that_changed_does_not(ear, model):
    samples = sound(2.0, 90)
    with torch.no_grad():
        assert loss(ear, model, samples) < 1e-3
        forget(model)
        assert loss(ear, model, samples) > 0.1


def test_forgotten_words_are_learnt_again(ear, model):
    forget(model)
    samples = sound(2.0, 90)
    before = loss(ear, model, samples).item()
    optimiser = torch.optim.Adam([*model.encoder.blocks[-1].parameters(), *ear.guess.parameters()], lr=3e-4)
    for _ in range(15):
        optimiser.zero_grad()
        loss(ear, model, samples).backward()
        optimiser.step()
    assert loss(ear, model, samples).item() < before / 2


def test_the_untouched_encoder_stays_untouched(ear, model):
    forget(model)
    loss(ear, model, sound(1.0, 3)).backward()
    assert all(parameter.grad is None for parameter in ear.whisper.parameters())
    assert ear.guess.weight.grad.abs().max() > 0
