"""Asks for a result until it is there or the tries are used up."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._answers import read_json
from ._progress import Progress
from ._steps import Send, Steps, wait
from ._urls import join_url
from .errors import InvalidRequestIdError, PredictionTimeoutError
from .results import AsynchResult

if TYPE_CHECKING:
    from ._calls import Context
    from ._progress import Reporter

_STILL_GOING = 202


@dataclass(frozen=True)
class PollSettings:
    """How often to ask (None asks until there is an end), and the wait between two tries."""

    max_tries: int | None
    interval_ms: int


@dataclass(frozen=True)
class Pending:
    """What the service says while there is no result yet."""

    status: str
    progress: float


def poll_result(context: Context, request_id: str, settings: PollSettings, reporter: Reporter) -> Steps[AsynchResult]:
    """Ask, wait, and ask again."""
    for tries in itertools.count(1):
        answer = yield from _ask(context, request_id)
        if isinstance(answer, AsynchResult):
            reporter.report(Progress("completed", 1, request_id))
            return answer
        reporter.report(Progress(answer.status, answer.progress, request_id))
        if settings.max_tries is not None and tries >= settings.max_tries:
            raise _timed_out(request_id, answer, tries, settings.interval_ms)
        yield from wait(settings.interval_ms)
    raise AssertionError  # the count has no end


def check_request_id(request_id: Any) -> None:
    """Refuse what is not a UUID, which is what the upload returns."""
    if isinstance(request_id, str) and re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", request_id):
        return
    raise InvalidRequestIdError(
        f"{request_id!r} is not a request_id: give the one that asynch.upload returned.",
        code="invalid_request_id",
    )


def _ask(context: Context, request_id: str) -> Steps[AsynchResult | Pending]:
    url = join_url(context.config.asynch_url, "/prediction", {"request_id": request_id})
    answer = yield from context.call_patiently("Asking for the result", Send("GET", url))

    def parse(value: dict[str, Any]) -> AsynchResult | Pending:
        if value["status"] == "completed":
            return AsynchResult.from_dict(value)
        if answer.status != _STILL_GOING:
            raise ValueError
        return Pending(str(value["status"]), float(value["progress"]))

    return read_json(answer, url, parse)


def _timed_out(request_id: str, last: Pending, tries: int, interval_ms: int) -> PredictionTimeoutError:
    asked = "asking once" if tries == 1 else f"asking {tries} times, every {interval_ms} milliseconds"
    return PredictionTimeoutError(
        f"There is no result after {asked}: the request is {last.status} ({int(last.progress * 100)} %). "
        "It goes on: ask again later, or with more tries.",
        code="timed_out",
        request_id=request_id,
    )
