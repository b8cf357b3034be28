"""Runs every Python example of the README against the real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .support.programs import environment_for
from .support.talk import talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .support.real_server import RealServer

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def running(real: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[subprocess.Popen[str]]]:
    """Run all examples concurrently: they mostly wait."""
    folder = tmp_path_factory.mktemp("examples")
    for name, seconds in (("hello.wav", 6), ("interview.wav", 31), ("call.wav", 11), ("too-short.wav", 2)):
        (folder / name).write_bytes(talk(seconds))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", example],
            env=environment_for({**real.environment, "MPLBACKEND": "agg", "HOME": str(folder)}),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for example in EXAMPLES
    ]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_readme_example_runs(number: int, running: list[subprocess.Popen[str]]) -> None:
    out, err = running[number].communicate(timeout=180)
    assert running[number].returncode == 0, err
    assert out.strip()


def test_the_readme_has_an_example_of_every_feature() -> None:
    assert len(EXAMPLES) == 9
    for name in (
        "EmotionClient",
        "AsyncEmotionClient",
        "prepare",
        "to_dataframe",
        "plot",
        "classify",
        "upload",
        "many",
        "stream",
        "status",
        "iter_requests",
    ):
        assert any(name in example for example in EXAMPLES)
