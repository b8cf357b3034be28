"""Decodes clips kept as bare Opus packets, with the system's libopus (LIBOPUS names another library file)."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from pathlib import Path

import numpy as np

from .frontend import SAMPLE_RATE, Array

FRAME = 320  # 20 ms at 16 kHz


@functools.cache
def _library() -> ctypes.CDLL:
    name = os.environ.get("LIBOPUS", "libopus.so.0")
    try:
        library = ctypes.CDLL(name)
    except OSError as problem:
        raise OSError(
            f"cannot load {name}: install libopus0, or name the library file in LIBOPUS ({problem})"
        ) from problem
    library.opus_decoder_create.restype = ctypes.c_void_p
    library.opus_decoder_destroy.argtypes = [ctypes.c_void_p]
    library.opus_decode.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int,
    ]
    return library


def read_clip(path: str | Path, offset: int, length: int) -> Array:
    """int16 samples at 16 kHz of one clip in a file of many."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        blob = file.read(length)
    if len(blob) != length:
        raise ValueError(f"{path}: ends before byte {offset + length}")
    return decode(blob, f"{path} at byte {offset}")


def decode(blob: bytes, where: str = "a clip") -> Array:
    """u32 samples, u16 samples to skip, u32 packets; then u16 length and bytes of each packet -> int16 samples."""
    library = _library()
    samples, skip, packets = struct.unpack_from("<IHI", blob)
    error, at = ctypes.c_int(), 10
    out = np.empty(packets * FRAME, np.int16)
    decoder = library.opus_decoder_create(SAMPLE_RATE, 1, ctypes.byref(error))
    try:
        for i in range(packets):
            (size,) = struct.unpack_from("<H", blob, at)
            target = out.ctypes.data + i * FRAME * 2
            if library.opus_decode(decoder, blob[at + 2 : at + 2 + size], size, target, FRAME, 0) != FRAME:
                raise ValueError(f"{where}: packet {i} does not decode")
            at += 2 + size
    finally:
        library.opus_decoder_destroy(decoder)
    return out[skip : skip + samples]
