"""What an answer means: a success to read, or a failure to explain."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._failure import Failure
from ._retry import RETRYABLE_STATUSES, parse_retry_after
from ._urls import speakable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._steps import Answer

T = TypeVar("T")

_REDIRECTS = range(300, 400)


def refusal(answer: Answer, url: str) -> Failure:
    """Say why an answer that is not a success is none."""
    where = speakable(url)
    if answer.status in _REDIRECTS:
        return _redirected(answer.headers.get("location"), where)
    problem = _read_problem(answer)
    said: Mapping[str, Any] = problem or {}
    retry_after = parse_retry_after(answer.headers.get("retry-after"), time.time())
    return Failure(
        str(said.get("detail") or said.get("title") or said["code"])
        if problem
        else f"{where} answered with status {answer.status}.",
        retryable=answer.status in RETRYABLE_STATUSES,
        status=answer.status,
        code=said.get("code", "http_error"),
        request_id=said.get("request_id") or answer.headers.get("x-request-id"),
        retry_after_seconds=said.get("retry_after_seconds") if retry_after is None else retry_after,
        problem=problem,
    )


def read_json(answer: Answer, url: str, parse: Callable[[dict[str, Any]], T]) -> T:
    """Read the JSON of a success; `parse` takes what the caller is going to use."""
    value = _load(answer.body)
    try:
        if isinstance(value, dict):
            return parse(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise Failure(
        f"{speakable(url)} answered with status {answer.status}, but not as this service does: is the address right?",
        status=answer.status,
        code="invalid_answer",
        request_id=answer.headers.get("x-request-id"),
    )


def _read_problem(answer: Answer) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    value = _load(answer.body)
    return value if isinstance(value, dict) and "code" in value else None


def _redirected(location: str | None, where: str) -> Failure:
    """Refuse: a key must not follow a redirection to wherever it leads."""
    target = f" to {location.split('?')[0]}" if location else ""
    return Failure(f"{where} redirects{target}: configure the final address.", code="redirected")


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
