"""Samples: read, mixed, resampled, cut and sent as documented."""

from __future__ import annotations

import importlib
import io
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import undertone_client
from undertone_client import ConfigError, MissingFileError, MissingPackageError
from undertone_client._samples import resample

from .support.real_server import VOICES
from .support.talk import talk, wav

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.flaky_server import FlakyServer


def tone(rate: int, seconds: float, hertz: float = 440, size: float = 0.5) -> Any:
    return size * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)


def float_wav(samples: Any, rate: int, bits: int, *, extensible: bool) -> bytes:
    """Write a WAV of floats, which the standard library cannot."""
    data: bytes = samples.astype(f"<f{bits // 8}").tobytes()
    body = struct.pack("<HIIHH", 1, rate, rate * bits // 8, bits // 8, bits)
    if extensible:
        guid = bytes.fromhex("0300000000001000800000aa00389b71")
        form = struct.pack("<H", 0xFFFE) + body + struct.pack("<HHI", 22, bits, 4) + guid
    else:
        form = struct.pack("<H", 3) + body
    note = b"LIST" + struct.pack("<I", 3) + b"odd\0"
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + note + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def test_prepare_returns_198450_samples_at_44100_from_half_a_second_on() -> None:
    samples = np.arange(44_100 * 6) / (44_100 * 6)
    file = float_wav(samples, 44_100, 64, extensible=False)
    prepared = undertone_client.prepare(file)
    assert (prepared.dtype, prepared.shape) == (np.float32, (198_450,))
    assert np.array_equal(prepared, samples[22_050 : 22_050 + 198_450].astype(np.float32))


def test_prepare_accepts_a_path() -> None:
    prepared = undertone_client.prepare(VOICES / "angry-1013.wav")
    assert prepared.shape == (198_450,)
    assert 0.01 < np.abs(prepared).max() <= 1.5
    with pytest.raises(MissingFileError):
        undertone_client.prepare("/there/is/no/such.wav")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_pcm_of_every_bit_depth_is_read_and_stereo_is_mixed(width: int) -> None:
    one = tone(44_100, 5)
    both = np.stack([one, np.zeros_like(one)], axis=1).reshape(-1)
    if width == 1:
        frames = np.round(both * 128 + 128).clip(0, 255).astype(np.uint8).tobytes()
    else:
        whole = np.round(both * 2.0 ** (8 * width - 1)).astype("<i8")
        frames = whole.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()
    prepared = undertone_client.prepare(wav(frames, 44_100, channels=2, width=width))
    assert np.abs(prepared - one[22_050:] / 2).max() < (0.01 if width == 1 else 1e-4)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("extensible", [False, True])
def test_floats_are_read_also_from_the_extensible_kind(bits: int, extensible: bool) -> None:  # noqa: FBT001
    one = tone(44_100, 5)
    prepared = undertone_client.prepare(float_wav(one, 44_100, bits, extensible=extensible))
    assert np.abs(prepared - one[22_050:]).max() < 1e-6


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 44_099, 48_000, 96_000, 192_000])
def test_resampling_preserves_a_tone_without_artefacts(rate: int) -> None:
    hertz = 1000.0
    given = resample(tone(rate, 5, hertz), rate, 22_050, 88_200)
    wanted = 0.5 * np.sin(2 * np.pi * hertz * (22_050 + np.arange(88_200)) / 44_100)
    noise = np.sqrt(np.mean((given - wanted) ** 2)) / np.sqrt(np.mean(wanted**2))
    assert 20 * np.log10(noise) < -90


def test_resampling_filters_aliases() -> None:
    given = resample(tone(96_000, 5, 30_000), 96_000, 22_050, 88_200)
    assert 20 * np.log10(np.abs(given).max() / 0.5) < -80


def test_recordings_under_five_seconds_start_earlier() -> None:
    for seconds in (4, 4.5, 4.7):
        one = tone(44_100, seconds)
        prepared = undertone_client._samples.prepare_samples(one, 44_100)
        start = max(0, len(one) - 198_450)
        assert np.array_equal(prepared, one[start:].astype(np.float32))


