"""Adapts the number of concurrent requests of a batch to what the server can take."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Callable, TypeVar

from . import _retry
from ._failure import Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")

#: Concurrent requests at the start, and by how much slower the limit grows where the server was overloaded before.
_FIRST_LIMIT = 4
_CAUTION = 8

_TOO_MANY_REQUESTS, _UNAVAILABLE = 429, 503


class Throttle:
    """
    Halves its limit when the server is overloaded (503), and raises it slowly while requests succeed.

    The limit starts at 4 and grows with every success. After an overload it grows by one per round of requests, and
    more cautiously still from just under the limit that was too much. When the server limits the rate (429), or is
    overloaded by a single request, all requests wait as long as it asks.
    """

    def __init__(self, concurrency: int) -> None:
        self._most = concurrency
        self._limit = float(min(concurrency, _FIRST_LIMIT))
        self._too_much: float | None = None
        self._running = 0
        #: Counts how often the limit was lowered: requests that were sent together lower it once.
        self._lowered = 0
        self._pauses: set[asyncio.Future[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """Send a request when its turn has come, and learn from how it ends."""
        await self.turn()
        self._running += 1
        lowered = self._lowered
        try:
            response = await request()
        except Failure as failure:
            if failure.details.get("status") == _UNAVAILABLE and lowered == self._lowered:
                self._lower()
            raise
        else:
            self._raise()
            return response
        finally:
            self._running -= 1
            self._wake()

    async def pause(self, reason: Failure, milliseconds: int) -> None:
        """Wait before a retry, and hold back the other requests if that is what the server needs."""
        if reason.details.get("status") != _TOO_MANY_REQUESTS and self._limit > 1:
            await _retry.wait(milliseconds)
            return
        pause = asyncio.ensure_future(_retry.wait(milliseconds))
        self._pauses.add(pause)
        pause.add_done_callback(self._pauses.discard)
        await pause

    async def turn(self) -> None:
        """Wait until a request may be sent."""
        while self._pauses or self._running >= int(self._limit):
            if self._pauses:
                await asyncio.wait(self._pauses)
                continue
            turn = asyncio.get_running_loop().create_future()
            self._waiting.add(turn)
            try:
                await turn
            finally:
                self._waiting.discard(turn)

    def _wake(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _lower(self) -> None:
        self._lowered += 1
        self._too_much = self._limit
        self._limit = max(1.0, self._limit / 2)

    def _raise(self) -> None:
        if self._too_much is None:
            step = 1.0
        else:
            step = 1 / self._limit / (1 if self._limit < self._too_much - 1 else _CAUTION)
        self._limit = min(self._most, self._limit + step)
