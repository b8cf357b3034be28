"""Style and types, held by the same tools as the Python client."""

import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.parametrize(
    "check",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["ruff check", "ruff format", "mypy --strict"],
)
def test_the_code_passes(check):
    command = [sys.executable, "-m", *check]
    done = subprocess.run(command, cwd=ROOT / "training", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
