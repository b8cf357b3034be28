"""Runs coroutines for callers that block: on one event loop, in a background thread."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
Work = Callable[[], Any]

#: Ctrl-C is noticed after this time at most, on systems where waiting cannot be interrupted.
_POLL_SECONDS = 0.2

#: Passes work on to the thread of the blocked caller. None: the caller is a task of the program's own loop.
_post_to_caller: ContextVar[Callable[[Work], None] | None] = ContextVar("post_to_caller", default=None)


def call_back(work: Work) -> None:
    """Call something of the caller's: in its thread when it is blocked, otherwise here in its event loop."""
    post = _post_to_caller.get()
    if post is None:
        work()
    else:
        post(work)


def detach() -> None:
    """Let the present task outlive the call that started it: what it does must not need that caller's thread."""
    _post_to_caller.set(None)


async def run_blocking(work: Callable[[], T]) -> T:
    """Do what may block: in the thread of a blocked caller, where Ctrl-C interrupts it, or in a worker thread."""
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
    """Starts its thread when it is first used, and again after it was closed. Threads may share it."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._background: _BackgroundLoop | None = None

    def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation to its end. Ctrl-C cancels it, and is raised when it has cleaned up."""
        background = self._started()
        call = _Call(operation)
        try:
            background.loop.call_soon_threadsafe(call.begin)
            call.serve(background)
        except BaseException:
            background.loop.call_soon_threadsafe(call.cancel)
            call.serve(background)  # a second Ctrl-C does not wait for this
            raise
        if call.task is None or call.task.cancelled():
            raise _closed()
        return call.task.result()

    def close(self) -> None:
        """Cancel what is running, close the connections and end the thread."""
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.stop()
            background.thread.join()
            background.pool.shutdown()

    def __del__(self) -> None:
        # A portal that is forgotten ends its thread, and does not wait for it: this may run in any thread.
        if self._background is not None:
            self._background.stop()

    def _started(self) -> _BackgroundLoop:
        with self._lock:
            if self._background is None:
                self._background = _BackgroundLoop(self._close)
            return self._background


class _BackgroundLoop:
    """An event loop in a daemon thread, which ends with the program whatever it is doing."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = ThreadPoolExecutor(thread_name_prefix="undertone_client_worker")
        self.loop.set_default_executor(self.pool)
        self._stopping = self.loop.create_future()
        self._close = close
        self.thread = threading.Thread(target=self._run, name="undertone_client", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stopping.set_result, None)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()

    async def _serve(self) -> None:
        await self._stopping
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close()
        await self.loop.shutdown_asyncgens()


class _Call(Generic[T]):
    """One operation: `begin` and `cancel` are called in the loop, `serve` in the thread that waits for it."""

    def __init__(self, operation: Coroutine[Any, Any, T]) -> None:
        self.task: asyncio.Task[T] | None = None
        self._operation = operation
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()

    def begin(self) -> None:
        _post_to_caller.set(self._inbox.put)
        self.task = asyncio.ensure_future(self._operation)
        self.task.add_done_callback(self._ended)

    def cancel(self) -> None:
        if self.task is None:
            self._operation.close()
            self._inbox.put(None)
        else:
            self.task.cancel()

    def serve(self, background: _BackgroundLoop) -> None:
        """Do what the operation wants done in this thread, until it has ended."""
        while True:
            try:
                work = self._inbox.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if not background.thread.is_alive():
                    raise _closed() from None
                continue
            if work is None:
                return
            work()

    def _ended(self, task: asyncio.Task[T]) -> None:
        # Asking for the error keeps asyncio from reporting it when Ctrl-C hides it.
        _ = task.cancelled() or task.exception()
        self._inbox.put(None)


def _closed() -> RuntimeError:
    return RuntimeError("The client was closed while it was in use.")
