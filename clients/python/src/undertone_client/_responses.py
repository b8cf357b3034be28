"""Reads successful responses, and turns everything else into a `Failure`."""

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


def read_json(response: httpx.Response, url: str, parse: Callable[[dict[str, Any]], T]) -> T:
    """Read the JSON object of a successful response; `parse` picks the fields that the caller needs."""
    value = _load(response.content)
    try:
        if isinstance(value, dict):
            return parse(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise Failure(
        f"{without_query(url)} returned status {response.status_code}, but not a response of this service. "
        "Check the address.",
        status=response.status_code,
        code="invalid_answer",
        request_id=response.headers.get("x-request-id"),
    )


def error_response(response: httpx.Response, url: str) -> Failure:
    where = without_query(url)
    if response.is_redirect:
        # Not followed: the key must not go to another host.
        target = response.headers.get("location", "another address").split("?")[0]
        return Failure(f"{where} redirects to {target}. Configure the final address.", code="redirected")
    problem = _read_problem(response)
    fields: Mapping[str, Any] = problem or {}
    retry_after = parse_retry_after(response.headers.get("retry-after"), time.time())
    return Failure(
        str(fields.get("detail") or fields.get("title") or fields["code"])
        if problem
        else f"{where} returned status {response.status_code}.",
        status=response.status_code,
        code=fields.get("code", "http_error"),
        request_id=fields.get("request_id") or response.headers.get("x-request-id"),
        retry_after_seconds=fields.get("retry_after_seconds") if retry_after is None else retry_after,
        problem=problem,
    )


def no_response(method: str, url: str, error: Exception) -> Failure:
    where = without_query(url)
    logger.debug("%s %s: %s", method, where, str(error) or type(error).__name__)
    if isinstance(error, (httpx.TimeoutException, asyncio.TimeoutError)):
        return Failure(f"{where} did not respond in time.", cause=error, code="timed_out")
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
    """Search the causes: connecting to a host with several addresses raises a group."""
    if error is None or isinstance(error, ConnectionRefusedError):
        return error is not None
    return any(map(_is_refused, getattr(error, "exceptions", (error.__cause__ or error.__context__,))))


def _read_problem(response: httpx.Response) -> dict[str, Any] | None:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    value = _load(response.content)
    return value if isinstance(value, dict) and "code" in value else None


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
