"""What an answer means: a success to read, or a failure to explain."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Callable, TypeVar
from urllib.parse import urlsplit

import httpx

from ._failure import Failure
from ._log import logger
from ._retry import parse_retry_after
from ._urls import is_loopback, without_query

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


def read_json(answer: httpx.Response, url: str, parse: Callable[[dict[str, Any]], T]) -> T:
    """Read the JSON of a success; `parse` takes what the caller is going to use."""
    value = _load(answer.content)
    try:
        if isinstance(value, dict):
            return parse(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise Failure(
        f"{without_query(url)} answered with status {answer.status_code}, but not as this service does: "
        "is the address right?",
        status=answer.status_code,
        code="invalid_answer",
        request_id=answer.headers.get("x-request-id"),
    )


def refusal(answer: httpx.Response, url: str) -> Failure:
    """Explain an answer that is not a success."""
    where = without_query(url)
    if answer.is_redirect:
        # A key must not follow a redirection to wherever it leads.
        target = answer.headers.get("location", "another address").split("?")[0]
        return Failure(f"{where} redirects to {target}. Configure the final address.", code="redirected")
    problem = _read_problem(answer)
    said: Mapping[str, Any] = problem or {}
    retry_after = parse_retry_after(answer.headers.get("retry-after"), time.time())
    return Failure(
        str(said.get("detail") or said.get("title") or said["code"])
        if problem
        else f"{where} answered with status {answer.status_code}.",
        status=answer.status_code,
        code=said.get("code", "http_error"),
        request_id=said.get("request_id") or answer.headers.get("x-request-id"),
        retry_after_seconds=said.get("retry_after_seconds") if retry_after is None else retry_after,
        problem=problem,
    )


def no_answer(method: str, url: str, error: Exception) -> Failure:
    """Explain why there is no answer."""
    where = without_query(url)
    logger.debug("%s %s: %s", method, where, str(error) or type(error).__name__)
    if isinstance(error, (httpx.TimeoutException, asyncio.TimeoutError)):
        return Failure(f"{where} did not answer in time.", cause=error, code="timed_out")
    if is_loopback(url) and _is_refused(error):
        parts = urlsplit(url)
        return Failure(
            f"No server is running at {parts.scheme}://{parts.netloc}. Start one with `undertone serve`, "
            "or set SERVICE_URL (or base_url) to the address of your server.",
            cause=error,
            code="connection_failed",
            is_final=True,
        )
    why = str(error).rstrip(".") or type(error).__name__
    return Failure(f"The connection to {where} failed: {why}.", cause=error, code="connection_failed")


def _is_refused(error: BaseException | None) -> bool:
    """Look through the causes: an attempt at several addresses of a host has a group of them."""
    if error is None or isinstance(error, ConnectionRefusedError):
        return error is not None
    return any(map(_is_refused, getattr(error, "exceptions", (error.__cause__ or error.__context__,))))


def _read_problem(answer: httpx.Response) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    value = _load(answer.content)
    return value if isinstance(value, dict) and "code" in value else None


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
