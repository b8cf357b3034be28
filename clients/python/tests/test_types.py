"""Type checkers: the README's examples, and the types that programs rely on."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .test_readme import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

CHECKERS = {"mypy": ["mypy", "--strict"], "pyright": ["pyright", "--pythonpath", sys.executable]}

TYPES = """
from typing import Literal, Optional
from undertone_client import (
    AsyncEmotionClient,
    AsynchResult,
    DiscreteResult,
    Emotion,
    EmotionClient,
    ErrorCode,
    Outcome,
    RequestState,
    Segment,
    UndertoneError,
    webhooks,
)

client = EmotionClient()

detailed = client.discrete.emotions("a.wav", details=True)
weights: str = detailed.weights
plain = client.discrete.emotions("a.wav")
plain_weights: Optional[str] = plain.weights
timeline = client.asynch.classify("a.wav", channels="separate", timeout=60)
seconds: float = timeline.duration_seconds + timeline.emotions[0].start + timeline.segments[0].end
short = client.asynch.classify("a.wav", details=False)
short_segments: Optional[tuple[Segment, ...]] = short.segments
emotion: Emotion = timeline.emotions[0].emotion
state: RequestState = client.asynch.status("x").status

for outcome in client.discrete.many(["a.wav", b"", ([0.0], 22_050.0)]):
    if outcome.error is None:
        found: DiscreteResult = outcome.result
    else:
        reason: UndertoneError = outcome.error
        code: Optional[ErrorCode] = outcome.error.code


def later(outcome: Outcome) -> Optional[str]:
    return outcome.result.heard if outcome.error is None else outcome.error.code


async def waiting(client: AsyncEmotionClient, chosen: bool) -> AsynchResult:
    weights: str = (await client.asynch.emotions("x")).weights
    async for request in client.asynch.iter_requests("failed"):
        label: Optional[str] = request.label
    return await client.asynch.emotions("x", details=chosen)


def event(body: bytes) -> Literal["request.completed", "request.failed", "request.expired"]:
    return webhooks.verify(body, {}, "whsec_").type
"""

WRONG = [
    "client.discrete.emotions('a.wav', model='6emotions')",
    "client.asynch.list('lost')",
    "client.tokens.create(scope='none')",
    "x: str = client.discrete.emotions('a.wav').weights",
    "client.asynch.classify('a.wav', details=False).segments[0]",
    "next(client.discrete.many(['a.wav'])).result.heard",
    "client.discrete.emotions('a.wav', timeout='5')",
]


def check(checker: str, folder: Path, programs: dict[str, str]) -> str:
    for name, program in programs.items():
        (folder / name).write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], *programs], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize("checker", CHECKERS)
def test_readme_examples_and_promised_types_pass(checker: str, tmp_path: Path) -> None:
    programs = {f"example_{number}.py": example for number, example in enumerate(EXAMPLES)}
    assert check(checker, tmp_path, {**programs, "types_.py": TYPES}) == ""


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(checker: str, tmp_path: Path) -> None:
    setup = "from undertone_client import EmotionClient\nclient = EmotionClient()\n"
    programs = {f"wrong_{number}.py": f"{setup}{line}\n" for number, line in enumerate(WRONG)}
    said = check(checker, tmp_path, programs)
    for name, line in zip(programs, WRONG):
        assert f"{name}:3" in said, line
