"""Which failures are retried, how often, and after which delay."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Callable, TypeVar

from ._deadline import remaining
from ._failure import Failure
from ._log import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable

#: The first delay in milliseconds; it doubles with every retry up to the longest.
FIRST_MS = 500
LONGEST_MS = 10_000

#: If Retry-After is longer than this, the error is raised instead.
LONGEST_RETRY_AFTER_SECONDS = 60
# Share of Retry-After that is added at most: clients that were refused together got the same one.
_RETRY_AFTER_JITTER = 0.2

#: Retries of one short recording, and of each in a batch.
DISCRETE_ATTEMPTS = 2
BATCH_ATTEMPTS = 10

_CONFLICT = 409

T = TypeVar("T")


@dataclass(frozen=True)
class RetryRule:
    """Which failures are retried: by status, or by code if there was no response."""

    statuses: frozenset[int]
    codes: frozenset[str]


#: All asynch calls are idempotent.
ASYNCH_RETRIES = RetryRule(
    frozenset({408, 425, 429, 500, 502, 503, 504}), frozenset({"connection_failed", "timed_out", "etag_mismatch"})
)

#: Discrete calls are interactive: retry only what is likely to succeed within seconds.
DISCRETE_RETRIES = RetryRule(frozenset({429, 502, 503, 504}), frozenset({"connection_failed"}))


async def wait(milliseconds: int) -> None:
    """Sleep. Every delay of this client goes through here, so that tests can replace it."""
    await asyncio.sleep(milliseconds / 1000)


def retry_delay(retry: int, chance: float, retry_after_seconds: float | None = None) -> int:
    """
    Return the delay in milliseconds before retry number `retry` (the first is 0).

    Exponential backoff with jitter over the upper half, or Retry-After with jitter on top if that is longer, so that
    clients that failed together do not retry together.
    """
    ceiling = min(float(LONGEST_MS), FIRST_MS * 2.0**retry)
    drawn = math.floor(ceiling * (0.5 + chance / 2) + 0.5)
    asked = math.ceil((retry_after_seconds or 0) * 1000 * (1 + _RETRY_AFTER_JITTER * chance))
    return max(drawn, asked)


def parse_retry_after(header: str | None, now: float) -> int | None:
    """Return the seconds of a Retry-After header, which contains seconds or a date."""
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
    pause: Callable[[Failure, int], Awaitable[None]] | None = None,
) -> T:
    """
    Call `attempt` until it succeeds, fails permanently, or the retries are used up.

    `attempt` receives the number of the retry; the first attempt is 0. `pause` replaces `wait`, and
    also receives the failure.
    """
    for retry in itertools.count():
        try:
            return await attempt(retry)
        except Failure as failure:
            asked = failure.details.get("retry_after_seconds") or 0
            if attempts == 0 or not is_retryable(failure, rule):
                raise
            if retry >= attempts:
                raise failure.with_note("after one retry" if attempts == 1 else f"after {attempts} retries") from None
            if asked > LONGEST_RETRY_AFTER_SECONDS:
                raise failure.with_note(f"not retried: the service asked to wait {asked} seconds") from None
            delay = retry_delay(retry, random.random(), asked)  # noqa: S311 - jitter, not security
            left = remaining()
            if left is not None and delay / 1000 >= left:
                raise failure.with_note("not retried: the timeout of this call is over") from None
            reason = failure
            logger.warning("%s: %s Retry %d of %d in %d ms.", what, failure.message, retry + 1, attempts, delay)
        await (wait(delay) if pause is None else pause(reason, delay))
    raise AssertionError  # unreachable


def is_retryable(failure: Failure, rule: RetryRule) -> bool:
    status, code = failure.details.get("status"), failure.details.get("code")
    # A call with the same Idempotency-Key is still running.
    is_running = status == _CONFLICT and failure.details.get("retry_after_seconds") is not None
    return not failure.is_final and (is_running or status in rule.statuses or code in rule.codes)
