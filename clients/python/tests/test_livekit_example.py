"""examples/livekit, with frames as LiveKit delivers them."""

from __future__ import annotations

import asyncio
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from undertone_client import AsyncEmotionClient

from .support.real_server import ROOT, VOICES
from .support.talk import RATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .support.real_server import RealServer

#: 10 ms, as in LiveKit.
FRAME = RATE // 100


@dataclass
class Frame:
    data: memoryview
    sample_rate: int = RATE
    num_channels: int = 1
    samples_per_channel: int = FRAME


@dataclass
class Event:
    frame: Frame


async def recorded(sound: bytes) -> AsyncIterator[Event]:
    for at in range(0, len(sound) - 2 * FRAME + 1, 2 * FRAME):
        yield Event(Frame(memoryview(sound[at : at + 2 * FRAME]).cast("h")))


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("emotions", ROOT / "examples/livekit/emotions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_livekit_example_classifies_a_participant(real: RealServer) -> None:
    example = load_example()
    sound = (VOICES / "angry-1013.wav").read_bytes()[44:]

    async def listen(audio: AsyncIterator[Event]) -> list[Any]:
        async with AsyncEmotionClient(**real.settings) as client:
            return [heard async for heard in example.emotions(client, audio)]

    heard = asyncio.run(listen(recorded(sound)))
    assert [(item.t, item.main_emotion) for item in heard] == [("00:00", "angry")]
    assert asyncio.run(listen(recorded(b""))) == []
