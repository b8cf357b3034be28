"""WAV files: reads PCM of 8 to 32 bits or floats, mixed to mono; writes 16-bit PCM and 32-bit floats."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from ._optional import optional
from .errors import ConfigError

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE

#: Maximum read, whatever the header says: no more than ten seconds are needed.
_MAX_BYTES = 32 * 1024 * 1024


def read_wav(file: BinaryIO) -> tuple[Any, int]:
    """Return the samples, mono, from -1 to 1, and the sample rate."""
    riff, _, wave = struct.unpack("<4sI4s", _exactly(file, 12))
    if (riff, wave) != (b"RIFF", b"WAVE"):
        raise _unreadable("this is not a WAV file")
    form: tuple[int, int, int, int] | None = None
    while True:
        name, size = struct.unpack("<4sI", _exactly(file, 8))
        if name == b"fmt ":
            form = _read_format(_exactly(file, size))
            file.seek(size % 2, 1)
        elif name == b"data":
            break
        else:
            file.seek(size + size % 2, 1)
    if form is None:
        raise _unreadable("its data chunk comes before its format chunk")
    encoding, channels, rate, bits = form
    frame = channels * bits // 8
    data = file.read(min(size, _MAX_BYTES))
    samples = _decode(data[: len(data) // frame * frame], encoding, bits)
    return samples.reshape(-1, channels).mean(axis=1), rate


def write_wav(frames: Any, rate: int) -> bytes:
    """Return a WAV file of frames by channels, either 16-bit integers or 32-bit floats."""
    channels, width = frames.shape[1], frames.dtype.itemsize
    encoding = _PCM if frames.dtype.kind == "i" else _FLOAT
    data: bytes = frames.astype(frames.dtype.newbyteorder("<")).tobytes()
    form = struct.pack("<HHIIHH", encoding, channels, rate, rate * channels * width, channels * width, width * 8)
    header = struct.pack("<4sI4s4sI16s4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, form, b"data", len(data))
    return header + data


def _read_format(chunk: bytes) -> tuple[int, int, int, int]:
    if len(chunk) < 16:  # noqa: PLR2004
        raise _unreadable("its format chunk is too short")
    encoding, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
    if encoding == _EXTENSIBLE and len(chunk) >= 26:  # noqa: PLR2004 - the real encoding begins a GUID there
        encoding = struct.unpack("<H", chunk[24:26])[0]
    if (encoding, bits) not in ((_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)):
        raise _unreadable(f"its encoding (number {encoding}, {bits} bits) is neither PCM nor float")
    if channels == 0 or rate == 0:
        raise _unreadable("its channel count or sample rate is zero")
    return encoding, channels, rate, bits


def _decode(data: bytes, encoding: int, bits: int) -> Any:
    np = optional("numpy", "prepare")
    if encoding == _FLOAT:
        return np.frombuffer(data, f"<f{bits // 8}").astype(np.float64)
    if bits == 8:  # noqa: PLR2004
        return (np.frombuffer(data, np.uint8).astype(np.float64) - 128) / 128
    if bits == 24:  # noqa: PLR2004
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.view("<i4").reshape(-1) / 2.0**31
    return np.frombuffer(data, f"<i{bits // 8}") / 2.0 ** (bits - 1)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _unreadable("the file is truncated")
    return data


def _unreadable(why: str) -> ConfigError:
    return ConfigError(
        f"Cannot read the samples of this file: {why}. Send the file itself with discrete.emotions(file_path): "
        "the service supports more formats.",
        "unreadable_audio",
    )
