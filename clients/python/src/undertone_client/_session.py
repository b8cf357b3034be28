"""What the operations of one client share: its settings, its connections, and how to call the service."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import httpx

from ._answers import no_answer, refusal
from ._log import logger, unlogged_by_httpx
from ._retry import ASYNCH_RETRIES, with_retries
from ._urls import without_query

if TYPE_CHECKING:
    import ssl

    from ._config import Config

#: Seconds within which a server accepts a connection, if it is there at all.
_CONNECT_SECONDS = 10

#: Seconds without a byte, in either direction, after which a request counts as lost.
_TIMEOUT_SECONDS = 60


class Session:
    """Connections belong to one event loop; a program that runs several in turn gets new ones in each."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call_with_retries(self, what: str, method: str, url: str, **request: Any) -> httpx.Response:
        """Make a call with the key, and again as often as the client is set to."""
        attempts = self.config.retry_attempts
        return await with_retries(what, attempts, ASYNCH_RETRIES, lambda _retry: self.call(method, url, **request))

    async def call(self, method: str, url: str, **request: Any) -> httpx.Response:
        """Make one attempt at a call with the key. Any status but 2xx is a failure."""
        headers = {**request.pop("headers", {}), "x-api-key": self.config.api_key}
        response = await self.send(method, url, headers=headers, **request)
        if not response.is_success:
            raise refusal(response, url)
        return response

    async def send(self, method: str, url: str, timeout: float = _TIMEOUT_SECONDS, **request: Any) -> httpx.Response:
        """Make one attempt at a request. Any answer is returned, no answer is a failure."""
        limits = httpx.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout))
        started = time.monotonic()
        try:
            with unlogged_by_httpx():
                response = await self._connections().request(method, url, timeout=limits, **request)
        except httpx.RequestError as error:
            raise no_answer(method, url, error) from error
        took = (time.monotonic() - started) * 1000
        logger.debug("%s %s: %d in %d ms", method, without_query(url), response.status_code, took)
        return response

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def _connections(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = httpx.AsyncClient(verify=_trusted_certificates(), limits=httpx.Limits())
            self._loop = loop
        return self._client


@lru_cache(maxsize=1)
def _trusted_certificates() -> ssl.SSLContext:
    """Read the certificates this machine trusts, once: it takes longer than most requests."""
    return httpx.create_ssl_context()
