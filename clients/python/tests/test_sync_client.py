"""The synchronous client: threads, event loops, Ctrl-C and clean-up."""

from __future__ import annotations

import asyncio
import gc
import json
import linecache
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable

import pytest

from undertone_client import EmotionClient, Progress
from undertone_client._portal import Portal

from .support.clients import MIB, scrambled
from .support.flaky_server import Fault, FlakyServer
from .support.programs import start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

RECORDING = scrambled(MIB)

INTERRUPTED = """
import json, sys, threading, time, undertone_client
client = undertone_client.EmotionClient(part_size=1024 * 1024)
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
        await getattr(client.asynch, sys.argv[1])(*sys.argv[2:])
try:
    asyncio.run(main())
except KeyboardInterrupt:
    threads = [thread.name for thread in threading.enumerate()]
    print(json.dumps({"caught": time.time(), "threads": threads}))
"""

both = pytest.mark.parametrize("program", [INTERRUPTED, ASYNC_INTERRUPTED], ids=["sync", "async"])


@both
def test_ctrl_c_stops_an_upload_logs_how_to_resume_and_leaves_no_thread(
    program: str, flaky: FlakyServer, tmp_path: Path
) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=60) if seen.route == "part" else None
    path = tmp_path / "long.wav"
    path.write_bytes(scrambled(8 * MIB))
    process = start(program, flaky.environment, "upload", str(path))
    until(lambda: len(flaky.calls("part")) == 3)
    output = interrupt(process)
    assert output["threads"] == ["MainThread"]
    assert flaky.deleted == set()
    (request_id,) = flaky.uploads
    assert f"asynch.upload(..., resume='{request_id}')" in str(output["stderr"])
    flaky.faults = lambda _seen: None
    with EmotionClient(**flaky.settings) as client:
        client.asynch.upload(path, resume=request_id)
    assert flaky.assembled(request_id) == path.read_bytes()


@both
def test_ctrl_c_stops_polling_and_the_request_continues(program: str, flaky: FlakyServer) -> None:
    flaky.pending_polls = 1
    with EmotionClient(**flaky.settings) as client:
        request_id = client.asynch.upload(b"x")
        process = start(program, flaky.environment, "emotions", request_id)
        until(lambda: len(flaky.calls("prediction")) == 1)
        assert interrupt(process)["threads"] == ["MainThread"]
        assert client.asynch.emotions(request_id).status == "completed"


def test_ctrl_c_interrupts_reading_an_endless_pipe(flaky: FlakyServer) -> None:
    program = """
import sys, undertone_client
class Input:
    def read(self, size):
        print("reading", flush=True)
        return sys.stdin.buffer.read(size)
try:
    undertone_client.EmotionClient().asynch.upload(Input())
except KeyboardInterrupt:
    print("interrupted")
"""
    process = start(program, flaky.environment)
    assert process.stdout
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.5)  # a signal that comes just before the system call would not interrupt it
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    assert process.stdout.readline() == "interrupted\n"
    process.communicate()
    assert flaky.seen == []


def test_keyboard_interrupt_in_a_listener_stops_the_upload(flaky: FlakyServer) -> None:
    def listen(_progress: Progress) -> None:
        raise KeyboardInterrupt

    with EmotionClient(**flaky.settings, part_size=MIB) as client, pytest.raises(KeyboardInterrupt):
        client.asynch.upload(scrambled(8 * MIB), on_progress=listen)
    assert flaky.calls("complete") == []


def test_it_works_inside_a_running_event_loop(flaky: FlakyServer) -> None:
    async def cell_of_a_notebook() -> str:
        with EmotionClient(**flaky.settings) as client:
            return client.asynch.classify(RECORDING).status

    assert asyncio.run(cell_of_a_notebook()) == "completed"


def test_a_closed_client_can_be_reused(flaky: FlakyServer) -> None:
    gc.collect()  # clients that other tests did not close
    until(lambda: ours() == [])
    client = EmotionClient(**flaky.settings)
    for _ in range(2):
        assert client.discrete.emotions(RECORDING).main_emotion == "happy"
        client.close()
        assert ours() == []
    client.close()


def test_closing_from_another_thread_raises_instead_of_hanging(flaky: FlakyServer) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=60) if seen.route == "part" else None
    client = EmotionClient(**flaky.settings)

    def close() -> None:
        until(lambda: len(flaky.calls("part")) == 1)
        client.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(RuntimeError, match="closed while it was in use"):
        client.asynch.upload(RECORDING)
    closer.join()


