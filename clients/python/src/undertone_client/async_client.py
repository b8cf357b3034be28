"""The asyncio client. Every operation is implemented for asyncio; `client` runs the same coroutines synchronously."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ._asynch import AsyncAsynch
from ._base import ClientBase
from ._checks import STREAM_NUMBERS, default
from ._discrete import AsyncDiscrete
from ._requests import list_models
from ._tokens import AsyncTokens
from .async_stream import AsyncEmotionStream

if TYPE_CHECKING:
    from ._session import Session
    from .listings import ModelList
    from .literals import Encoding, ModelName


class AsyncEmotionClient(ClientBase):
    """
    Client for an Undertone server, for asyncio.

    >>> client = AsyncEmotionClient()                  # reads the key from SERVICE_API_KEY
    >>> await client.discrete.emotions("hello.wav")    # 4 to 10 seconds: one emotion, immediately
    >>> await client.asynch.classify("interview.wav")  # 5 seconds to 1 GiB: a timeline
    """

    #: Short recordings, classified immediately.
    discrete: AsyncDiscrete
    #: Long recordings, classified into a timeline.
    asynch: AsyncAsynch
    #: Short-lived credentials.
    tokens: AsyncTokens

    def _open(self, session: Session) -> None:
        self._session = session
        self.discrete = AsyncDiscrete(session)
        self.asynch = AsyncAsynch(session)
        self.tokens = AsyncTokens(session)

    async def models(self, *, timeout: float | None = None) -> ModelList:
        """List the server's models, their accuracy, and the licence of the weights in use."""
        return await list_models(self._session, timeout)

    def stream(
        self,
        *,
        model: ModelName | None = None,
        sample_rate: int = default("sample_rate", STREAM_NUMBERS),
        encoding: Encoding = "pcm_s16le",
        channels: int = default("channels", STREAM_NUMBERS),
        interval: int = default("interval", STREAM_NUMBERS),
        on_reconnect: Callable[[], object] | None = None,
    ) -> AsyncEmotionStream:
        """
        Open a stream of live audio: write samples, and read an emotion every few seconds. Needs websockets.

        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param sample_rate: hertz, 8000 to 192000
        :param encoding: ``pcm_s16le``, ``pcm_f32le``, ``mulaw`` or ``alaw``
        :param channels: 1 or 2, interleaved; each is analysed separately
        :param interval: **seconds** between predictions, 1 to 10
        :param on_reconnect: called after each reconnection
        """
        return AsyncEmotionStream(
            self._session,
            model=model,
            sample_rate=sample_rate,
            encoding=encoding,
            channels=channels,
            interval=interval,
            on_reconnect=on_reconnect,
        )

    async def close(self) -> None:
        """Close the connections. Using the client again opens new ones."""
        await self._session.close()

    async def __aenter__(self) -> AsyncEmotionClient:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()