def sent_file(flaky: FlakyServer) -> tuple[tuple[int, int, int, int], Any]:
    """Return encoding, channels, rate and bits of the WAV file that the server received, and its frames."""
    (call,) = flaky.calls("discrete")
    assert call.headers["content-type"].startswith("multipart/form-data")
    file = call.body[call.body.index(b"RIFF") : call.body.rindex(b"\r\n--")]
    encoding, channels, rate, speed, frame, bits = struct.unpack("<HHIIHH", file[20:36])
    assert struct.unpack("<I", file[4:8])[0] == len(file) - 8
    assert struct.unpack("<I", file[40:44])[0] == len(file) - 44
    assert (speed, frame) == (rate * channels * bits // 8, channels * bits // 8)
    frames = np.frombuffer(file[44:], "<i2" if encoding == 1 else "<f4").reshape(-1, channels)
    return (encoding, channels, rate, bits), frames


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize(
    "form",
    [
        lambda one: one,
        lambda one: one.astype(np.float32),
        lambda one: one.tolist(),
        lambda one: np.stack([one, one]),
        lambda one: np.stack([one, one], axis=1),
        lambda one: np.stack([one, one], axis=1)[::-1][::-1],
    ],
    ids=["float64", "float32", "a list", "channels first", "channels last", "a view"],
)
def test_all_samples_are_sent_unchanged_at_their_own_rate(
    form: Any, rate: int, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    one = tone(rate, 9.5)
    given = form(one)
    result = make_twin(**flaky.settings).discrete.emotions(samples=given, sample_rate=rate, model="5emotions")
    assert result.main_emotion == "happy"
    channels = 1 if np.ndim(given) == 1 else 2
    form_of_file, frames = sent_file(flaky)
    assert form_of_file == (3, channels, rate, 32)
    assert np.array_equal(frames, np.stack([one] * channels, axis=1).astype(np.float32))
    assert flaky.calls("discrete")[0].query["model"] == "5emotions"


@pytest.mark.parametrize("kind", ["<i2", ">i2"])
def test_int16_samples_are_sent_as_they_are(kind: str, flaky: FlakyServer, make_twin: MakeTwin) -> None:
    whole = np.round(tone(16_000, 5) * 32767).astype(kind)
    make_twin(**flaky.settings).discrete.emotions(samples=whole, sample_rate=np.float64(16_000))
    form_of_file, frames = sent_file(flaky)
    assert form_of_file == (1, 1, 16_000, 16)
    assert np.array_equal(frames[:, 0], whole)


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint16", "int32", "int64", "a list"])
def test_integers_of_unknown_scale_are_rejected_with_what_to_do(
    kind: str, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    whole: Any = np.arange(80_000) % 100
    samples = whole.tolist() if kind == "a list" else whole.astype(kind)
    with pytest.raises(ConfigError, match=r"integers, whose scale is unknown: give int16, or floats from -1 to 1\."):
        make_twin(**flaky.settings).discrete.emotions(samples=samples, sample_rate=16_000)
    assert flaky.seen == []


@pytest.mark.parametrize("rate", [22_050, 22_050.0, np.float32(22_050), np.int64(22_050)])
def test_whole_rates_of_any_number_type_are_accepted(rate: Any, flaky: FlakyServer, make_twin: MakeTwin) -> None:
    make_twin(**flaky.settings).discrete.emotions(samples=tone(22_050, 5), sample_rate=rate)
    assert sent_file(flaky)[0][2] == 22_050


def test_prepared_samples_are_sent_unchanged(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    prepared = undertone_client.prepare(talk(6))
    make_twin(**flaky.settings).discrete.emotions(samples=prepared, sample_rate=44_100)
    (sent,) = json.loads(json.loads(flaky.calls("discrete")[0].body))["payload"]
    assert np.array_equal(np.array(sent, np.float32), prepared)


@pytest.mark.parametrize(
    ("samples", "rate", "says"),
    [
        (np.zeros(3 * 44_100), 44_100, r"3\.00 seconds long: give 4 to 10"),
        (np.zeros(11 * 44_100), 44_100, r"11\.00 seconds.*asynch\.classify"),
        (np.where(np.arange(5 * 44_100) == 7, np.nan, 0), 44_100, "Sample 7 is nan"),
        (np.where(np.arange(5 * 44_100) == 9, 2.5, 0), 44_100, r"Sample 9 is 2\.5"),
        (np.zeros((5, 5, 5)), 44_100, "one dimension"),
        (np.array(["a"]), 44_100, "numeric array"),
        (np.zeros(44_100 * 5), None, "Give the sample_rate"),
        (np.zeros(44_100 * 5), 7_999, "8000 to 192000"),
        (np.zeros(44_100 * 5), 44_100.5, "whole number of hertz"),
        (np.zeros(44_100 * 5), "44100", "whole number of hertz"),
    ],
)
def test_invalid_samples_are_rejected_before_anything_is_sent(
    samples: Any, rate: Any, says: str, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**flaky.settings)
    with pytest.raises(ConfigError, match=says):
        twin.discrete.emotions(samples=samples, sample_rate=rate)
    with pytest.raises(ConfigError, match="either file_path or samples"):
        twin.discrete.emotions("talk.wav", samples=samples, sample_rate=44_100)
    with pytest.raises(ConfigError, match="a file contains its own"):
        twin.discrete.emotions("talk.wav", sample_rate=44_100)
    assert flaky.seen == []


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"not audio at all, but long enough to look at",
        wav(bytes(200_000), 16_000)[:30],
        wav(bytes(200_000), 16_000).replace(b"\x01\x00\x01\x00", b"\x07\x00\x01\x00", 1),
        wav(bytes(200_000), 16_000).replace(b"fmt ", b"junk", 1),
        b"RIFF\0\0\0\0WAVEfmt \2\0\0\0\1\0",
    ],
    ids=["empty", "text", "truncated", "mu-law", "no format chunk", "short format chunk"],
)
def test_an_unreadable_file_error_says_why_and_what_to_do(broken: bytes) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the samples .*Send the file itself"):
        undertone_client.prepare(io.BytesIO(broken))


def test_without_numpy_files_work_and_samples_raise_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without)
    twin = make_twin(**flaky.settings)
    assert twin.discrete.emotions(VOICES / "angry-1013.wav").main_emotion == "happy"
    with pytest.raises(MissingPackageError, match="pip install numpy"):
        twin.discrete.emotions(samples=[0.0] * 220_500, sample_rate=44_100)
    with pytest.raises(MissingPackageError, match="pip install numpy"):
        undertone_client.prepare(VOICES / "angry-1013.wav")
