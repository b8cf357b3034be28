"""Settings, connections and HTTP calls, shared by all operations of a client."""

from __future__ import annotations

import asyncio
import platform
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import httpx

from ._deadline import remaining
from ._log import logger, unlogged_by_httpx
from ._responses import error_response, no_response
from ._retry import ASYNCH_RETRIES, with_retries
from ._urls import origin_of, without_query
from ._version import __version__
from .errors import ConfigError

if TYPE_CHECKING:
    import ssl

    from ._config import Config

USER_AGENT = f"undertone-client/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}"

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
        """Send a request once. Any response is returned; no response raises. The client's own timeout goes first."""
        seconds = timeout if self.config.timeout is None else self.config.timeout
        limits = httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))
        headers = {**self.headers_for(url), **request.pop("headers", {})}
        started = time.monotonic()
        try:
            with unlogged_by_httpx():
                # Redirects are not followed: the key must not go to another host.
                sending = self._connections().request(
                    method, url, timeout=limits, headers=headers, follow_redirects=False, **request
                )
                response = await asyncio.wait_for(sending, remaining())
        except (httpx.RequestError, asyncio.TimeoutError) as error:
            raise no_response(method, url, error) from error
        took = (time.monotonic() - started) * 1000
        logger.debug("%s %s: %d in %d ms", method, without_query(url), response.status_code, took)
        return response

    def headers_for(self, url: str) -> dict[str, str]:
        """Return the headers of every request; those that the caller has set go to the service only."""
        config = self.config
        is_service = origin_of(url) in map(origin_of, (config.base_url, config.discrete_url, config.asynch_url))
        return {"user-agent": USER_AGENT, **(config.headers if is_service else {})}

    async def close(self) -> None:
        """Close the connections, except those of a client that the caller has made."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def close_all(self) -> None:
        """Close all connections: they end with the event loop in the background."""
        await self.close()
        if self.config.http_client is not None and self._loop is asyncio.get_running_loop():
            await self.config.http_client.aclose()

    def _connections(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self.config.http_client is not None:
            if self._loop not in (None, loop):
                raise ConfigError(
                    "http_client was used in another event loop, or before close() or a fork, and cannot be used "
                    "again: make a new client with a new httpx.AsyncClient."
                )
            self._loop = loop
            return self.config.http_client
        if self._client is None or self._loop is not loop:
            proxy = self.config.proxy
            self._client = httpx.AsyncClient(verify=_trusted_certificates(), limits=httpx.Limits(), proxy=proxy)
            self._loop = loop
        return self._client


@lru_cache(maxsize=1)
def _trusted_certificates() -> ssl.SSLContext:
    """Load the trusted certificates once: it takes longer than most requests."""
    return httpx.create_ssl_context()
