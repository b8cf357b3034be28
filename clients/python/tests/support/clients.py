"""One interface for both clients, so that every test runs for both."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Callable

from undertone_client import AsyncEmotionClient, EmotionClient

MIB = 1024 * 1024


class Twin:
    """A client with synchronous operations; those of the async client run in a new event loop each."""

    def __init__(self, client: EmotionClient | AsyncEmotionClient) -> None:
        self.client = client
        self.discrete = _Interface(client, client.discrete)
        self.asynch = _Interface(client, client.asynch)
        self.tokens = _Interface(client, client.tokens)
        self.validate_config = client.validate_config

    def models(self, **settings: Any) -> Any:
        return _blocking(self.client, self.client.models)(**settings)


class _Interface:
    def __init__(self, client: Any, interface: Any) -> None:
        self._client = client
        self._interface = interface

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return _blocking(self._client, getattr(self._interface, name))


def _blocking(client: Any, operation: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(client, EmotionClient):
        return operation

    def run(*args: Any, **settings: Any) -> Any:
        async def run_and_close() -> Any:
            started = operation(*args, **settings)
            try:
                # Collect the items of a generator.
                return [item async for item in started] if inspect.isasyncgen(started) else await started
            finally:
                await client.close()

        return asyncio.run(run_and_close())

    return run


def scrambled(length: int) -> bytes:
    """Return reproducible bytes that differ at every offset, so that swapped parts are noticed."""
    block = bytearray()
    state = 0x9E3779B9
    while len(block) < min(length, 65_536):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        block += state.to_bytes(4, "little")
    pieces = [i.to_bytes(4, "little") + bytes(block[4:]) for i in range(-(-length // 65_536))]
    return b"".join(pieces)[:length]
