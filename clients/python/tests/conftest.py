from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

import pytest

from undertone_client import AsyncEmotionClient, EmotionClient

from .support.clients import Twin, scrambled
from .support.flaky_server import FlakyServer
from .support.real_server import RealServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MakeTwin = Callable[..., Twin]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the environment of the test runner."""
    for name in [name for name in os.environ if name.startswith("SERVICE_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def flaky() -> Iterator[FlakyServer]:
    server = FlakyServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def real() -> Iterator[RealServer]:
    server = RealServer()
    yield server
    server.stop()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record delays instead of sleeping."""
    recorded: list[int] = []

    async def wait(milliseconds: int) -> None:
        recorded.append(milliseconds)

    monkeypatch.setattr("undertone_client._retry.wait", wait)
    return recorded


@pytest.fixture(params=[EmotionClient, AsyncEmotionClient], ids=["sync", "async"])
def make_twin(request: pytest.FixtureRequest) -> Iterator[MakeTwin]:
    """Make sync or async clients: every test with this fixture runs for both."""
    made: list[Twin] = []

    def make(*args: Any, **settings: Any) -> Twin:
        made.append(Twin(request.param(*args, **settings)))
        return made[-1]

    yield make
    for twin in made:
        if isinstance(twin.client, EmotionClient):
            twin.client.close()


@pytest.fixture
def make_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the given length."""

    def make(length: int, name: str = "talk.wav") -> Path:
        path = tmp_path / name
        path.write_bytes(scrambled(length))
        return path

    return make
