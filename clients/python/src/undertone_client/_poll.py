"""Polls for a result."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _retry
from ._deadline import remaining
from ._failure import Failure
from ._parse import word
from ._progress import Progress
from ._responses import read_json
from ._urls import join_url
from .errors import InvalidRequestIdError, PredictionFailedError, PredictionTimeoutError, RequestFailedError
from .listings import RequestStatus
from .results import AsynchResult

if TYPE_CHECKING:
    from ._failure import ErrorClass
    from ._progress import Reporter
    from ._session import Session
    from ._urls import QueryValue

#: Without an interval, the delay between polls in milliseconds grows from the first to the longest.
_FIRST_MS, _GROWTH, _LONGEST_MS = 500, 1.5, 5000

_ACCEPTED, _NOT_FOUND, _GONE, _UNPROCESSABLE = 202, 404, 410, 422


@dataclass(frozen=True)
class PollSettings:
    """Number of polls (None: no limit), delay between them (None: increasing), and whether to get details."""

    max_tries: int | None
    interval_ms: int | None
    details: bool


async def poll_result(session: Session, request_id: str, settings: PollSettings, reporter: Reporter) -> AsynchResult:
    """Poll until there is a result or an error, or the tries are used up."""
    for tries in itertools.count(1):
        state = await _poll_once(session, request_id, details=settings.details)
        if isinstance(state, AsynchResult):
            reporter.report(Progress("completed", 1, request_id))
            return state
        reporter.report(state)
        if settings.max_tries is not None and tries >= settings.max_tries:
            raise _timed_out(state, tries)
        delay = _growing_delay(tries) if settings.interval_ms is None else settings.interval_ms
        left = remaining()
        if left is not None and left * 1000 <= delay:
            await _retry.wait(math.ceil(left * 1000))
            raise _timed_out(state, tries)
        await _retry.wait(delay)
    raise AssertionError  # unreachable


async def poll_status(session: Session, request_id: str) -> RequestStatus:
    """Poll once. A request that has failed or expired is a status too, not an error."""
    try:
        state = await _poll_once(session, request_id, details=False)
    except Failure as failure:
        status = failure.details.get("status")
        if status == _GONE:
            return RequestStatus(request_id, "expired", 1, None)
        if status != _UNPROCESSABLE:
            raise
        error = failure.as_error(PredictionFailedError, request_id=request_id)
        return RequestStatus(request_id, "failed", 1, error)
    if isinstance(state, AsynchResult):
        return RequestStatus(request_id, "completed", 1, None)
    return RequestStatus(request_id, state.status, state.progress, None)


def check_request_id(request_id: Any) -> None:
    if isinstance(request_id, str) and re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", request_id):
        return
    raise InvalidRequestIdError(
        f"{request_id!r} is not a request_id: use the one that asynch.upload returned.",
        code="invalid_request_id",
    )


def error_class_of(failure: Failure) -> ErrorClass:
    """Return the public error class for a failed call about a request."""
    status = failure.details.get("status")
    if status in (_NOT_FOUND, _GONE):
        return InvalidRequestIdError
    return PredictionFailedError if status == _UNPROCESSABLE else RequestFailedError


async def _poll_once(session: Session, request_id: str, *, details: bool) -> AsynchResult | Progress:
    query: dict[str, QueryValue] = {"request_id": request_id, "details": "true" if details else None}
    url = join_url(session.config.asynch_url, "/prediction", query)
    response = await session.call_with_retries("Polling for the result", "GET", url)

    def parse(value: dict[str, Any]) -> AsynchResult | Progress:
        if value["status"] == "completed":
            return AsynchResult.from_dict(value)
        if response.status_code != _ACCEPTED:
            raise ValueError
        return Progress(word(value["status"]), float(value["progress"]), request_id)

    return read_json(response, url, parse)


def _growing_delay(tries: int) -> int:
    return round(min(_LONGEST_MS, _FIRST_MS * _GROWTH ** min(tries - 1, 10)))


def _timed_out(last: Progress, tries: int) -> PredictionTimeoutError:
    return PredictionTimeoutError(
        f"Not finished after {'one try' if tries == 1 else f'{tries} tries'}: the request is {last.status}, "
        f"{int(last.progress * 100)} % done. It continues on the server: call asynch.emotions again with its "
        "request_id, or with a larger max_tries or timeout.",
        code="timed_out",
        request_id=last.request_id,
    )
