"""Classify, delete, progress and memory."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from undertone_client import InvalidRequestIdError, PredictionTimeoutError, Progress

from .support.clients import MIB, scrambled
from .support.flaky_server import TIMELINE, Fault, FlakyServer
from .support.programs import run_on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin

RECORDING = scrambled(3 * MIB)


def test_classify_waits_for_the_timeline_beyond_twenty_tries(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.pending_polls = 130
    twin = make_twin(**flaky.settings)
    result = twin.asynch.classify(RECORDING, model="7emotions", interval_seconds=2)
    assert result.to_dict()["emotions"] == TIMELINE
    query = flaky.uploads[result.request_id].query
    assert (query["model"], query["interval"]) == ("7emotions", "2")
    assert len(waits) == 130


def test_classify_polls_with_increasing_delays_or_at_the_given_interval(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.pending_polls = 30
    twin = make_twin(**flaky.settings)
    twin.asynch.classify(RECORDING)
    assert waits[0] == 500
    assert waits == sorted(waits)
    assert set(waits[10:]) == {5000}
    waits.clear()
    twin.asynch.classify(RECORDING, interval=2000)
    assert set(waits) == {2000}


def test_classify_times_out_after_max_tries_with_the_request_id(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.pending_polls = 3
    twin = make_twin(**flaky.settings)
    with pytest.raises(PredictionTimeoutError) as caught:
        twin.asynch.classify(RECORDING, max_tries=2)
    assert twin.asynch.emotions(caught.value.request_id).to_dict()["emotions"] == TIMELINE
    assert waits == [500, 5000]


def test_delete_removes_a_request_from_the_service(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    twin.asynch.delete(request_id)
    assert flaky.deleted == {request_id}


def test_delete_succeeds_if_only_the_response_was_lost(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.faults = lambda seen: Fault("silent") if (seen.route, seen.time) == ("delete", 0) else None
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    twin.asynch.delete(request_id)
    assert flaky.deleted == {request_id}
    assert (len(flaky.calls("delete")), len(waits)) == (2, 1)
    with pytest.raises(InvalidRequestIdError):
        twin.asynch.delete(request_id)


@pytest.mark.usefixtures("waits")
def test_progress_runs_from_the_first_byte_to_the_result_and_never_backwards(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    flaky.pending_polls = 2
    flaky.faults = lambda seen: Fault("cut", after_bytes=600_000) if seen.part == 2 and seen.time < 2 else None
    events: list[Progress] = []
    make_twin(**flaky.settings, part_size=MIB).asynch.classify(RECORDING, on_progress=events.append)
    statuses = [progress.status for progress in events]
    assert sorted(set(statuses), key=statuses.index) == ["uploading", "processing", "completed"]
    sent = [progress.sent_bytes or 0 for progress in events if progress.status == "uploading"]
    assert sent == sorted(sent)
    assert sent[-1] == len(RECORDING)
    assert len(sent) > 6
    assert len({progress.request_id for progress in events}) == 1


def test_an_error_in_a_listener_does_not_stop_the_upload(
    flaky: FlakyServer, make_twin: MakeTwin, caplog: pytest.LogCaptureFixture
) -> None:
    def listen(_progress: Progress) -> None:
        raise RuntimeError("oops")

    request_id = make_twin(**flaky.settings).asynch.upload(RECORDING, on_progress=listen)
    assert flaky.assembled(request_id) == RECORDING
    assert "on_progress raised" in caplog.text


def test_progress_is_reported_in_the_callers_thread(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    threads = set()
    twin = make_twin(**flaky.settings)
    twin.asynch.upload(RECORDING, on_progress=lambda _progress: threads.add(threading.current_thread()))
    assert threads == {threading.current_thread()}


MEASURED = """
import asyncio, inspect, pathlib, re, sys, undertone_client
client = getattr(undertone_client, sys.argv[1])()
async def main():
    request_id = client.asynch.upload(sys.argv[2])
    if inspect.isawaitable(request_id): await request_id
    closed = client.close()
    if closed: await closed
asyncio.run(main())
# The peak of this process alone; getrusage would include its parent.
status = pathlib.Path("/proc/self/status").read_text()
print(int(re.search("VmHWM: *([0-9]+) kB", status.replace("\\t", " "))[1]) * 1024)
"""


@pytest.mark.parametrize("name", ["EmotionClient", "AsyncEmotionClient"])
def test_uploading_300_mb_uses_less_than_120_mb_of_memory_and_shows_a_progress_bar(name: str, tmp_path: Path) -> None:
    size = 300 * 1000 * 1000
    path = tmp_path / "long.wav"
    path.touch()
    os.truncate(path, size)
    server = FlakyServer(keep_parts=False)
    try:
        drawn, out = run_on_terminal(MEASURED, server.environment, name, str(path))
    finally:
        server.stop()
    (upload,) = server.uploads.values()
    assert upload.completed
    assert len(upload.md5s) == -(-size // (5 * MIB))
    assert "Uploading: 100%|" in drawn
    assert drawn.count("\r") > 3
    assert int(out) < 120_000_000
