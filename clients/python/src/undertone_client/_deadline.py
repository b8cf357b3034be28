"""The time limit of a call: it applies to every request, retry and delay of that call."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_deadline: ContextVar[float | None] = ContextVar("undertone_deadline", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit everything inside to this many seconds. None: no limit of its own."""
    if seconds is None:
        yield
        return
    left = remaining()
    token = _deadline.set(time.monotonic() + (seconds if left is None else min(left, seconds)))
    try:
        yield
    finally:
        _deadline.reset(token)


def remaining() -> float | None:
    """Return the seconds that are left, at least 0. None: there is no limit."""
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - time.monotonic())
