"""Style, types, documentation, and parity of both clients."""

from __future__ import annotations

import graphlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_origin

import pytest

import undertone_client
from undertone_client import AsyncEmotionClient, AsyncEmotionStream, EmotionClient, EmotionStream

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "check",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict"]],
    ids=["ruff check", "ruff format", "mypy --strict"],
)
def test_code_passes(check: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *check], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_have_no_import_cycle() -> None:
    imported = re.compile(r"^\s*from \. ?(?:import )?(\w+)", re.MULTILINE)
    sources = (PROJECT / "src/undertone_client").glob("*.py")
    graph = {path.stem: set(imported.findall(path.read_text(encoding="utf-8"))) for path in sources}
    assert {"_retry", "_failure"} <= graph["_throttle"]
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


def public(owner: Any) -> dict[str, Any]:
    owners = [item for item in reversed(inspect.getmro(owner)) if item.__module__.startswith("undertone_client")]
    found = {name: value for item in owners for name, value in vars(item).items()}
    return {name: value for name, value in found.items() if not name.startswith("_") and callable(value)}


def waits(method: Any) -> bool:
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def twins() -> list[tuple[type, type]]:
    blocking, waiting = EmotionClient("k"), AsyncEmotionClient("k")
    return [
        (EmotionClient, AsyncEmotionClient),
        (type(blocking.discrete), type(waiting.discrete)),
        (type(blocking.asynch), type(waiting.asynch)),
        (type(blocking.tokens), type(waiting.tokens)),
        (EmotionStream, AsyncEmotionStream),
    ]


#: Not coroutines in either client.
AT_ONCE = ("stream", "validate_config")


@pytest.mark.parametrize("pair", twins(), ids=lambda pair: pair[0].__name__)
def test_both_clients_have_the_same_methods_parameters_and_defaults(pair: tuple[type, type]) -> None:
    one, other = map(public, pair)
    assert list(one) == list(other)
    for name, method in one.items():
        ours, theirs = inspect.signature(method).parameters, inspect.signature(other[name]).parameters
        assert [(item.name, item.kind, item.default) for item in ours.values()] == [
            (item.name, item.kind, item.default) for item in theirs.values()
        ]
        assert waits(other[name]) == (name not in AT_ONCE)
        assert not waits(method)


def test_both_clients_have_the_same_settings() -> None:
    assert inspect.signature(EmotionClient) == inspect.signature(AsyncEmotionClient)


def test_everything_public_is_documented() -> None:
    exported = [getattr(undertone_client, name) for name in undertone_client.__all__ if not name.isupper()]
    documented = [value for value in exported if get_origin(value) is None]  # type aliases have no docstring
    for pair in twins():
        documented += [value for owner in pair for value in [owner, *public(owner).values()]]
    documented += [value for item in documented if isinstance(item, type) for value in public(item).values()]
    for item in documented:
        assert inspect.getdoc(item), item
