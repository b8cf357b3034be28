"""What both runners tell httpx, and what they make of what comes back."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import httpx

from ._failure import Failure
from ._log import logger
from ._steps import Answer, Pieces
from ._urls import speakable

if TYPE_CHECKING:
    import ssl

    from ._steps import Send

#: Seconds within which a server takes a connection, if it is there at all.
_CONNECT_SECONDS = 10


@lru_cache(maxsize=1)
def trust() -> ssl.SSLContext:
    """Read the certificates this machine trusts, once: it takes longer than most requests."""
    return httpx.create_ssl_context()


def arguments_of(request: Send) -> dict[str, Any]:
    """Give the arguments of httpx's `request`; a body in pieces is added by the runner."""
    arguments: dict[str, Any] = {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
        "timeout": httpx.Timeout(request.patience, connect=min(_CONNECT_SECONDS, request.patience)),
    }
    if request.file is not None:
        arguments["files"] = {"file": request.file}
    elif request.content is not None and not isinstance(request.content, Pieces):
        arguments["content"] = request.content
    return arguments


def answer_of(request: Send, response: httpx.Response, started: float) -> Answer:
    """Keep what matters of a response whose body has been read."""
    took = (time.monotonic() - started) * 1000
    logger.debug("%s %s: %d in %d ms", request.method, speakable(request.url), response.status_code, took)
    return Answer(response.status_code, response.headers, response.content)


def lost(request: Send, error: httpx.RequestError) -> Failure:
    """Say why there is no answer. The same again may well succeed."""
    in_time = not isinstance(error, httpx.TimeoutException)
    why = (str(error).rstrip(".") or type(error).__name__) if in_time else "there was no answer in time"
    where = speakable(request.url)
    logger.debug("%s %s: %s", request.method, where, why)
    return Failure(
        f"The connection to {where} failed: {why}.",
        retryable=True,
        cause=error,
        code="connection_failed" if in_time else "timed_out",
    )
