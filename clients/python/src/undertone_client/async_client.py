"""The client for asyncio. What both clients do is written here; `client` only blocks until it is done."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable

from ._answers import read_json
from ._base import ClientBase
from ._checks import STREAM_NUMBERS, default, model_problem, number_problem, raise_if_any
from ._failure import Failure, failing_as
from ._poll import check_request_id, class_of_refusal, poll_result
from ._portal import run_blocking
from ._progress import Reporter
from ._retry import ASYNCH_RETRIES, DISCRETE_ATTEMPTS, DISCRETE_RETRIES, with_retries
from ._samples import samples_as_json
from ._source import ASYNCH_MAX_BYTES, open_source, read_whole
from ._upload import UploadSettings, upload_source
from ._urls import join_url, models_url, with_query
from .async_stream import AsyncEmotionStream
from .errors import RequestFailedError, UploadFailedError
from .results import AsynchResult, DiscreteResult, ModelList

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._progress import ProgressListener
    from ._session import Session
    from ._source import Recording

_NOT_FOUND = 404


class AsyncEmotionClient(ClientBase):
    """
    Talks to an Undertone server from asyncio.

    >>> client = AsyncEmotionClient()                  # the key comes from SERVICE_API_KEY
    >>> await client.discrete.emotions("hello.wav")    # 4 to 10 seconds, answered at once
    >>> await client.asynch.classify("interview.wav")  # 5 seconds to 1 GiB, answered with a time line
    """

    #: Short recordings, answered at once.
    discrete: AsyncDiscrete
    #: Long recordings, answered with a time line.
    asynch: AsyncAsynch

    def _open(self, session: Session) -> None:
        self._session = session
        self.discrete = AsyncDiscrete(session)
        self.asynch = AsyncAsynch(session)

    async def models(self) -> ModelList:
        """List the models the server offers, how well they do, and the licence of the weights in use."""
        return await list_models(self._session)

    def stream(
        self,
        *,
        model: str | None = None,
        sample_rate: int = default("sample_rate", STREAM_NUMBERS),
        encoding: str = "pcm_s16le",
        channels: int = default("channels", STREAM_NUMBERS),
        interval: int = default("interval", STREAM_NUMBERS),
        on_reconnect: Callable[[], object] | None = None,
    ) -> AsyncEmotionStream:
        """
        Open a stream of live audio: write samples, and read an emotion every few seconds. Needs websockets.

        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param sample_rate: hertz, 8000 to 192000
        :param encoding: ``pcm_s16le``, ``pcm_f32le``, ``mulaw`` or ``alaw``
        :param channels: 1 or 2, interleaved; each is heard apart
        :param interval: **seconds** between two predictions, 1 to 10
        :param on_reconnect: called when a connection that broke has been made again
        """
        return AsyncEmotionStream(
            self._session,
            model=model,
            sample_rate=sample_rate,
            encoding=encoding,
            channels=channels,
            interval=interval,
            on_reconnect=on_reconnect,
        )

    async def close(self) -> None:
        """Close the connections. A client that is used again opens new ones."""
        await self._session.close()

    async def __aenter__(self) -> AsyncEmotionClient:
        """Use it in an `async with` block."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the connections at the end of the block."""
        await self.close()


