"""Settings, connections and HTTP calls, shared by all operations of a client."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import httpx

from ._log import logger, unlogged_by_httpx
from ._responses import error_response, no_response
from ._retry import ASYNCH_RETRIES, with_retries
from ._urls import without_query

if TYPE_CHECKING:
    import ssl

    from ._config import Config

#: Connect timeout.
_CONNECT_SECONDS = 10

#: Inactivity timeout: no byte in either direction.
_TIMEOUT_SECONDS = 60


class Session:
    """Connections belong to one event loop; another loop gets new ones."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call_with_retries(self, what: str, method: str, url: str, **request: Any) -> httpx.Response:
        """Send an authenticated request, with the client's number of retries."""
        attempts = self.config.retry_attempts
        return await with_retries(what, attempts, ASYNCH_RETRIES, lambda _retry: self.call(method, url, **request))

    async def call(self, method: str, url: str, **request: Any) -> httpx.Response:
        """Send an authenticated request once. Any status except 2xx raises."""
        headers = {**request.pop("headers", {}), "x-api-key": self.config.api_key}
        response = await self.send(method, url, headers=headers, **request)
        if not response.is_success:
            raise error_response(response, url)
        return response

    async def send(self, method: str, url: str, timeout: float = _TIMEOUT_SECONDS, **request: Any) -> httpx.Response:
        """Send a request once. Any response is returned; no response raises."""
        limits = httpx.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout))
        started = time.monotonic()
        try:
            with unlogged_by_httpx():
                response = await self._connections().request(method, url, timeout=limits, **request)
        except httpx.RequestError as error:
            raise no_response(method, url, error) from error
        took = (time.monotonic() - started) * 1000
        logger.debug("%s %s: %d in %d ms", method, without_query(url), response.status_code, took)
        return response

    async def close(self) -> None:
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
    """Load the trusted certificates once: it takes longer than most requests."""
    return httpx.create_ssl_context()
