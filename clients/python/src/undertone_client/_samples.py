"""Samples as an input of the discrete endpoint: as a WAV file in memory, or in the JSON form for prepared samples."""

from __future__ import annotations

import json
import math
from contextlib import closing
from numbers import Real
from typing import TYPE_CHECKING, Any

from ._optional import optional
from ._source import open_source
from ._wav import read_wav, write_wav
from .errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._source import Recording

RATE = 44_100
LENGTH = 198_450
_OFFSET_SECONDS = 0.5
_MIN_RATE, _MAX_RATE = 8_000, 192_000
_MIN_SECONDS, _MAX_SECONDS, _TOLERANCE = 4, 10, 0.05
_MAX_MAGNITUDE = 2

#: Half the filter width in zero crossings, and the Kaiser window's beta: about 100 dB of attenuation.
_CROSSINGS = 48
_BETA = 10.0
#: Cutoff relative to half the lower of the two rates.
_ROLLOFF = 0.95
_BLOCK = 4096


def prepare(file_path: Recording) -> npt.NDArray[np.float32]:
    """
    Read a short WAV file as the samples that the service's JSON input expects: a float32 numpy array.

    Mono, 44,100 Hz, 4.5 s from 0.5 s on: 198,450 samples. A recording of less than 5 seconds starts earlier, to
    keep as much of the 4.5 seconds as possible. Needs numpy.
    """
    np = optional("numpy", "prepare")
    with closing(open_source(file_path, max_bytes=1024**3)) as source:
        samples, rate = read_wav(source.file)
    _check_magnitude(np, samples.reshape(-1, 1))
    prepared: npt.NDArray[np.float32] = prepare_samples(samples, _checked_rate(rate))
    return prepared


def prepare_samples(samples: Any, sample_rate: int) -> Any:
    """Convert mono samples in memory the same way."""
    np = optional("numpy", "samples")
    _check_length(len(samples) / sample_rate)
    available = math.floor(len(samples) * RATE / sample_rate)
    start = max(0, min(round(_OFFSET_SECONDS * RATE), available - LENGTH))
    count = min(LENGTH, available - start)
    if sample_rate == RATE:
        return samples[start : start + count].astype(np.float32)
    return resample(samples, sample_rate, start, count).astype(np.float32)


def samples_as_request(samples: Any, sample_rate: Any) -> dict[str, Any]:
    """
    Return the body that sends samples to the service, all of them and unchanged.

    They are sent as a WAV file, so that the answer is the same as for the file they were read from. Only samples
    with the exact shape that `prepare` returns are sent in the JSON form that the API documents for them.
    """
    np = optional("numpy", "samples")
    rate = _checked_rate(sample_rate)
    frames = _checked_frames(np, samples)
    _check_length(len(frames) / rate)
    if (rate, frames.shape, frames.dtype.kind) == (RATE, (LENGTH, 1), "f"):
        return {"content": _as_json(frames[:, 0]), "headers": {"content-type": "application/json"}}
    return {"files": {"file": ("samples.wav", write_wav(frames, rate))}}


def _as_json(samples: Any) -> bytes:
    """Encode samples as the API documents: a JSON string that contains a JSON object."""
    # Nine significant digits identify every 32-bit float.
    numbers = ",".join(f"{number:.9g}" for number in samples.tolist())
    return json.dumps(f'{{"payload":[[{numbers}]]}}').encode()


def resample(samples: Any, rate: int, start: int, count: int) -> Any:
    """Return `count` samples at 44,100 Hz from index `start` on: a polyphase windowed sinc."""
    np = optional("numpy", "samples")
    common = math.gcd(rate, RATE)
    up, down = RATE // common, rate // common
    cutoff = min(1.0, RATE / rate) * _ROLLOFF
    half = math.ceil(_CROSSINGS / cutoff)
    padded = np.pad(np.asarray(samples, np.float64), half)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half)
    kernels = _kernels(np, up, half, cutoff)
    out = np.empty(count)
    for at in range(0, count, _BLOCK):
        position = (start + np.arange(at, min(at + _BLOCK, count))) * down
        # Input i is at i + half in the padded array, so this window is centred on the position.
        seen = windows[position // up + 1]
        out[at : at + _BLOCK] = np.einsum("nt,nt->n", seen, kernels[position % up])
    return out


def _kernels(np: Any, phases: int, half: int, cutoff: float) -> Any:
    """Return one filter per phase, each with unit gain at 0 Hz."""
    taps = np.arange(1 - half, half + 1)
    distance = taps[None, :] - (np.arange(phases) / phases)[:, None]
    # The Kaiser window from a table: accurate to 130 dB, and much faster than evaluating Bessel functions.
    places = np.linspace(0, 1, 8193)
    window = np.interp(np.abs(distance) / half, places, np.i0(_BETA * np.sqrt(1 - places**2)))
    kernels = np.sinc(distance * cutoff) * window
    return kernels / kernels.sum(axis=1, keepdims=True)


def _checked_frames(np: Any, samples: Any) -> Any:
    """Return samples as an array of frames, by channels: 16-bit integers or 32-bit floats."""
    array = np.asarray(samples)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
        raise ConfigError("samples must be a numeric array with one dimension, or two for several channels.")
    if array.dtype.kind != "f" and (array.dtype.kind, array.dtype.itemsize) != ("i", 2):
        raise ConfigError(
            f"samples are {array.dtype} integers, whose scale is unknown: give int16, or floats from -1 to 1. "
            "If they are 16-bit values, convert them with numpy.asarray(samples, numpy.int16); otherwise divide "
            "them by the largest value that their format allows."
        )
    frames = array.reshape(-1, 1) if array.ndim == 1 else array
    if frames.shape[0] < frames.shape[1]:  # the shorter axis is the channels
        frames = frames.T
    if frames.dtype.kind == "i":
        return frames
    _check_magnitude(np, frames)
    return frames.astype(np.float32)


def _check_magnitude(np: Any, frames: Any) -> None:
    wrong = np.argwhere(~(np.abs(frames) <= _MAX_MAGNITUDE))
    if len(wrong):
        raise ConfigError(f"Sample {wrong[0][0]} is {frames[tuple(wrong[0])]}: give numbers from -1 to 1.")


def _check_length(seconds: float) -> None:
    if not _MIN_SECONDS - _TOLERANCE <= seconds <= _MAX_SECONDS + _TOLERANCE:
        raise ConfigError(
            f"These samples are {seconds:.2f} seconds long: give {_MIN_SECONDS} to {_MAX_SECONDS} seconds. "
            "For longer recordings use asynch.classify."
        )


def _checked_rate(sample_rate: Any) -> int:
    # Some libraries, such as librosa, return whole rates as floats.
    is_whole = isinstance(sample_rate, Real) and not isinstance(sample_rate, bool) and float(sample_rate).is_integer()
    rate = int(sample_rate) if is_whole else 0
    if not _MIN_RATE <= rate <= _MAX_RATE:
        raise ConfigError(
            f"sample_rate is {sample_rate!r}: give a whole number of hertz from {_MIN_RATE} to {_MAX_RATE}."
        )
    return rate
