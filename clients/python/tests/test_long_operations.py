"""Classify, progress, memory and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Callable

import pytest

from undertone_client import EmotionClient, PredictionTimeoutError, Progress

from .support.clients import MIB, scrambled
from .support.flaky_server import TIMELINE, Fault, FlakyServer
from .support.programs import run_on_terminal, start

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from .conftest import MakeTwin

RECORDING = scrambled(3 * MIB)


def test_classify_sends_a_recording_and_waits_for_its_time_line_longer_than_twenty_tries(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.pending_polls = 130
    result = make_twin(**flaky.settings).asynch.classify(RECORDING, model="7emotions", interval_seconds=2)
    assert result.to_dict()["emotions"] == TIMELINE
    query = flaky.uploads[result.request_id].query
    assert (query["model"], query["interval"]) == ("7emotions", "2")
    assert len(waits) == 130


def test_classify_with_max_tries_gives_up_and_its_error_names_the_request_to_go_on_with(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.pending_polls = 3
    twin = make_twin(**flaky.settings)
    with pytest.raises(PredictionTimeoutError) as caught:
        twin.asynch.classify(RECORDING, max_tries=2)
    assert twin.asynch.emotions(caught.value.request_id).to_dict()["emotions"] == TIMELINE
    assert waits[0] == 5000


def test_delete_makes_the_service_forget_a_request(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    twin.asynch.delete(request_id)
    assert flaky.deleted == {request_id}


@pytest.mark.usefixtures("waits")
def test_progress_is_told_from_the_first_byte_to_the_result_and_never_runs_backwards(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    flaky.pending_polls = 2
    flaky.faults = lambda seen: Fault("cut", after_bytes=600_000) if seen.part == 2 and seen.time < 2 else None
    told: list[Progress] = []
    make_twin(**flaky.settings, part_size=MIB).asynch.classify(RECORDING, on_progress=told.append)
    statuses = [progress.status for progress in told]
    assert sorted(set(statuses), key=statuses.index) == ["uploading", "processing", "completed"]
    sent = [progress.sent_bytes or 0 for progress in told if progress.status == "uploading"]
    assert sent == sorted(sent)
    assert sent[-1] == len(RECORDING)
    assert len(sent) > 6
    assert len({progress.request_id for progress in told}) == 1


def test_a_listener_that_fails_does_not_stop_the_upload(
    flaky: FlakyServer, make_twin: MakeTwin, caplog: pytest.LogCaptureFixture
) -> None:
    def listen(_progress: Progress) -> None:
        raise RuntimeError("oops")

    request_id = make_twin(**flaky.settings).asynch.upload(RECORDING, on_progress=listen)
    assert flaky.assembled(request_id) == RECORDING
    assert "on_progress raised" in caplog.text


MEASURED = """
import asyncio, inspect, pathlib, re, sys, undertone_client
client = getattr(undertone_client, sys.argv[1])()
async def main():
    request_id = client.asynch.upload(sys.argv[2])
    if inspect.isawaitable(request_id): await request_id
    closed = client.close()
    if closed: await closed
asyncio.run(main())
# The most there was of this program alone; getrusage would count what its parent had, too.
status = pathlib.Path("/proc/self/status").read_text()
print(int(re.search("VmHWM: *([0-9]+) kB", status.replace("\\t", " "))[1]) * 1024)
"""


@pytest.mark.parametrize("name", ["EmotionClient", "AsyncEmotionClient"])
def test_300_mb_with_the_default_settings_take_less_than_120_mb_of_memory_and_show_a_bar(
    name: str, tmp_path: Path
) -> None:
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


INTERRUPTED = """
import json, sys, threading, time, undertone_client
client = undertone_client.EmotionClient(part_size=1024 * 1024)
print("ready", flush=True)
try:
    getattr(client.asynch, sys.argv[1])(*sys.argv[2:])
except KeyboardInterrupt:
    caught = time.time()
    client.close()
    print(json.dumps({"caught": caught, "threads": [thread.name for thread in threading.enumerate()]}))
"""

ASYNC_INTERRUPTED = """
import asyncio, json, sys, threading, time, undertone_client
async def main():
    async with undertone_client.AsyncEmotionClient(part_size=1024 * 1024) as client:
        print("ready", flush=True)
        await getattr(client.asynch, sys.argv[1])(*sys.argv[2:])
try:
    asyncio.run(main())
except KeyboardInterrupt:
    threads = [thread.name for thread in threading.enumerate()]
    print(json.dumps({"caught": time.time(), "threads": threads}))
"""


@pytest.mark.parametrize("program", [INTERRUPTED, ASYNC_INTERRUPTED], ids=["sync", "async"])
def test_ctrl_c_stops_an_upload_at_once_cancels_it_and_leaves_no_thread_behind(
    program: str, flaky: FlakyServer, tmp_path: Path
) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=60) if seen.route == "part" else None
    path = tmp_path / "long.wav"
    path.write_bytes(scrambled(8 * MIB))
    process = start(program, flaky.environment, "upload", str(path))
    until(lambda: len(flaky.calls("part")) == 3)
    outcome = interrupt(process)
    assert outcome["threads"] == ["MainThread"]
    until(lambda: len(flaky.deleted) == 1)


@pytest.mark.parametrize("program", [INTERRUPTED, ASYNC_INTERRUPTED], ids=["sync", "async"])
def test_ctrl_c_ends_the_wait_for_a_result_and_the_request_goes_on(program: str, flaky: FlakyServer) -> None:
    flaky.pending_polls = 1
    with EmotionClient(**flaky.settings) as client:
        request_id = client.asynch.upload(b"x")
        process = start(program, flaky.environment, "emotions", request_id)
        until(lambda: len(flaky.calls("prediction")) == 1)
        assert interrupt(process)["threads"] == ["MainThread"]
        assert client.asynch.emotions(request_id).status == "completed"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupt(process: subprocess.Popen[str]) -> dict[str, object]:
    """Press Ctrl-C; tell what the program says then, which must be soon."""
    pressed = time.time()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    said: dict[str, float] = json.loads(out.splitlines()[-1])
    assert said["caught"] - pressed < 4
    return dict(said)
