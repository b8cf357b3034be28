"""Performs the steps of operations by blocking; what goes together has a thread each."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import httpx

from ._http import answer_of, arguments_of, lost, trust
from ._log import unlogged_by_httpx
from ._steps import Answer, Do, Pieces, Send, Step, Steps, Wait, advance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

T = TypeVar("T")

#: How long the caller's thread is deaf to Ctrl-C at most, on systems where waiting cannot be interrupted.
_LISTEN_SECONDS = 0.2


class ThreadRunner:
    """Runs operations in the caller's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._let_go: Callable[[], Any] | None = None

    def run(self, steps: Steps[T]) -> T:
        """Perform an operation's steps to its end."""
        outcome: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = advance(steps, outcome, error)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome, error = None, None
            try:
                outcome = self._perform(step)
            except BaseException as raised:
                error = raised

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            let_go, self._client, self._let_go = self._let_go, None, None
        if let_go is not None:
            let_go()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Send):
            return self._send(step)
        if isinstance(step, Wait):
            return self._wait(step.milliseconds)
        if isinstance(step, Do):
            return step.work()
        return _Lanes().run(step.lanes)

    def _send(self, request: Send) -> Answer:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(verify=trust())
                # A client that is simply forgotten lets go of its connections, too.
                self._let_go = weakref.finalize(self, self._client.close)
            client = self._client
        return _exchange(client, request)

    def _wait(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)


class _StoppedError(Exception):
    """Another lane failed, or the caller pressed Ctrl-C."""


class _Lanes:
    """
    Operations side by side, with connections of their own.

    A thread that waits for the network cannot be interrupted. Stopping therefore cuts its connection, which
    ends the wait at once; that is why the connections are not shared with anyone else.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        #: What the lanes have to tell is told in the caller's thread; None is a lane that has ended.
        self._news: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._failures: list[BaseException] = []

    def run(self, lanes: Sequence[Steps[None]]) -> None:
        with httpx.Client(verify=trust(), limits=httpx.Limits()) as client:
            runner = _LaneRunner(client, self)
            threads: list[threading.Thread] = []
            try:
                for lane in lanes:
                    thread = threading.Thread(target=self._run_lane, args=(runner, lane), name="undertone-part")
                    # A second Ctrl-C, while the first is being dealt with, ends the program all the same.
                    thread.daemon = True
                    thread.start()
                    threads.append(thread)
                self._listen(len(threads))
            finally:
                self.stop()
                for thread in threads:
                    thread.join()
        if self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        self._stop.set()
        with self._lock:
            for connection in self._sockets:
                _cut(connection)

    def wait(self, milliseconds: int) -> None:
        if self._stop.wait(milliseconds / 1000):
            raise _StoppedError

    def check(self) -> None:
        if self._stop.is_set():
            raise _StoppedError

    def tell(self, news: Callable[[], None]) -> None:
        self._news.put(news)

    def watch(self, _event: str, info: Mapping[str, Any]) -> None:
        """Note every connection that is made (httpx's trace extension)."""
        look_up = getattr(info.get("return_value"), "get_extra_info", None)
        connection = look_up("socket") if look_up else None
        if isinstance(connection, socket.socket):
            with self._lock:
                self._sockets.append(connection)
            if self._stop.is_set():
                _cut(connection)

    def _listen(self, running: int) -> None:
        while running:
            try:
                news = self._news.get(timeout=_LISTEN_SECONDS)
            except queue.Empty:
                continue
            if news is not None:
                news()
                continue
            running -= 1
            if self._failures:
                self.stop()

    def _run_lane(self, runner: _LaneRunner, lane: Steps[None]) -> None:
        try:
            runner.run(lane)
        except _StoppedError:
            pass
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._news.put(None)


class _LaneRunner(ThreadRunner):
    """Runs one operation of several."""

    def __init__(self, client: httpx.Client, lanes: _Lanes) -> None:
        super().__init__()
        self._client = client
        self._lanes = lanes

    def _perform(self, step: Step) -> Any:
        self._lanes.check()
        return super()._perform(step)

    def _send(self, request: Send) -> Answer:
        assert self._client is not None  # noqa: S101 - told to the type checker
        try:
            return _exchange(self._client, request, self._lanes)
        except Exception:
            # A connection that was cut because of a stop is no failure of its own.
            self._lanes.check()
            raise

    def _wait(self, milliseconds: int) -> None:
        self._lanes.wait(milliseconds)


def _exchange(client: httpx.Client, request: Send, lanes: _Lanes | None = None) -> Answer:
    arguments = arguments_of(request)
    if isinstance(request.content, Pieces):
        arguments["content"] = _told(request.content, lanes)
    if lanes is not None:
        arguments["extensions"] = {"trace": lanes.watch}
    started = time.monotonic()
    try:
        with unlogged_by_httpx():
            response = client.request(**arguments)
    except httpx.RequestError as error:
        raise lost(request, error) from error
    return answer_of(request, response, started)


def _told(pieces: Pieces, lanes: _Lanes | None) -> Iterator[bytes]:
    sent = 0
    for piece in pieces.read:
        if lanes is not None:
            lanes.check()
        yield piece
        sent += len(piece)
        news = partial(pieces.on_sent, sent)
        if lanes is None:
            news()
        else:
            lanes.tell(news)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        # The plain socket's way, also where TLS lies on top of it: nothing more is to be said.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
