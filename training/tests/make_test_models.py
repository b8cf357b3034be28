"""
Makes packages/testing/models: small graphs for the tests that are not about the model.

They have the inputs, outputs and int8 products of the shipped graphs and come from the same exporter, but load in
milliseconds. They know the example voices by heart, tell them from silence, noise and tones, and nothing else.

    .venv/bin/python training/tests/make_test_models.py
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import onnx
import torch
from conftest import RATE, ROOT
from torch import Tensor
from torch.nn import functional as F

from undertone_training import quantise
from undertone_training.encoder import Encoder
from undertone_training.export import VoiceGraph
from undertone_training.frontend import Array
from undertone_training.graph import GraphWriter
from undertone_training.labels import EMOTIONS, MODELS, emotion_index
from undertone_training.model import VoiceModel
from undertone_training.pipeline import numpy_state
from undertone_training.wav import read_wav

TARGET = ROOT / "packages/testing/models"
WIDTH, LAYERS, HALVE_AFTER = 64, 1, (0,)
STEPS, BATCH, LEARNING_RATE = 1200, 16, 1e-3
# Less sure than they are, so that the probabilities of all emotions can be compared.
TEMPERATURE = 10.0
# The names of the shipped weights, so that the tests need not know which ones they use. Different seeds: their answers
# differ too.
SEEDS = {"research": 1, "open": 2}
LICENCES = {"research": "non-commercial research use", "open": "Apache-2.0"}


class SmallWriter(GraphWriter):
    """Stores every large constant in 16 bits: half the size, and good enough here."""

    def constant(self, value: Array) -> str:
        """Add a constant tensor and return its name."""
        array = np.asarray(value)
        if array.size > 1000 and array.dtype in (np.float32, np.float64):
            return self.half_constant(array)
        return super().constant(array)


def voices() -> list[tuple[Array, int]]:
    """The example voices and the numbers of their emotions."""
    files = sorted((ROOT / "examples/voices").glob("*.wav"))
    return [(read_wav(f).astype(np.float32) / 2**15, emotion_index(f.name.split("-")[0])) for f in files]


def no_voice(count: int, g: np.random.Generator) -> Array:
    """Silence, noise or a tone."""
    t = np.arange(count) / RATE
    kind = g.integers(3)
    if kind == 0:
        return np.zeros(count)
    if kind == 1:
        return g.standard_normal(count) * 10 ** g.uniform(-4, -1)
    return 0.3 * np.sin(2 * np.pi * g.uniform(50, 2000) * t)


def batch(known: list[tuple[Array, int]], g: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Windows of one length, their emotions, and whether there is a voice in them. Every fourth has none."""
    count = int(RATE * g.uniform(1, 5))
    windows, emotions = [], []
    for i in range(BATCH):
        if i % 4 == 0:
            windows.append(no_voice(count, g))
            emotions.append(-1)
            continue
        clip, emotion = known[g.integers(len(known))]
        start = g.integers(len(clip))
        windows.append(np.resize(np.roll(clip, -start), count))
        emotions.append(emotion)
    labels = torch.tensor(emotions)
    return torch.from_numpy(np.stack(windows).astype(np.float32)), labels, (labels >= 0).float()


def train(seed: int) -> VoiceModel:
    """A model that knows the example voices."""
    torch.manual_seed(seed)
    g = np.random.default_rng(seed)
    model = VoiceModel(Encoder(WIDTH, LAYERS, HALVE_AFTER), dropout=0)
    known = voices()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, STEPS)
    for step in range(STEPS):
        samples, emotions, spoken = batch(known, g)
        answer = model(samples)
        loss = F.binary_cross_entropy_with_logits(answer.voice, spoken[:, None].expand_as(answer.voice))
        for logits in answer.logits.values():
            loss = loss + F.cross_entropy(logits, emotions, ignore_index=-1)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    quantise.set_mode(model, observing=True, active=False)
    with torch.no_grad():
        for _ in range(20):
            model(batch(known, g)[0])
    quantise.set_mode(model, observing=False, active=False)
    return model


def main() -> None:
    """Write the graphs and their catalogue."""
    weights: dict[str, Any] = {}
    for name, seed in SEEDS.items():
        model = train(seed)
        graph = VoiceGraph(numpy_state(model), HALVE_AFTER, quantise.ranges(model))
        graph.g = SmallWriter()
        path = TARGET / f"{name}.onnx"
        onnx.save(graph.build(dict.fromkeys(MODELS, TEMPERATURE)), path)
        content = path.read_bytes()
        print(f"{path}: {len(content)} bytes")
        weights[name] = {
            "file": path.name,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "licence": LICENCES[name],
            "commercial_use": name == "open",
            "summary": "a small model for tests, which knows the example voices only",
            "figures": {},
        }
    models = [{"id": m, "emotions": list(EMOTIONS[:size])} for m, size in MODELS.items()]
    catalog = {"version": "test", "models": models, "weights": weights}
    (TARGET / "catalog.json").write_text(json.dumps(catalog, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
