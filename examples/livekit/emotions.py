"""
Live emotions of the participants of a LiveKit room.

An agent calls `attach` after it has joined. Then `on_emotion` is called every few seconds for each participant who speaks:

    from livekit.agents import JobContext
    from emotions import attach

    async def entrypoint(ctx: JobContext) -> None:
        await ctx.connect()
        attach(ctx.room, lambda who, heard: print(who, heard.t, heard.main_emotion, heard.confidence))

Set SERVICE_API_KEY to a key and SERVICE_URL to the address of the server. Needs `livekit` and `undertone-client[stream]`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Callable

from undertone_client import CONFIDENCE_FLOOR, AsyncEmotionClient, StreamPrediction

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

OnEmotion = Callable[[str, StreamPrediction], None]


async def emotions(client: AsyncEmotionClient, audio: AsyncIterable[Any], **settings: Any) -> AsyncIterator[StreamPrediction]:
    """Yield the emotions in an `rtc.AudioStream`. Its first frame gives the sample rate and the channels."""
    events = audio.__aiter__()
    try:
        first = (await events.__anext__()).frame
    except StopAsyncIteration:
        return

    async def samples() -> AsyncIterator[bytes]:
        yield bytes(first.data)
        async for event in events:
            yield bytes(event.frame.data)

    async with client.stream(sample_rate=first.sample_rate, channels=first.num_channels, **settings) as stream:
        async for prediction in stream.feed(samples()):
            if prediction.confidence >= CONFIDENCE_FLOOR:
                yield prediction


def attach(room: Any, on_emotion: OnEmotion, client: AsyncEmotionClient | None = None, **settings: Any) -> None:
    """Analyse every audio track of a room until the track ends."""
    from livekit import rtc

    listening: set[asyncio.Task[None]] = set()
    shared = client or AsyncEmotionClient()

    async def listen(track: Any, who: str) -> None:
        async for prediction in emotions(shared, rtc.AudioStream(track), **settings):
            on_emotion(who, prediction)

    @room.on("track_subscribed")  # type: ignore[untyped-decorator]
    def begin(track: Any, _publication: Any, participant: Any) -> None:
        if track.kind == rtc.TrackKind.KIND_AUDIO:
            task = asyncio.create_task(listen(track, participant.identity))
            listening.add(task)
            task.add_done_callback(listening.discard)
