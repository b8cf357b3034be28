"""Makes the synchronous versions of async methods: same parameters, types and documentation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from typing_extensions import Concatenate, ParamSpec

    from ._portal import Portal

    P = ParamSpec("P")

T = TypeVar("T")


class Synchronous:
    """Wraps an async object whose methods run on the event loop of a portal."""

    def __init__(self, wrapped: Any, portal: Portal) -> None:
        self._wrapped = wrapped
        self._portal = portal


def synchronous(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Make a method that runs the async one to completion."""

    @functools.wraps(method)
    def run(self: Synchronous, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._portal.run(method(self._wrapped, *args, **kwargs))

    return run


def synchronous_iterator(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Make a generator of an async one. Its background tasks keep running between two items."""

    @functools.wraps(method)
    def run(self: Synchronous, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items: Any = method(self._wrapped, *args, **kwargs)

        async def following() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        async def end() -> None:
            await items.aclose()

        try:
            while (item := self._portal.run(following())) is not None:
                yield item[0]
        finally:
            self._portal.run(end())

    return run
