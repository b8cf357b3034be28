"""Concurrent classification of a batch."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._portal import detach
from .errors import AuthenticationError, ConnectionFailedError, UndertoneError
from .results import Classified, Outcome, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterable

    from .results import DiscreteResult

T = TypeVar("T")


def batch_problem(files: Any) -> str | None:
    """Refuse one recording where several are expected: the characters of a path are not paths."""
    is_one = isinstance(files, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(files, "__array__")
    if is_one or callable(getattr(files, "read", None)):
        return (
            "files is a single recording: give a list of recordings. For the files of a folder use "
            'pathlib.Path(folder).glob("*.wav"); for one recording use discrete.emotions.'
        )
    return None if hasattr(files, "__iter__") else "files must be a list of recordings, or another iterable."


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


async def outcome_of(index: int, file: Any, classify: Callable[[Any], Awaitable[DiscreteResult]]) -> Outcome:
    """Catch the error of one recording. A wrong key or an unreachable server would affect all, and is raised."""
    try:
        return Classified(file, await classify(file), index=index)
    except (AuthenticationError, ConnectionFailedError):
        raise
    except UndertoneError as error:
        return Refused(file, error, index=index)


_END: Any = object()
