"""The client that blocks until there is an answer: `async_client`, run on an event loop in the background."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._base import ClientBase
from ._checks import STREAM_NUMBERS, default
from ._portal import Portal
from .async_client import AsyncAsynch, AsyncDiscrete, list_models
from .async_stream import AsyncEmotionStream
from .stream import EmotionStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from typing_extensions import Concatenate, ParamSpec

    from ._session import Session
    from .results import ModelList

    P = ParamSpec("P")

T = TypeVar("T")


class EmotionClient(ClientBase):
    """
    Talks to an Undertone server. Threads may share it, and it works inside a running event loop.

    >>> client = EmotionClient()                     # the key comes from SERVICE_API_KEY
    >>> client.discrete.emotions("hello.wav")        # 4 to 10 seconds, answered at once
    >>> client.asynch.classify("interview.wav")      # 5 seconds to 1 GiB, answered with a time line
    """

    #: Short recordings, answered at once.
    discrete: Discrete
    #: Long recordings, answered with a time line.
    asynch: Asynch

    def _open(self, session: Session) -> None:
        self._session = session
        self._portal = Portal(session.close)
        self.discrete = Discrete(AsyncDiscrete(session), self._portal)
        self.asynch = Asynch(AsyncAsynch(session), self._portal)

    def models(self) -> ModelList:
        """List the models the server offers, how well they do, and the licence of the weights in use."""
        return self._portal.run(list_models(self._session))

    def stream(
        self,
        *,
        model: str | None = None,
        sample_rate: int = default("sample_rate", STREAM_NUMBERS),
        encoding: str = "pcm_s16le",
        channels: int = default("channels", STREAM_NUMBERS),
        interval: int = default("interval", STREAM_NUMBERS),
        on_reconnect: Callable[[], object] | None = None,
    ) -> EmotionStream:
        """
        Open a stream of live audio: write samples, and read an emotion every few seconds. Needs websockets.

        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param sample_rate: hertz, 8000 to 192000
        :param encoding: ``pcm_s16le``, ``pcm_f32le``, ``mulaw`` or ``alaw``
        :param channels: 1 or 2, interleaved; each is heard apart
        :param interval: **seconds** between two predictions, 1 to 10
        :param on_reconnect: called when a connection that broke has been made again
        """

        async def make() -> AsyncEmotionStream:
            return AsyncEmotionStream(
                self._session,
                model=model,
                sample_rate=sample_rate,
                encoding=encoding,
                channels=channels,
                interval=interval,
                on_reconnect=on_reconnect,
            )

        return EmotionStream(self._portal.run(make()), self._portal)

    def close(self) -> None:
        """Close the connections. A client that is used again opens new ones."""
        self._portal.close()

    def __enter__(self) -> EmotionClient:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close the connections at the end of the block."""
        self.close()


def _blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Make a method that runs one of the async client's to its end; parameters, types and docs are the same."""

    @functools.wraps(method)
    def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        portal: Portal = self._portal
        return portal.run(method(self._interface, *args, **kwargs))

    return run


def _iterating(method: Callable[Concatenate[Any, P], AsyncIterator[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Make a generator of one of the async client's; the work goes on in the background between two items."""

    @functools.wraps(method)
    def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        portal: Portal = self._portal
        items: Any = method(self._interface, *args, **kwargs)

        async def following() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        async def end() -> None:
            await items.aclose()

        try:
            while (item := portal.run(following())) is not None:
                yield item[0]
        finally:
            portal.run(end())

    return run


class _Interface:
    def __init__(self, interface: AsyncDiscrete | AsyncAsynch, portal: Portal) -> None:
        self._interface = interface
        self._portal = portal


class Discrete(_Interface):
    """Short recordings of 4 to 10 seconds, answered at once."""

    emotions = _blocking(AsyncDiscrete.emotions)
    many = _iterating(AsyncDiscrete.many)


class Asynch(_Interface):
    """Long recordings: send one, then ask for its time line."""

    upload = _blocking(AsyncAsynch.upload)
    submit = _blocking(AsyncAsynch.submit)
    emotions = _blocking(AsyncAsynch.emotions)
    classify = _blocking(AsyncAsynch.classify)
    list = _blocking(AsyncAsynch.list)
    webhook_secret = _blocking(AsyncAsynch.webhook_secret)
    delete = _blocking(AsyncAsynch.delete)
