"""Runs coroutines for synchronous callers, on one event loop in a background thread."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

T = TypeVar("T")
Work = Callable[[], Any]

#: Maximum delay before Ctrl-C is noticed, on systems where a blocking wait cannot be interrupted.
_POLL_SECONDS = 0.2

#: Passes work to the thread of the blocked caller. None: the caller is a task of the program's own event loop.
_post_to_caller: ContextVar[Callable[[Work], None] | None] = ContextVar("post_to_caller", default=None)


def call_back(work: Work) -> None:
    """Run a callback of the caller: in its thread if that is blocked, otherwise here, in its event loop."""
    post = _post_to_caller.get()
    if post is None:
        work()
    else:
        post(work)


def detach() -> None:
    """Let the current task outlive the call that started it: from now on it must not need the caller's thread."""
    _post_to_caller.set(None)


async def run_blocking(work: Callable[[], T]) -> T:
    """Run blocking code: in the thread of a blocked caller, where Ctrl-C interrupts it, or in a worker thread."""
    post = _post_to_caller.get()
    if post is None:
        return await asyncio.to_thread(work)
    outcome: Future[T] = Future()

    def perform() -> None:
        if outcome.set_running_or_notify_cancel():
            try:
                outcome.set_result(work())
            except Exception as error:
                outcome.set_exception(error)

    post(perform)
    return await asyncio.wrap_future(outcome)


class Portal:
    """Starts its thread on first use, and again after `close` or in a forked process. Thread-safe."""

    def __init__(self, close_session: Callable[[], Awaitable[None]]) -> None:
        self._close_session = close_session
        self._lock = threading.Lock()
        self._thread = threading.Thread()  # not alive: `_started` replaces it
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event

    def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation to completion. Ctrl-C cancels it, and is raised after its clean-up."""
        inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()

        def end(task: asyncio.Task[T]) -> None:
            _ = task.cancelled() or task.exception()  # read, or asyncio would report it when Ctrl-C hides it
            inbox.put(None)

        async def begin() -> asyncio.Task[T]:
            _post_to_caller.set(inbox.put)
            task = asyncio.create_task(operation)
            task.add_done_callback(end)
            return task

        with self._lock:  # so that `close` also cancels this task
            loop = self._started()
            task = asyncio.run_coroutine_threadsafe(begin(), loop).result()
        try:
            _run_posted_work(inbox)
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)
            _run_posted_work(inbox)  # a second Ctrl-C skips the clean-up
            raise
        if task.cancelled():
            raise RuntimeError("The client was closed while it was in use.")
        return task.result()

    def close(self) -> None:
        """Cancel running operations, close the connections and end the thread."""
        with self._lock:
            self._stop()
            if self._thread.is_alive():
                self._thread.join()

    def __del__(self) -> None:
        # Does not wait for the thread: garbage collection may run in any thread, this one included.
        self._stop()

    def _started(self) -> asyncio.AbstractEventLoop:
        if not self._thread.is_alive():
            ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
            main = _serve_until_stopped(ready, self._close_session)
            # A daemon thread does not keep the program from exiting.
            thread = threading.Thread(target=asyncio.run, args=(main,), name="undertone_client", daemon=True)
            thread.start()
            self._loop, self._stopping = ready.result()
            self._thread = thread
        return self._loop

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)


async def _serve_until_stopped(
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]], close_session: Callable[[], Awaitable[None]]
) -> None:
    stopping = asyncio.Event()
    ready.set_result((asyncio.get_running_loop(), stopping))
    await stopping.wait()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await close_session()


def _run_posted_work(inbox: queue.SimpleQueue[Work | None]) -> None:
    """Run in this thread what an operation posts, until the operation ends."""
    while True:
        try:
            work = inbox.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            continue
        if work is None:
            return
        work()
