"""The synchronous client: the coroutines of `async_client`, run on an event loop in the background."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ._asynch import AsyncAsynch
from ._base import ClientBase
from ._discrete import AsyncDiscrete
from ._portal import Portal
from ._requests import AsyncRequests, list_models
from ._sync import Synchronous, synchronous, synchronous_iterator
from ._tokens import AsyncTokens
from .async_client import AsyncEmotionClient
from .stream import EmotionStream

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    from ._session import Session
    from .async_stream import AsyncEmotionStream
    from .listings import ModelList

    P = ParamSpec("P")


class Discrete(Synchronous):
    """Short recordings of 4 to 10 seconds, classified immediately."""

    emotions = synchronous(AsyncDiscrete.emotions)
    many = synchronous_iterator(AsyncDiscrete.many)


class Requests(Synchronous):
    """Long recordings that the service knows."""

    status = synchronous(AsyncRequests.status)
    list = synchronous(AsyncRequests.list)
    iter_requests = synchronous_iterator(AsyncRequests.iter_requests)
    webhook_secret = synchronous(AsyncRequests.webhook_secret)
    delete = synchronous(AsyncRequests.delete)


class Asynch(Requests):
    """Long recordings: upload one, then fetch its timeline."""

    upload = synchronous(AsyncAsynch.upload)
    submit = synchronous(AsyncAsynch.submit)
    emotions = synchronous(AsyncAsynch.emotions)
    classify = synchronous(AsyncAsynch.classify)


class Tokens(Synchronous):
    """Short-lived credentials that work as an API key, for one purpose or for all."""

    create = synchronous(AsyncTokens.create)


def _synchronous_stream(
    method: Callable[Concatenate[Any, P], AsyncEmotionStream],
) -> Callable[Concatenate[Any, P], EmotionStream]:
    @functools.wraps(method)
    def open_stream(self: EmotionClient, /, *args: P.args, **kwargs: P.kwargs) -> EmotionStream:
        async def make() -> AsyncEmotionStream:  # before Python 3.10 its locks belong to the loop they are made in
            return method(self, *args, **kwargs)

        return EmotionStream(self._portal.run(make()), self._portal)

    return open_stream


class EmotionClient(ClientBase):
    """
    Client for an Undertone server. Thread-safe, and usable inside a running event loop.

    >>> client = EmotionClient()                     # reads the key from SERVICE_API_KEY
    >>> client.discrete.emotions("hello.wav")        # 4 to 10 seconds: one emotion, immediately
    >>> client.asynch.classify("interview.wav")      # 5 seconds to 1 GiB: a timeline
    """

    #: Short recordings, classified immediately.
    discrete: Discrete
    #: Long recordings, classified into a timeline.
    asynch: Asynch
    #: Short-lived credentials.
    tokens: Tokens

    def _open(self, session: Session) -> None:
        self._session = session
        self._portal = Portal(session.close_all)
        self.discrete = Discrete(AsyncDiscrete(session), self._portal)
        self.asynch = Asynch(AsyncAsynch(session), self._portal)
        self.tokens = Tokens(AsyncTokens(session), self._portal)

    def models(self, *, timeout: float | None = None) -> ModelList:
        """List the server's models, their accuracy, and the licence of the weights in use."""
        return self._portal.run(list_models(self._session, timeout))

    stream = _synchronous_stream(AsyncEmotionClient.stream)

    def close(self) -> None:
        """Close the connections. Using the client again opens new ones."""
        self._portal.close()

    def __enter__(self) -> EmotionClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
