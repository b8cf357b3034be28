"""Live audio over a WebSocket: write samples, read predictions. `stream` is the synchronous version."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any, Callable, Union

import httpx

from ._checks import STREAM_NUMBERS, model_problem, number_problem, raise_if_any
from ._failure import Failure, failing_as
from ._log import logger
from ._optional import optional
from ._portal import call_back
from ._responses import error_response, no_response
from ._retry import ASYNCH_RETRIES, with_retries
from ._urls import join_url
from .errors import RequestFailedError
from .timeline import StreamPrediction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ._session import Session

    Pieces = Union[Iterable[bytes], AsyncIterable[bytes]]

#: Supported encodings, and their bytes per sample.
ENCODINGS = {"pcm_s16le": 2, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}

_PROTOCOL = "undertone.v1"
_RECONNECT_SPREAD_SECONDS = 0.5
_OPEN_SECONDS = 10
_CLOSE_SECONDS = 2

#: Close codes for invalid data or a revoked key: reconnecting would not help.
_FINAL_CLOSES = frozenset({1007, 1008, 1009})

# websockets logs headers, including the key.
_silent = logging.getLogger("undertone_client.websocket")
_silent.setLevel(logging.CRITICAL + 1)


class AsyncEmotionStream:
    """
    Live audio: write samples, and read an emotion every few seconds.

    If the connection breaks, the next write reconnects, with increasing delays, and a warning is logged. Audio in
    flight is lost; timestamps still count it.

    >>> async with client.stream(sample_rate=16_000) as stream:
    ...     async for prediction in stream.feed(microphone):
    ...         print(prediction.t, prediction.main_emotion)
    """

    def __init__(
        self,
        session: Session,
        *,
        model: str | None,
        sample_rate: int,
        encoding: str,
        channels: int,
        interval: int,
        on_reconnect: Callable[[], object] | None,
    ) -> None:
        session.config.require_ready()
        raise_if_any(
            [
                model_problem(model),
                number_problem("sample_rate", sample_rate, STREAM_NUMBERS),
                number_problem("channels", channels, STREAM_NUMBERS),
                number_problem("interval", interval, STREAM_NUMBERS),
                None
                if encoding in ENCODINGS
                else f"There is no encoding {encoding!r}: choose one of {', '.join(ENCODINGS)}.",
            ]
        )
        self._websockets = optional("websockets", "stream")
        self._client = optional("websockets.asyncio.client", "stream")
        self._session = session
        query = {
            "model": model,
            "sample_rate": sample_rate,
            "encoding": encoding,
            "channels": channels,
            "interval": interval,
        }
        self._http_url = join_url(session.config.base_url, "/v1/stream", query)
        self._frame_bytes = ENCODINGS[encoding] * channels
        self._sample_rate = sample_rate
        self._on_reconnect = on_reconnect
        self._connection: Any = None
        self._receiver: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._connected_before = False
        self._written = 0
        # Bytes to skip after reconnecting: the rest of a frame whose start was lost would misalign all others.
        self._skip = 0
        self._predictions: list[StreamPrediction] = []
        self._news = asyncio.Event()
        self._ending = False
        self._ended = False
        self._error: BaseException | None = None

    async def write(self, samples: bytes) -> None:
        """Send raw samples, in pieces of any size. Waits while the send buffer is full."""
        data = bytes(samples)
        while True:
            with failing_as(RequestFailedError):
                connection = await self._connected()
            try:
                await connection.send(data[self._skip :])
            except self._websockets.ConnectionClosed:
                await self._disconnected()
                continue
            self._skip = max(0, self._skip - len(data))
            self._written += len(data)
            return

    async def end(self) -> None:
        """Signal the end of the audio: the last prediction arrives, then the iteration ends."""
        if self._ending or self._ended:
            return
        self._ending = True
        if self._connection is None:
            self._finish()
            return
        try:
            await self._connection.send(json.dumps({"type": "end"}))
        except self._websockets.ConnectionClosed:
            await self._disconnected()

    async def close(self) -> None:
        """Close immediately, without the last prediction."""
        self._finish()
        await self._disconnected()

    async def feed(self, pieces: Pieces) -> AsyncIterator[StreamPrediction]:
        """Write all pieces of an iterable or async iterable, and yield predictions as they arrive."""
        writer = asyncio.create_task(self._write_all(pieces))
        try:
            async for prediction in self:
                yield prediction
            await writer
        finally:
            writer.cancel()
            await self.close()

    def __aiter__(self) -> AsyncIterator[StreamPrediction]:
        return self

    async def __anext__(self) -> StreamPrediction:
        prediction = await self.read()
        if prediction is None:
            raise StopAsyncIteration
        return prediction

    async def read(self) -> StreamPrediction | None:
        """Wait for the next prediction; None at the end of the stream."""
        while not self._predictions and not self._ended:
            self._news.clear()
            await self._news.wait()
        if self._predictions:
            return self._predictions.pop(0)
        if self._error is not None:
            raise self._error
        return None

    async def __aenter__(self) -> AsyncEmotionStream:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def _write_all(self, pieces: Pieces) -> None:
        try:
            if isinstance(pieces, AsyncIterable):
                async for piece in pieces:
                    await self.write(piece)
            else:
                # Waiting for a microphone blocks.
                source = iter(pieces)
                while (part := await asyncio.to_thread(lambda: next(source, None))) is not None:
                    await self.write(part)
            await self.end()
        except Exception as error:
            self._finish(error)

    async def _connected(self) -> Any:
        """Return the connection; connect if there is none."""
        async with self._connecting:
            if self._ended:
                raise self._error or RequestFailedError("The stream has ended.", code="stream_ended")
            if self._connection is not None:
                return self._connection
            try:
                attempts = self._session.config.retry_attempts
                connection = await with_retries("Streaming", attempts, ASYNCH_RETRIES, self._open_spread)
            except Failure as failure:
                self._finish(failure.as_error(RequestFailedError))
                raise
            if self._ended:  # closed while connecting
                await connection.close()
                raise RequestFailedError("The stream has ended.", code="stream_ended")
            self._skip = -self._written % self._frame_bytes
            offset = math.ceil(self._written / self._frame_bytes) / self._sample_rate
            self._connection = connection
            self._receiver = asyncio.create_task(self._receive(connection, offset))
            if self._connected_before:
                logger.warning("The stream has reconnected.")
                if self._on_reconnect is not None:
                    call_back(self._on_reconnect)
            self._connected_before = True
            return connection

    async def _open_spread(self, retry: int) -> Any:
        # A server that stops loses all of its streams at once: they must not come back at once. Retries have jitter.
        if retry == 0 and self._connected_before:
            await asyncio.sleep(random.random() * _RECONNECT_SPREAD_SECONDS)  # noqa: S311 - jitter, not security
        return await self._open()

    async def _open(self) -> Any:
        """Try to connect once."""
        url = self._http_url
        headers = self._session.headers_for(url)
        timeout, proxy = self._session.config.timeout, self._session.config.proxy
        try:
            connection = await self._client.connect(
                "ws" + url[4:],
                additional_headers={**headers, "x-api-key": self._session.config.api_key},
                user_agent_header=None,
                subprotocols=[_PROTOCOL],
                compression=None,
                open_timeout=_OPEN_SECONDS if timeout is None else min(_OPEN_SECONDS, timeout),
                close_timeout=_CLOSE_SECONDS,
                logger=_silent,
                **({} if proxy is None else {"proxy": proxy}),
            )
        except self._websockets.InvalidStatus as error:
            raw = error.response
            response = httpx.Response(
                raw.status_code, headers=list(raw.headers.raw_items()), content=bytes(raw.body or b"")
            )
            raise error_response(response, url) from error
        except (OSError, asyncio.TimeoutError, self._websockets.WebSocketException) as error:
            failure = no_response("GET", url, error)
            # A server that was running before is probably restarting.
            failure.is_final = failure.is_final and not self._connected_before
            raise failure from error
        return connection

    async def _receive(self, connection: Any, offset: float) -> None:
        reason: Failure | None = None
        try:
            async for text in connection:
                message = json.loads(text)
                kind = message["type"]
                if kind == "prediction":
                    self._predictions.append(StreamPrediction.from_dict(message, offset))
                    self._news.set()
                elif kind == "error":
                    reason = Failure(message["detail"], code=message["code"])
                elif kind == "done":
                    self._finish()
        except self._websockets.ConnectionClosed:
            pass
        except (KeyError, TypeError, ValueError, AttributeError):
            reason = Failure("The server sent a message that is not from this service. Check the address.")
            self._finish(reason.as_error(RequestFailedError))
        finally:
            self._connection = None
            await connection.close()
        if not self._ended:
            self._on_disconnect(connection.close_code, reason)

    def _on_disconnect(self, close_code: int | None, reason: Failure | None) -> None:
        failure = reason or Failure("The stream lost its connection.", code="connection_failed")
        if close_code in _FINAL_CLOSES or self._ending:
            self._finish(failure.as_error(RequestFailedError))
        else:
            logger.warning("%s The next write reconnects.", failure.message)

    def _finish(self, error: BaseException | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        self._error = error
        self._news.set()

    async def _disconnected(self) -> None:
        """Wait until the connection is closed."""
        receiver = self._receiver
        if receiver is None:
            return
        if self._ended and self._connection is not None:
            await self._connection.close()
        await asyncio.wait([receiver])
