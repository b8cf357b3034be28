"""Live audio against the real server: streaming, reconnecting and errors."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from undertone_client import (
    AsyncEmotionClient,
    AsyncEmotionStream,
    ConfigError,
    EmotionClient,
    MissingPackageError,
    RequestFailedError,
    StreamPrediction,
)

from .support.real_server import RealServer
from .support.talk import RATE, talk, wav

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VOICE = talk(12)[44:]
SECOND = 2 * RATE

both = pytest.mark.parametrize("kind", [EmotionClient, AsyncEmotionClient], ids=["sync", "async"])


def pieces(sound: bytes, size: int = 3201) -> Iterator[bytes]:
    for at in range(0, len(sound), size):
        yield sound[at : at + size]


def predictions_of(
    kind: type, server: dict[str, Any], sound: Iterable[bytes], **settings: Any
) -> list[StreamPrediction]:
    """Return all predictions, from either client."""
    if kind is EmotionClient:
        with EmotionClient(**server) as client, client.stream(sample_rate=RATE, **settings) as stream:
            return list(stream.feed(sound))

    async def listen() -> list[StreamPrediction]:
        client = AsyncEmotionClient(**server)
        async with client, client.stream(sample_rate=RATE, **settings) as stream:
            return [prediction async for prediction in stream.feed(sound)]

    return asyncio.run(listen())


@both
def test_stream_predictions_match_the_discrete_interface(kind: type, real: RealServer) -> None:
    predictions = predictions_of(kind, real.settings, pieces(VOICE), model="7emotions")
    assert [(item.t, item.start, item.end) for item in predictions] == [
        ("00:00", 0, 5),
        ("00:05", 5, 10),
        ("00:07", 7, 12),
    ]
    with EmotionClient(**real.settings) as client:
        discrete = client.discrete.emotions(wav(VOICE[: 5 * SECOND], RATE), model="7emotions")
    assert predictions[0].main_emotion == discrete.main_emotion
    assert predictions[0].all_predictions == discrete.all_predictions
    assert predictions[0].to_dict()["speech_seconds"] > 1


@both
def test_two_channels_and_another_interval(kind: type, real: RealServer) -> None:
    stereo = b"".join(VOICE[at : at + 2] * 2 for at in range(0, 6 * SECOND, 2))
    predictions = predictions_of(kind, real.settings, pieces(stereo), channels=2, interval=1)
    assert [(item.end, item.channel) for item in predictions] == [(4, 0), (4, 1), (5, 0), (5, 1), (6, 0), (6, 1)]
    assert predictions[2].all_predictions == predictions[3].all_predictions


def test_feed_accepts_an_async_iterator(real: RealServer) -> None:
    async def listen() -> int:
        async def microphone() -> Any:
            for piece in pieces(VOICE[: 6 * SECOND]):
                await asyncio.sleep(0)
                yield piece

        async with AsyncEmotionClient(**real.settings) as client, client.stream(sample_rate=RATE) as stream:
            return len([prediction async for prediction in stream.feed(microphone())])

    assert asyncio.run(listen()) == 2


def test_one_thread_can_write_while_another_reads(real: RealServer) -> None:
    with EmotionClient(**real.settings) as client, client.stream(sample_rate=RATE) as stream:
        found: list[StreamPrediction] = []
        reader = threading.Thread(target=lambda: found.extend(stream))
        reader.start()
        for piece in pieces(VOICE):
            stream.write(piece)
        stream.end()
        reader.join()
    assert len(found) == 3
    with pytest.raises(RequestFailedError, match="has ended"):
        stream.write(VOICE)


def test_streams_that_were_lost_together_do_not_reconnect_together(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def opened(_stream: AsyncEmotionStream) -> str:
        return "connection"

    monkeypatch.setattr("undertone_client.async_stream.asyncio.sleep", sleep)
    monkeypatch.setattr("undertone_client.async_stream.random.random", lambda: 0.9)
    monkeypatch.setattr(AsyncEmotionStream, "_open", opened)

    async def connect() -> None:
        stream = AsyncEmotionClient(api_key="k").stream()
        await stream._open_spread(0)
        assert slept == [], "the first connection is made at once"
        stream._connected_before = True
        await stream._open_spread(0)
        assert slept == [pytest.approx(0.45)]
        await stream._open_spread(1)
        assert len(slept) == 1, "retries wait by themselves"

    asyncio.run(connect())


@both
def test_the_stream_reconnects_after_the_server_restarts(
    kind: type, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("undertone_client._retry.LONGEST_MS", 500)
    voice, half = talk(20)[44:], 6 * SECOND + 1  # in the middle of a sample
    server = RealServer()
    back = threading.Thread(target=server.start)
    reconnected: list[bool] = []
    settings: dict[str, Any] = {"sample_rate": RATE, "on_reconnect": lambda: reconnected.append(True)}

    def restart() -> None:
        server.kill()
        back.start()

    def until_noticed() -> None:
        # Audio written before this is lost with the broken connection.
        while "The stream lost its connection" not in caplog.text:
            time.sleep(0.01)

    def synchronous() -> list[StreamPrediction | None]:
        with EmotionClient(**server.settings, retry_attempts=100) as client, client.stream(**settings) as stream:
            stream.write(voice[:half])
            before = stream.read()
            restart()
            until_noticed()
            for piece in pieces(voice[half:]):
                stream.write(piece)
            return [before, stream.read()]

    async def asynchronous() -> list[StreamPrediction | None]:
        client = AsyncEmotionClient(**server.settings, retry_attempts=100)
        async with client, client.stream(**settings) as stream:
            await stream.write(voice[:half])
            before = await stream.read()
            restart()
            await asyncio.to_thread(until_noticed)
            for piece in pieces(voice[half:]):
                await stream.write(piece)
            return [before, await stream.read()]

    try:
        before, after = synchronous() if kind is EmotionClient else asyncio.run(asynchronous())
    finally:
        back.join()
        server.stop()
    assert before is not None
    assert after is not None
    assert (before.start, before.end) == (0, 5)
    assert after.start >= 6
    assert round(after.end - after.start, 6) == 5
    assert after.speech_seconds > 1, "the sample cut in half must not misalign the others"
    assert reconnected
    assert "The stream lost its connection" in caplog.text
    assert "The stream has reconnected" in caplog.text


@both
def test_a_wrong_key_raises_with_its_code(kind: type, real: RealServer) -> None:
    with pytest.raises(RequestFailedError) as caught:
        predictions_of(kind, {**real.settings, "api_key": "wrong"}, pieces(VOICE))
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert caught.value.request_id


@both
def test_an_error_of_the_microphone_ends_the_stream(kind: type, real: RealServer) -> None:
    def unplugged() -> Iterator[bytes]:
        yield VOICE[:SECOND]
        raise OSError("unplugged")

    with pytest.raises(OSError, match="unplugged"):
        predictions_of(kind, real.settings, unplugged())


def test_the_error_says_how_to_start_a_server() -> None:
    client = EmotionClient("k", base_url="http://127.0.0.1:9")
    with client, client.stream() as stream, pytest.raises(RequestFailedError, match="No server is running"):
        stream.write(VOICE)


@both
def test_all_invalid_options_are_reported_before_anything_is_sent(kind: type) -> None:
    with pytest.raises(ConfigError) as caught:
        kind("k").stream(model="6emotions", sample_rate=7, encoding="mp3", channels=3, interval=11)
    assert len(caught.value.problems) == 5


def test_without_websockets_the_error_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "websockets", None)
    with pytest.raises(MissingPackageError, match="pip install websockets"):
        EmotionClient("k").stream()
