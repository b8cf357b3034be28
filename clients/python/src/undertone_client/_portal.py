"""Runs coroutines for synchronous callers, on one event loop in a background thread."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

T = TypeVar("T")
Work = Callable[[], Any]

#: The event loop of the thread, and what ends it.
_Background = tuple[asyncio.AbstractEventLoop, asyncio.Event]

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
        self.forget()
        _portals.add(self)

    def forget(self) -> None:
        """Start anew in a forked process: the thread is not there, and the lock may be held by one that is not."""
        self._lock = threading.Lock()
        self._thread = threading.Thread()  # not alive: `_started` replaces it
        self._background: Future[_Background] = Future()

    def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation to completion. Ctrl-C cancels it, and is raised after its clean-up."""
        call = _Call(operation)
        loop: asyncio.AbstractEventLoop | None = None
        try:
            with self._lock:  # so that `close` also cancels this operation
                loop = self._started()
                loop.call_soon_threadsafe(call.begin)
            call.run_posted_work()
        except BaseException:
            if loop is None:
                operation.close()
            else:
                # Whatever was interrupted above: `cancel` comes after `begin`, or instead of it.
                with suppress(RuntimeError):  # the loop is closed: the operation has ended
                    loop.call_soon_threadsafe(call.cancel)
                call.run_posted_work()  # a second Ctrl-C skips the clean-up
            raise
        return call.result()

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
            self._background = Future()
            work = (self._background, self._close_session)
            # A daemon thread does not keep the program from exiting.
            self._thread = threading.Thread(target=_serve, args=work, name="undertone_client", daemon=True)
            self._thread.start()
        return self._background.result()[0]

    def _stop(self) -> None:
        if self._thread.is_alive():
            loop, stopping = self._background.result()
            loop.call_soon_threadsafe(stopping.set)


class _Call(Generic[T]):
    """One operation. `begin` and `cancel` run in the event loop, the others in the thread of the caller."""

    def __init__(self, operation: Coroutine[Any, Any, T]) -> None:
        self._operation = operation
        self._task: asyncio.Task[T] | None = None
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()

    def begin(self) -> None:
        _post_to_caller.set(self._inbox.put)
        self._task = asyncio.get_running_loop().create_task(self._operation)
        self._task.add_done_callback(self._end)

    def cancel(self) -> None:
        if self._task is None:
            self._operation.close()
            self._inbox.put(None)
        else:
            self._task.cancel()

    def run_posted_work(self) -> None:
        """Run in this thread what the operation posts, until it ends."""
        while True:
            try:
                work = self._inbox.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if work is None:
                return
            work()

    def result(self) -> T:
        if self._task is None or self._task.cancelled():
            raise RuntimeError("The client was closed while it was in use.")
        return self._task.result()

    def _end(self, task: asyncio.Task[T]) -> None:
        _ = task.cancelled() or task.exception()  # read, or asyncio would report it when Ctrl-C hides it
        self._inbox.put(None)


def _serve(started: Future[_Background], close_session: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(_serve_until_stopped(started, close_session))


async def _serve_until_stopped(started: Future[_Background], close_session: Callable[[], Awaitable[None]]) -> None:
    stopping = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stopping))
    await stopping.wait()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await close_session()


def _forget_all() -> None:
    for portal in _portals:
        portal.forget()


_portals: WeakSet[Portal] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
