"""When to try again, and how long to wait before."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Callable, TypeVar

from ._failure import Failure
from ._log import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable

#: The first wait in milliseconds, doubled with every retry up to the longest one.
FIRST_MS = 500
LONGEST_MS = 10_000

#: When the service asks for a longer wait than this, the caller decides.
LONGEST_RETRY_AFTER_SECONDS = 60

#: Short recordings are retried this often, and when they are many, for whom nobody waits.
DISCRETE_ATTEMPTS = 2
MANY_ATTEMPTS = 10

_CONFLICT = 409

T = TypeVar("T")


@dataclass(frozen=True)
class RetryRule:
    """Which failures may pass: the statuses, and the codes of failures without an answer."""

    statuses: frozenset[int]
    codes: frozenset[str]


#: Asynch calls can all be repeated without harm.
ASYNCH_RETRIES = RetryRule(
    frozenset({408, 425, 429, 500, 502, 503, 504}), frozenset({"connection_failed", "timed_out", "etag_mismatch"})
)

#: Somebody waits for a discrete answer: only what is likely to pass within seconds is retried.
DISCRETE_RETRIES = RetryRule(frozenset({429, 502, 503, 504}), frozenset({"connection_failed"}))


async def wait(milliseconds: int) -> None:
    """Wait; every wait of this client passes through here."""
    await asyncio.sleep(milliseconds / 1000)


def retry_delay(retry: int, chance: float, retry_after_seconds: float | None = None) -> int:
    """
    Give the milliseconds to wait before retry number `retry` (the first is 0).

    The wait is drawn from its upper half, so that clients that failed together do not come back together,
    and is never shorter than Retry-After.
    """
    ceiling = min(float(LONGEST_MS), FIRST_MS * 2.0**retry)
    drawn = math.floor(ceiling * (0.5 + chance / 2) + 0.5)
    return max(drawn, math.ceil((retry_after_seconds or 0) * 1000))


def parse_retry_after(header: str | None, now: float) -> int | None:
    """Give the seconds asked for by a Retry-After header, which contains seconds or a date."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        date = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError):
        return None
    return max(0, math.ceil(date - now))


async def with_retries(
    what: str,
    attempts: int,
    rule: RetryRule,
    attempt: Callable[[int], Awaitable[T]],
    pause: Callable[[int], Awaitable[None]] | None = None,
) -> T:
    """
    Make an attempt, and again after a failure that may pass, until it succeeds or the retries are used up.

    The attempt is told which retry it is; the first attempt is 0. `pause` waits instead of `wait`.
    """
    for retry in itertools.count():
        try:
            return await attempt(retry)
        except Failure as failure:
            asked = failure.details.get("retry_after_seconds") or 0
            if attempts == 0 or not may_pass(failure, rule):
                raise
            if retry >= attempts:
                raise failure.with_note("after one retry" if attempts == 1 else f"after {attempts} retries") from None
            if asked > LONGEST_RETRY_AFTER_SECONDS:
                raise failure.with_note(f"not retried: the service asks to wait {asked} seconds") from None
            delay = retry_delay(retry, random.random(), asked)  # noqa: S311 - spreads load, guards nothing
            logger.warning("%s: %s Retry %d of %d in %d ms.", what, failure.message, retry + 1, attempts, delay)
        await (pause or wait)(delay)
    raise AssertionError  # the count has no end


def may_pass(failure: Failure, rule: RetryRule) -> bool:
    """Tell whether the same call may succeed later."""
    status, code = failure.details.get("status"), failure.details.get("code")
    # The same call with the same Idempotency-Key is still being answered.
    is_running = status == _CONFLICT and failure.details.get("retry_after_seconds") is not None
    return not failure.is_final and (is_running or status in rule.statuses or code in rule.codes)