def test_garbage_collection_ends_the_background_thread(flaky: FlakyServer) -> None:
    client = EmotionClient(**flaky.settings)
    discrete = client.discrete
    del client
    gc.collect()
    assert discrete.emotions(RECORDING).main_emotion == "happy"
    assert len(ours()) > 0
    del discrete
    gc.collect()
    until(lambda: ours() == [])


@pytest.mark.parametrize(
    "last_line",
    [
        "client.discrete.emotions(b'x')",
        "threading.Thread(target=client.asynch.upload, args=(b'x',), daemon=True).start(); input()",
    ],
    ids=["idle", "still sending in a daemon thread"],
)
def test_a_program_exits_quickly_and_silently_without_closing_its_client(last_line: str, flaky: FlakyServer) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=60) if seen.route == "part" else None
    setup = "import threading, undertone_client\nclient = undertone_client.EmotionClient()\n"
    process = start(setup + last_line, flaky.environment)
    if "upload" in last_line:
        until(lambda: len(flaky.calls("part")) == 1)
    out, err = process.communicate("\n", timeout=15)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_forked_process_can_use_the_client(flaky: FlakyServer) -> None:
    program = """
import os, warnings, undertone_client
client = undertone_client.EmotionClient()
client.discrete.emotions(b"x")
warnings.simplefilter("ignore")  # newer Pythons warn about every fork of a process with threads
child = os.fork()
print(client.discrete.emotions(b"x").main_emotion, flush=True)
if child:
    os.waitpid(child, 0)
"""
    out, err = start(program, flaky.environment).communicate(timeout=50)
    assert (out, err) == ("happy\nhappy\n", "")


@pytest.mark.parametrize("is_used_before", [True, False], ids=["used before", "new"])
def test_worker_processes_can_use_a_client_made_before_the_fork(is_used_before: bool, flaky: FlakyServer) -> None:  # noqa: FBT001
    program = """
import multiprocessing, sys, warnings, undertone_client
client = undertone_client.EmotionClient()
if sys.argv[1] == "True":
    client.discrete.emotions(b"x")
warnings.simplefilter("ignore")  # newer Pythons warn about every fork of a process with threads
def work(number):
    return [outcome.result.main_emotion for outcome in client.discrete.many([b"x"] * number)]
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(map(len, pool.map(work, range(8)))), flush=True)
print(client.discrete.emotions(b"x").main_emotion)
"""
    out, err = start(program, flaky.environment, str(is_used_before)).communicate(timeout=50)
    assert (out, err) == ("28\nhappy\n", "")


def test_a_forked_process_works_also_if_another_thread_was_starting_a_call(flaky: FlakyServer) -> None:
    program = """
import os, warnings, undertone_client
client = undertone_client.EmotionClient()
client.discrete.emotions(b"x")
warnings.simplefilter("ignore")
with client._portal._lock:  # as another thread holds it for a moment
    child = os.fork()
    if child == 0:
        print(client.discrete.emotions(b"x").main_emotion, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    out, err = start(program, flaky.environment).communicate(timeout=50)
    assert (out, err) == ("happy\n", "")


def test_ctrl_c_at_any_line_of_handing_over_an_operation_leaves_nothing_running() -> None:
    async def close() -> None:
        pass

    async def endless() -> None:
        await asyncio.Event().wait()

    async def count_others() -> int:
        return len(asyncio.all_tasks()) - 2  # without this one, and the one that ends the thread

    interrupted: list[str] = []
    while "call.run_posted_work()" not in interrupted:
        portal = Portal(close)
        operation = endless()
        with pytest.raises(KeyboardInterrupt), interrupting(interrupted):
            portal.run(operation)
        operation.close()  # if it was interrupted before the operation was taken
        assert portal.run(count_others()) == 0, interrupted[-1]
        portal.close()
    assert "loop.call_soon_threadsafe(call.begin)" in interrupted
    assert "self._thread.start()" in interrupted


@contextmanager
def interrupting(interrupted: list[str]) -> Iterator[None]:
    """Raise KeyboardInterrupt before the next line of `Portal.run` or `_started`, and note which one that is."""

    def on_line(frame: FrameType, event: str, _value: object) -> Any:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and line not in interrupted:
            interrupted.append(line)
            raise KeyboardInterrupt
        return on_line

    def on_call(frame: FrameType, _event: str, _value: object) -> Any:
        return on_line if frame.f_code in (Portal.run.__code__, Portal._started.__code__) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("undertone_client")]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupt(process: subprocess.Popen[str]) -> dict[str, object]:
    """Press Ctrl-C and return the output of the program, which must react quickly."""
    pressed = time.time()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=50)
    assert process.returncode == 0, err
    said: dict[str, float] = json.loads(out.splitlines()[-1])
    assert said["caught"] - pressed < 4
    return {**said, "stderr": err}
