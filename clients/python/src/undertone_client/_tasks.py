"""Performs the steps of operations in an event loop; what goes together has a task each."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from ._http import answer_of, arguments_of, lost, trust
from ._log import unlogged_by_httpx
from ._steps import Answer, Do, Pieces, Send, Step, Steps, Wait, advance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

T = TypeVar("T")


class TaskRunner:
    """Runs operations in the caller's task."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, steps: Steps[T]) -> T:
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
                outcome = await self._perform(step)
            except BaseException as raised:
                error = raised

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Send):
            return await self._send(step)
        if isinstance(step, Wait):
            return await self._wait(step.milliseconds)
        if isinstance(step, Do):
            return await asyncio.to_thread(step.work)
        return await self._together(step.lanes)

    async def _send(self, request: Send) -> Answer:
        arguments = arguments_of(request)
        if isinstance(request.content, Pieces):
            arguments["content"] = _told(request.content)
        started = time.monotonic()
        try:
            with unlogged_by_httpx():
                response = await self._client_here().request(**arguments)
        except httpx.RequestError as error:
            raise lost(request, error) from error
        return answer_of(request, response, started)

    async def _wait(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)

    async def _together(self, lanes: Sequence[Steps[None]]) -> None:
        tasks = [asyncio.ensure_future(self.run(lane)) for lane in lanes]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            failed = [task for task in tasks if task.done() and task.exception()]
            if failed:
                await failed[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _client_here(self) -> httpx.AsyncClient:
        """Give the client of this loop: connections belong to one, and a program may run several in turn."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = httpx.AsyncClient(verify=trust(), limits=httpx.Limits())
            self._loop = loop
        return self._client


async def _told(pieces: Pieces) -> AsyncIterator[bytes]:
    sent = 0
    while True:
        piece = await asyncio.to_thread(next, pieces.read, None)
        if piece is None:
            return
        yield piece
        sent += len(piece)
        pieces.on_sent(sent)
