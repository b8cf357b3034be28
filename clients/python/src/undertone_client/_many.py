"""Concurrent classification of a batch, with shared backpressure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _retry
from ._portal import detach
from .errors import UndertoneError
from .results import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterable

    from .results import DiscreteResult

T = TypeVar("T")

_UNAUTHORIZED = 401


class SharedPause:
    """When the server asks one call of a batch to wait, all of them wait."""

    def __init__(self) -> None:
        self._pauses: set[asyncio.Future[None]] = set()

    async def wait(self, milliseconds: int) -> None:
        """Wait, and hold back all other calls."""
        pause = asyncio.ensure_future(_retry.wait(milliseconds))
        self._pauses.add(pause)
        pause.add_done_callback(self._pauses.discard)
        await pause

    async def over(self) -> None:
        """Wait until no pause is active."""
        while self._pauses:
            await asyncio.wait(self._pauses)


async def as_completed(
    items: Iterable[T], limit: int, work: Callable[[T], Awaitable[Outcome]]
) -> AsyncGenerator[Outcome, None]:
    """Process up to `limit` items concurrently, and yield each outcome as soon as it is available."""
    running: set[asyncio.Task[Outcome]] = set()
    done: set[asyncio.Task[Outcome]] = set()
    waiting = iter(items)

    async def begin(item: T) -> Outcome:
        detach()
        return await work(item)

    try:
        while True:
            while len(running) < limit and (item := next(waiting, _END)) is not _END:
                running.add(asyncio.ensure_future(begin(item)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        # The caller stopped iterating, or an outcome raised.
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


async def outcome_of(file: Any, classify: Callable[[Any], Awaitable[DiscreteResult]]) -> Outcome:
    """Catch the error of one recording. A wrong key or an unreachable server would affect all, and is raised."""
    try:
        return Outcome(file, await classify(file), None)
    except UndertoneError as error:
        if error.status == _UNAUTHORIZED or error.code == "connection_failed":
            raise
        return Outcome(file, None, error)


_END: Any = object()
