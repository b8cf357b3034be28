"""Small material for the tests: generated voices as wavs, and an encoder of the right shape with random weights."""

import pathlib
import sys
import wave

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE = 16000
WIDTH = 128  # of the encoder in the tests: two heads


def write_wav(path, samples, rate=RATE, width=2, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    scaled = np.round(np.clip(samples, -1, 1) * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    raw = (
        b"".join(int(s).to_bytes(width, "little", signed=True) for s in scaled)
        if width == 3
        else ((scaled + 128).astype(np.uint8) if width == 1 else scaled.astype(f"<i{width}")).tobytes()
    )
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(raw)


def voice(pitch, seconds=1.2, seed=0):
    """A buzz with moving formants and syllables: not a person, but shaped like one."""
    generator = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1 + 0.05 * np.sin(2 * np.pi * 3 * t))) / RATE
    buzz = sum(np.sin(k * phase) / k for k in range(1, 20))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * t + generator.uniform(0, 6))
    return 0.1 * buzz * syllables + 0.001 * generator.standard_normal(len(t))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with a path,speaker,emotion CSV: four speakers, seven emotions, two clips each."""
    folder = tmp_path_factory.mktemp("voices")
    emotions = ["angry", "happy", "neutral", "sad", "fear", "surprise", "disgust"]
    rows = ["path,speaker,emotion"]
    for s in range(4):
        for e, emotion in enumerate(emotions):
            for n in range(2):
                name = f"s{s}/{emotion}{n}.wav"
                write_wav(folder / name, voice(100 + 30 * s + 15 * e, seed=100 * s + 10 * e + n))
                rows.append(f"{name},speaker{s},{emotion}")
    (folder / "clips.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """Random weights under the names of a pretrained encoder, two blocks deep and narrow; some stored in 8 bits."""
    path = tmp_path_factory.mktemp("encoder") / "encoder.npz"
    g, width = np.random.default_rng(1), WIDTH

    def matrix(*shape):
        return (g.standard_normal(shape) * 0.05).astype(np.float16)

    arrays = {
        "conv1.weight": matrix(width, 80, 3),
        "conv1.bias": matrix(width),
        "conv2.weight": matrix(width, width, 3),
        "conv2.bias": matrix(width),
        "pos": matrix(1500, width),
    }
    shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width)}
    shapes |= {"fc1": (4 * width, width), "fc2": (width, 4 * width)}
    for i in range(2):
        for name, shape in shapes.items():
            weight = f"layers.{i}.{name}.weight"
            arrays[f"{weight}|q"] = g.integers(0, 256, shape).astype(np.uint8)
            arrays[f"{weight}|s"], arrays[f"{weight}|z"] = np.float32(0.0007), np.float32(128)
            if name != "k":
                arrays[f"layers.{i}.{name}.bias"] = matrix(shape[0])
        for name in ("ln1", "ln2"):
            arrays[f"layers.{i}.{name}.weight"] = np.ones(width, np.float16)
            arrays[f"layers.{i}.{name}.bias"] = np.zeros(width, np.float16)
    np.savez(path, **arrays)
    return path
