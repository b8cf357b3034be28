"""The synchronous client: threads, event loops, Ctrl-C and clean-up."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Callable

import pytest

from undertone_client import EmotionClient, Progress

from .support.clients import MIB, scrambled
from .support.flaky_server import Fault, FlakyServer
from .support.programs import start

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

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
