"""When to try again, and how long to wait before."""

from __future__ import annotations

import itertools
import math
import random
from email.utils import parsedate_to_datetime
from typing import Callable, TypeVar

from ._failure import Failure
from ._log import logger
from ._steps import Steps, wait

#: The first wait in milliseconds, doubled with every retry up to the longest one.
FIRST_MS = 500
LONGEST_MS = 10_000

#: A service that wants to be left alone for longer than this is not waited for.
LONGEST_RETRY_AFTER_SECONDS = 60

RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})

T = TypeVar("T")


def retry_delay(retry: int, chance: float, retry_after_seconds: float | None = None) -> int:
    """
    Give the milliseconds to wait before retry number `retry` (the first is 0).

    The wait is drawn from its upper half, so that clients that failed together do not come back together,
    and never undercuts Retry-After.
    """
    ceiling = min(float(LONGEST_MS), FIRST_MS * 2.0**retry)
    drawn = math.floor(ceiling * (0.5 + chance / 2) + 0.5)
    return max(drawn, math.ceil((retry_after_seconds or 0) * 1000))


def parse_retry_after(header: str | None, now: float) -> int | None:
    """Give the seconds asked for by a Retry-After header, which holds seconds or a date."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        date = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError):
        return None
    return max(0, math.ceil(date - now))


def with_retries(what: str, attempts: int, attempt: Callable[[], Steps[T]]) -> Steps[T]:
    """Make an attempt, and again after a retryable failure, until it succeeds or the retries are used up."""
    for retry in itertools.count():
        try:
            return (yield from attempt())
        except Failure as failure:
            if not failure.retryable:
                raise
            if retry >= attempts:
                raise _used_up(failure, attempts) from failure
            asked = failure.details.get("retry_after_seconds")
            if (asked or 0) > LONGEST_RETRY_AFTER_SECONDS:
                raise
            delay = retry_delay(retry, random.random(), asked)  # noqa: S311 - spreads load, guards nothing
            logger.warning("%s: %s Retry %d of %d in %d ms.", what, failure.message, retry + 1, attempts, delay)
        yield from wait(delay)
    raise AssertionError  # the count has no end


def _used_up(failure: Failure, retries: int) -> Failure:
    if retries == 0:
        return failure
    times = "one retry" if retries == 1 else f"{retries} retries"
    return Failure(f"{failure.message} (after {times})", cause=failure.cause, **failure.details)
