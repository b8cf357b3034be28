"""Batches of short recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import pytest

from undertone_client import EmotionClient, MissingFileError, RequestFailedError

from .support.clients import scrambled
from .support.flaky_server import DISCRETE_ANSWER, KEY, Fault, FlakyServer

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin

FILES = [scrambled(100 + i) for i in range(30)]


def test_many_yields_each_file_with_its_result_within_the_concurrency_limit(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    flaky.faults = lambda _seen: Fault("slow", seconds=0.01)
    outcomes = list(make_twin(**flaky.settings).discrete.many(FILES, 3))
    assert sorted(outcome.file for outcome in outcomes) == sorted(FILES)
    assert all(outcome.result.to_dict() == DISCRETE_ANSWER for outcome in outcomes)
    assert 1 <= flaky.peak_concurrency <= 3


def test_a_refused_or_missing_recording_does_not_stop_the_others(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    good = make_file(500)
    flaky.faults = lambda seen: Fault("answer", status=400) if seen.time == 1 else None
    outcomes = list(make_twin(**flaky.settings).discrete.many([good, "/no/such.wav", good, good], 1))
    codes = [outcome.error.code if outcome.error else None for outcome in outcomes]
    assert codes == [None, "missing_file", "http_error", None]
    assert isinstance(outcomes[1].error, MissingFileError)
    assert outcomes[3].file == good


def test_a_busy_server_pauses_the_whole_batch_and_all_recordings_succeed(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    busy = Fault("answer", status=503, headers={"retry-after": "7"})
    flaky.faults = lambda seen: busy if seen.time < 20 and seen.time % 2 else None
    outcomes = list(make_twin(**flaky.settings).discrete.many(FILES))
    assert sum(outcome.result is not None for outcome in outcomes) == len(FILES)
    assert len(waits) == 10
    assert min(waits) >= 7000


def test_a_wrong_key_raises_and_leaving_the_loop_cancels_the_rest(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    with pytest.raises(RequestFailedError) as caught:
        list(make_twin(**{**flaky.settings, "api_key": KEY + "x"}).discrete.many(FILES, 2))
    assert caught.value.status == 401
    assert len(flaky.seen) <= 4
    flaky.seen.clear()
    with EmotionClient(**flaky.settings) as client:
        for outcome in client.discrete.many(FILES, 2):
            assert outcome.result
            break
    assert len(flaky.seen) <= 5
