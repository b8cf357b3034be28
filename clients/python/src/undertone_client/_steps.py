"""
The few things an operation has done for it: a request, a wait, blocking work, several at once.

Operations are generators that yield these steps and are sent their outcomes. They say what happens and in
which order, once; `_threads` performs the steps for `EmotionClient`, `_tasks` for `AsyncEmotionClient`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, TypeVar, Union

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """A response with its body read."""

    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class Pieces:
    """A body that is read as it is sent."""

    read: Iterator[bytes]
    length: int
    #: Told, in the caller's thread or loop, how much has been handed over.
    on_sent: Callable[[int], None]


@dataclass(frozen=True)
class Send:
    """One attempt at a request. Any answer is an outcome; no answer is a retryable failure."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | Pieces | None = None
    file: tuple[str, bytes] | None = None
    #: Seconds without a byte, in either direction, after which the request counts as lost.
    patience: float = 60


@dataclass(frozen=True)
class Wait:
    """A pause."""

    milliseconds: int


@dataclass(frozen=True)
class Do:
    """Work that may block: opening and reading files."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Together:
    """Several operations at the same time. The first one that fails stops the others."""

    lanes: Sequence[Steps[None]]


Step = Union[Send, Wait, Do, Together]
Steps = Generator[Step, Any, T]


def send(request: Send) -> Steps[Answer]:
    """Send a request and come back with its answer."""
    answer: Answer = yield request
    return answer


def wait(milliseconds: int) -> Steps[None]:
    """Pause."""
    yield Wait(milliseconds)


def do(work: Callable[[], T]) -> Steps[T]:
    """Do blocking work and come back with what it returns."""
    outcome: T = yield Do(work)
    return outcome


def together(lanes: Sequence[Steps[None]]) -> Steps[None]:
    """Run operations side by side until all are done."""
    yield Together(lanes)


def advance(steps: Steps[T], outcome: Any, error: BaseException | None) -> Step:
    """Hand the outcome of a step, or its error, to an operation; its next step comes back."""
    return steps.send(outcome) if error is None else steps.throw(error)
