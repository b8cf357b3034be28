"""Batches of short recordings."""

from __future__ import annotations

import asyncio
import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import pytest

from undertone_client import (
    AsyncEmotionClient,
    ConfigError,
    EmotionClient,
    MissingFileError,
    RequestFailedError,
)

from .support.clients import scrambled
from .support.flaky_server import DISCRETE_ANSWER, KEY, Fault, FlakyServer
from .support.programs import run_on_terminal, start

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.flaky_server import Seen

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


def test_a_batch_that_ends_with_an_error_prints_nothing(flaky: FlakyServer) -> None:
    program = """
import asyncio, gc, undertone_client
async def main():
    async with undertone_client.AsyncEmotionClient("a-wrong-key") as client:
        async for _ in client.discrete.many([b"x"] * 40, 8):
            pass
def blocking():
    for _ in undertone_client.EmotionClient("a-wrong-key").discrete.many([b"x"] * 40, 8):
        pass
for run in (blocking, lambda: asyncio.run(main())):
    try:
        run()
    except undertone_client.AuthenticationError as error:
        print(error.status)
    gc.collect()
"""
    out, err = start(program, flaky.environment).communicate(timeout=50)
    assert (out, err) == ("401\n401\n", "")


@pytest.mark.parametrize(
    "files",
    ["folder", Path("folder"), b"RIFF", bytearray(8), io.BytesIO(b"RIFF"), np.zeros(80_000)],
    ids=["a path", "a Path", "bytes", "a bytearray", "an open file", "samples"],
)
def test_one_recording_instead_of_a_batch_is_rejected(files: Any, flaky: FlakyServer, make_twin: MakeTwin) -> None:
    with pytest.raises(ConfigError, match=r"files is a single recording: give a list .*Path\(folder\)\.glob"):
        list(make_twin(**flaky.settings).discrete.many(files))
    with pytest.raises(ConfigError, match="or another iterable"):
        list(make_twin(**flaky.settings).discrete.many(7))
    assert flaky.seen == []


def test_samples_and_files_can_be_in_one_batch(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    samples: Any = np.zeros(80_000, np.int16)
    batch: list[Any] = [(samples, 16_000.0), FILES[0], (samples.astype(np.int64), 16_000), (samples,)]
    outcomes = sorted(make_twin(**flaky.settings).discrete.many(batch, 2), key=lambda outcome: outcome.index)
    assert [outcome.error is None for outcome in outcomes] == [True, True, False, False]
    assert all(outcome.file is item for outcome, item in zip(outcomes, batch))
    assert "scale is unknown" in str(outcomes[2].error)
    assert "samples and their sample rate" in str(outcomes[3].error)
    assert sum(b"RIFF" in seen.body for seen in flaky.seen) == 1


class LimitedServer(FlakyServer):
    """Refuses what exceeds its capacity, as a server under load does."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.refused = 0
        self.faults = self._limit

    def _limit(self, _seen: Seen) -> Fault:
        with self.lock:
            if self.in_flight <= self.capacity:
                return Fault("slow", seconds=0.02)
            self.refused += 1
        return Fault("answer", status=503, headers={"retry-after": "1"})


def test_an_overloaded_server_gets_fewer_requests_and_slowly_more_again(make_twin: MakeTwin, waits: list[int]) -> None:
    server = LimitedServer(capacity=5)
    files = [scrambled(100 + i) for i in range(150)]
    outcomes = list(make_twin(**server.settings).discrete.many(files, 16))
    server.stop()
    assert sorted(outcome.index for outcome in outcomes) == list(range(150))
    assert all(outcome.error is None for outcome in outcomes)
    # Growing from 4 exceeds the capacity at once; after that only now and then, by one request.
    assert 1 <= server.refused <= 30
    assert len(waits) == server.refused
    assert server.peak_concurrency <= 11


def test_an_idle_server_gets_as_many_requests_as_allowed(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    full = threading.Event()

    def wait_for_the_others(seen: Seen) -> None:
        if flaky.in_flight == 12:
            full.set()
        if seen.time >= 8:  # eight successes raise the limit from 4 to 12
            full.wait(30)

    flaky.faults = wait_for_the_others
    list(make_twin(**flaky.settings).discrete.many([b"x"] * 60, 12))
    assert flaky.peak_concurrency == 12


def test_a_rate_limit_pauses_the_whole_batch(flaky: FlakyServer) -> None:
    async def main() -> list[int]:
        waiting: list[int] = []

        async def wait(milliseconds: int) -> None:
            waiting.append(milliseconds)
            sent = len(flaky.seen)
            await asyncio.sleep(0.2)
            assert len(flaky.seen) - sent <= 3, "only what was already on its way"

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("undertone_client._retry.wait", wait)
            async with AsyncEmotionClient(**flaky.settings) as client:
                assert len([outcome async for outcome in client.discrete.many(FILES, 4)]) == len(FILES)
        return waiting

    flaky.faults = lambda seen: Fault("answer", status=429, headers={"retry-after": "9"}) if seen.time == 5 else None
    (waited,) = asyncio.run(main())
    assert 9000 <= waited <= 10_800


def test_a_bar_shows_the_progress_of_a_batch_on_a_terminal(flaky: FlakyServer) -> None:
    program = """
import undertone_client
client = undertone_client.EmotionClient(show_progress=SHOW)
print(sum(outcome.error is None for outcome in client.discrete.many([b"x"] * 7)))
"""
    drawn, out = run_on_terminal(program.replace("SHOW", "True"), flaky.environment)
    assert out == "7\n"
    assert "Classifying: 100%" in drawn
    assert "7/7" in drawn
    assert run_on_terminal(program.replace("SHOW", "False"), flaky.environment) == ("", "7\n")
