"""Test recordings."""

from __future__ import annotations

import io
import wave

from .real_server import VOICES

RATE = 16_000


def talk(seconds: float) -> bytes:
    """Return a WAV of the example voices, repeated to the given length."""
    voices = b"".join(_samples(path.read_bytes()) for path in sorted(VOICES.glob("*.wav")))
    wanted = round(seconds * RATE) * 2
    return wav((voices * (wanted // len(voices) + 1))[:wanted], RATE)


def wav(frames: bytes, rate: int, channels: int = 1, width: int = 2) -> bytes:
    """Return a WAV file with these frames."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate)
        writer.writeframes(frames)
    return file.getvalue()


def _samples(file: bytes) -> bytes:
    with wave.open(io.BytesIO(file)) as reader:
        return bytes(reader.readframes(reader.getnframes()))
