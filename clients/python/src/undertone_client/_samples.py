"""Converts samples to the JSON input of the discrete endpoint: mono, 44,100 Hz, 4.5 s from 0.5 s on."""

from __future__ import annotations

import json
import math
import operator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ._optional import optional
from ._source import open_source
from ._wav import read_wav
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
    optional("numpy", "prepare")
    with closing(open_source(file_path, max_bytes=1024**3)) as source:
        samples, rate = read_wav(source.file)
    prepared: npt.NDArray[np.float32] = prepare_samples(samples, rate)
    return prepared


def prepare_samples(samples: Any, sample_rate: Any) -> Any:
    """Convert samples in memory the same way. Samples that are already converted stay unchanged."""
    np = optional("numpy", "samples")
    rate = _checked_rate(sample_rate)
    mono = _mono(np, samples)
    seconds = len(mono) / rate
    if not _MIN_SECONDS - _TOLERANCE <= seconds <= _MAX_SECONDS + _TOLERANCE:
        raise ConfigError(
            f"These samples are {seconds:.2f} seconds long: give {_MIN_SECONDS} to {_MAX_SECONDS} seconds. "
            "For longer recordings use asynch.classify."
        )
    wrong = np.flatnonzero(~(np.abs(mono) <= _MAX_MAGNITUDE))
    if len(wrong):
        raise ConfigError(f"Sample {wrong[0]} is {mono[wrong[0]]}: give numbers from -1 to 1.")
    available = math.floor(len(mono) * RATE / rate)
    start = max(0, min(round(_OFFSET_SECONDS * RATE), available - LENGTH))
    count = min(LENGTH, available - start)
    if rate == RATE:
        return mono[start : start + count].astype(np.float32)
    return resample(mono, rate, start, count).astype(np.float32)


def samples_as_json(samples: Any, sample_rate: Any) -> bytes:
    """Convert samples and encode them as the API documents: a JSON string that contains a JSON object."""
    # Seven decimals are finer than 24 bits, in a third of the bytes of full precision.
    numbers = [round(number, 7) for number in prepare_samples(samples, sample_rate).tolist()]
    return json.dumps(json.dumps({"payload": [numbers]})).encode()


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


def _mono(np: Any, samples: Any) -> Any:
    array = np.asarray(samples)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
        raise ConfigError("samples must be a numeric array with one dimension, or two for several channels.")
    if array.dtype.kind == "u":
        middle = 2.0 ** (array.dtype.itemsize * 8 - 1)
        array = (array - middle) / middle
    elif array.dtype.kind == "i":
        array = array / 2.0 ** (array.dtype.itemsize * 8 - 1)
    if array.ndim == 2:  # noqa: PLR2004 - the shorter axis is the channels
        array = array.mean(axis=int(np.argmin(array.shape)))
    return array.astype(np.float64)


def _checked_rate(sample_rate: Any) -> int:
    try:
        rate = None if isinstance(sample_rate, bool) else operator.index(sample_rate)
    except TypeError:
        # Some libraries return whole rates as floats.
        rate = int(sample_rate) if isinstance(sample_rate, float) and sample_rate.is_integer() else None
    if rate is None or not _MIN_RATE <= rate <= _MAX_RATE:
        raise ConfigError(
            f"sample_rate is {sample_rate!r}: give a whole number of hertz from {_MIN_RATE} to {_MAX_RATE}."
        )
    return rate