class AsyncDiscrete:
    """Short recordings of 4 to 10 seconds, answered at once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def emotions(
        self,
        file_path: Recording | None = None,
        *,
        samples: npt.ArrayLike | None = None,
        sample_rate: int | None = None,
        model: str | None = None,
    ) -> DiscreteResult:
        """
        Classify the emotion of one short recording.

        A busy server (429, 502, 503, 504) and a broken connection are retried twice.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param samples: instead of a file, a numpy array: one dimension, or two for several channels; floats
            from -1 to 1 or whole numbers. 4.5 seconds of it are sent, from 0.5 s on. Needs numpy.
        :param sample_rate: the rate of the samples in hertz, 8000 to 192000
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no key
        :raises RequestFailedError: the service refused, or could not be reached
        """
        session = self._session
        session.config.require_ready()
        raise_if_any([model_problem(model), _input_problem(file_path, samples, sample_rate)])
        url = with_query(session.config.discrete_url, {"model": model})
        body: dict[str, Any]
        with failing_as(RequestFailedError):
            if file_path is not None:
                recording = file_path
                body = {"files": {"file": await run_blocking(lambda: read_whole(recording))}}
            else:
                payload = await run_blocking(lambda: samples_as_json(samples, sample_rate))
                body = {"content": payload, "headers": {"content-type": "application/json"}}
            answer = await with_retries(
                "Classifying", DISCRETE_ATTEMPTS, DISCRETE_RETRIES, lambda _retry: session.call("POST", url, **body)
            )
            speech = _seconds(answer.headers.get("x-speech-seconds"))
            return read_json(answer, url, lambda value: DiscreteResult.from_dict({"speech_seconds": speech, **value}))


class AsyncAsynch:
    """Long recordings: send one, then ask for its time line."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def upload(
        self,
        file_path: Recording,
        part_size: int | None = None,
        max_retries: int = default("max_retries"),
        *,
        model: str | None = None,
        interval_seconds: int | None = None,
        on_progress: ProgressListener | None = None,
    ) -> str:
        """
        Send a recording of at least 5 seconds and at most 1 GiB, in parts; returns its request identifier.

        When that fails, on Ctrl-C and when the task is cancelled, the service is told to delete the request.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param part_size: bytes of each part, 1 MiB to 100 MiB; the client's setting when absent
        :param max_retries: retries of each part, 0 to 100
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param interval_seconds: seconds between two classifications (beta), 1 to 60; 5 when absent
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no key
        :raises UploadFailedError: the recording could not be uploaded
        """
        config = self._session.config
        config.require_ready()
        size = config.part_size if part_size is None else part_size
        raise_if_any(
            [
                number_problem("part_size", size),
                number_problem("max_retries", max_retries),
                model_problem(model),
                None if interval_seconds is None else number_problem("interval_seconds", interval_seconds),
            ]
        )
        settings = UploadSettings(size, max_retries, model, interval_seconds)
        with failing_as(UploadFailedError):
            source = await run_blocking(lambda: open_source(file_path, ASYNCH_MAX_BYTES))
            reporter = Reporter(on_progress, show=config.show_progress)
            try:
                return await upload_source(self._session, source, settings, reporter)
            finally:
                reporter.end()
                source.close()

    async def emotions(
        self,
        request_id: str,
        max_tries: int = default("max_tries"),
        interval: int = default("interval"),
        *,
        on_progress: ProgressListener | None = None,
    ) -> AsynchResult:
        """
        Wait for the result of a request and return its time line.

        :param request_id: what `upload` returned
        :param max_tries: how often to ask, 1 to 100
        :param interval: **milliseconds** between two tries, 1000 to 60000
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises InvalidRequestIdError: it is not a request_id, is unknown, or has expired
        :raises PredictionTimeoutError: the tries were used up; ask again with its ``request_id``
        :raises PredictionFailedError: the service could not make a time line; ``code`` says why
        """
        self._check_polling(max_tries, interval)
        check_request_id(request_id)
        return await self._wait_for_result(request_id, max_tries, interval, on_progress)

    async def classify(
        self,
        file_path: Recording,
        part_size: int | None = None,
        max_retries: int = default("max_retries"),
        *,
        max_tries: int | None = None,
        interval: int | None = None,
        model: str | None = None,
        interval_seconds: int | None = None,
        on_progress: ProgressListener | None = None,
    ) -> AsynchResult:
        """
        Send a recording and wait for its time line, until it is finished or has failed.

        The parameters are those of `upload` and `emotions`, but `max_tries` has no default, and without an
        `interval` the first tries follow each other quickly.
        """
        self._check_polling(max_tries, interval)
        request_id = await self.upload(
            file_path,
            part_size,
            max_retries,
            model=model,
            interval_seconds=interval_seconds,
            on_progress=on_progress,
        )
        return await self._wait_for_result(request_id, max_tries, interval, on_progress)

    async def delete(self, request_id: str) -> None:
        """Delete a request on the server now: its audio, its parts and its result."""
        session = self._session
        session.config.require_ready()
        check_request_id(request_id)
        url = join_url(session.config.asynch_url, f"/requests/{request_id}")

        async def attempt(retry: int) -> None:
            try:
                await session.call("DELETE", url)
            except Failure as failure:
                # Not found by a retry: the attempt before deleted it, and only its answer was lost.
                if retry == 0 or failure.details.get("status") != _NOT_FOUND:
                    raise

        with failing_as(class_of_refusal, request_id):
            await with_retries("Deleting the request", session.config.retry_attempts, ASYNCH_RETRIES, attempt)

    def _check_polling(self, max_tries: int | None, interval: int | None) -> None:
        self._session.config.require_ready()
        given = {"max_tries": max_tries, "interval": interval}
        raise_if_any([number_problem(name, value) for name, value in given.items() if value is not None])

    async def _wait_for_result(
        self, request_id: str, max_tries: int | None, interval: int | None, on_progress: ProgressListener | None
    ) -> AsynchResult:
        reporter = Reporter(on_progress, show=self._session.config.show_progress)
        with failing_as(class_of_refusal, request_id):
            try:
                return await poll_result(self._session, request_id, max_tries, interval, reporter)
            finally:
                reporter.end()


async def list_models(session: Session) -> ModelList:
    """List the models."""
    session.config.require_ready()
    url = models_url(session.config.asynch_url)
    with failing_as(RequestFailedError):
        answer = await session.call_with_retries("Listing the models", "GET", url)
        return read_json(answer, url, ModelList.from_dict)


def _input_problem(file_path: Any, samples: Any, sample_rate: Any) -> str | None:
    if (file_path is None) == (samples is None):
        return "Give either file_path or samples."
    if samples is None and sample_rate is not None:
        return "sample_rate goes with samples: a file contains its own."
    if samples is not None and sample_rate is None:
        return "Give the sample_rate of the samples, in hertz."
    return None


def _seconds(header: str | None) -> float | None:
    return float(header) if header and re.fullmatch(r"\d+(\.\d+)?", header) else None
