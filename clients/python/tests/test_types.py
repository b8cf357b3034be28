"""Type checkers: the README's examples, and the types that programs rely on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .test_readme import EXAMPLES

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
name: str = detailed.main_emotion
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


async def classified(client: AsyncEmotionClient) -> str:
    return (await client.asynch.classify(b"")).emotions[0].t


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
    "EmotionClient(part_size='5 MB')",
    "wrong: int = client.asynch.upload('talk.wav')",
]


SETUP = "from undertone_client import EmotionClient\nclient = EmotionClient()\n"

RIGHT = {**{f"example_{number}.py": example for number, example in enumerate(EXAMPLES)}, "types_.py": TYPES}
MISTAKES = {f"wrong_{number}.py": f"{SETUP}{line}\n" for number, line in enumerate(WRONG)}


@pytest.fixture(scope="module", params=CHECKERS)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Check all programs in one run: a checker needs most of its time for the libraries."""
    folder = tmp_path_factory.mktemp("types")
    for name, program in {**RIGHT, **MISTAKES}.items():
        (folder / name).write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", *CHECKERS[request.param], *RIGHT, *MISTAKES]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "error:" in line]
    assert found, done.stdout + done.stderr
    return found


def test_readme_examples_and_promised_types_pass(errors: list[str]) -> None:
    assert [error for error in errors if "wrong_" not in error] == []


@pytest.mark.parametrize(("name", "line"), list(zip(MISTAKES, WRONG)))
def test_mistakes_are_found(name: str, line: str, errors: list[str]) -> None:
    assert any(f"{name}:3" in error for error in errors), line
