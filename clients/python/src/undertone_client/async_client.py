"""The client for asyncio. What both clients do is written here; `client` only blocks until it is done."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable

from ._answers import read_json
from ._base import ClientBase
from ._checks import (
    CHANNEL_MODES,
    STATUSES,
    STREAM_NUMBERS,
    choice_problem,
    default,
    label_problem,
    model_problem,
    number_problem,
    raise_if_any,
    url_problem,
)
from ._failure import Failure, failing_as
from ._many import SharedPause, as_completed, outcome_of
from ._open import RecordingSettings, UploadSettings
from ._poll import PollSettings, check_request_id, class_of_refusal, poll_result
from ._portal import run_blocking
from ._progress import Reporter
from ._retry import ASYNCH_RETRIES, DISCRETE_ATTEMPTS, DISCRETE_RETRIES, MANY_ATTEMPTS, with_retries
from ._samples import samples_as_json
from ._source import ASYNCH_MAX_BYTES, Source, open_source, read_whole
from ._upload import submit_source, upload_source
from ._urls import join_url, models_url, with_query
from .async_stream import AsyncEmotionStream
from .errors import RequestFailedError, UploadFailedError
from .results import AsynchResult, DiscreteResult, ModelList, Outcome, RequestList

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    import httpx
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
        details: bool = False,
    ) -> DiscreteResult:
        """
        Classify the emotion of one short recording.

        A busy server (429, 502, 503, 504) and a broken connection are retried twice.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param samples: instead of a file, a numpy array: one dimension, or two for several channels; floats
            from -1 to 1 or whole numbers. 4.5 seconds of it are sent, from 0.5 s on. Needs numpy.
        :param sample_rate: the rate of the samples in hertz, 8000 to 192000
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: whether the result also has model, weights, duration_seconds and request_id
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no key
        :raises RequestFailedError: the service refused, or could not be reached
        """
        self._session.config.require_ready()
        raise_if_any([model_problem(model), _input_problem(file_path, samples, sample_rate)])
        with failing_as(RequestFailedError):
            if file_path is not None:
                return await self._classify(file_path, DISCRETE_ATTEMPTS, model=model, details=details)
            payload = await run_blocking(lambda: samples_as_json(samples, sample_rate))
            body = {"content": payload, "headers": {"content-type": "application/json"}}
            return await self._post(body, DISCRETE_ATTEMPTS, SharedPause(), model=model, details=details)

    async def many(
        self,
        files: Iterable[Recording],
        concurrency: int = default("concurrency"),
        *,
        model: str | None = None,
        details: bool = False,
    ) -> AsyncIterator[Outcome]:
        """
        Classify many short recordings, and give each as soon as it is answered, with the file it belongs to.

        A recording that is refused does not stop the others: its outcome has an `error` instead of a `result`. When
        the server is busy, all of them wait as long as it asks. A wrong key, or no server, is raised.

        :param files: paths, or what `emotions` takes instead
        :param concurrency: recordings in flight at the same time, 1 to 64
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: whether the results also have model, weights, duration_seconds and request_id
        """
        self._session.config.require_ready()
        raise_if_any([model_problem(model), number_problem("concurrency", concurrency)])
        pause = SharedPause()

        async def classify(file: Recording) -> DiscreteResult:
            with failing_as(RequestFailedError):
                return await self._classify(file, MANY_ATTEMPTS, pause, model=model, details=details)

        outcomes = as_completed(files, concurrency, lambda file: outcome_of(file, classify))
        try:
            async for outcome in outcomes:
                yield outcome
        finally:
            await outcomes.aclose()

    async def _classify(
        self, file: Recording, attempts: int, pause: SharedPause | None = None, **query: Any
    ) -> DiscreteResult:
        body = {"files": {"file": await run_blocking(lambda: read_whole(file))}}
        return await self._post(body, attempts, pause or SharedPause(), **query)

    async def _post(
        self, body: dict[str, Any], attempts: int, pause: SharedPause, *, model: str | None, details: bool
    ) -> DiscreteResult:
        session = self._session
        url = with_query(session.config.discrete_url, {"model": model, "details": "true" if details else None})

        async def attempt(_retry: int) -> httpx.Response:
            await pause.over()
            return await session.call("POST", url, **body)

        answer = await with_retries("Classifying", attempts, DISCRETE_RETRIES, attempt, pause.wait)
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
        resume: str | None = None,
        model: str | None = None,
        interval_seconds: int | None = None,
        channels: str | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
        on_progress: ProgressListener | None = None,
    ) -> str:
        """
        Send a recording of at least 5 seconds and at most 1 GiB, in parts; returns its request identifier.

        An upload that is interrupted, by the network, Ctrl-C or a cancelled task, stays on the server for 24 hours:
        `resume` continues it. One that is refused is deleted.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param part_size: bytes of each part, 1 MiB to 100 MiB; the client's setting when absent
        :param max_retries: retries of each part, 0 to 100
        :param resume: the request_id of an upload of this recording that was interrupted; only what is missing is
            sent, and what was said about the recording then stays
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param interval_seconds: seconds between two classifications (beta), 1 to 60; 5 when absent
        :param channels: ``mix`` (the default), or ``separate`` to hear each of up to 8 channels apart
        :param label: your own name for it, up to 100 characters; shown in lists and webhooks
        :param webhook_url: told when the result is there (Standard Webhooks); an https address
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no key
        :raises UploadFailedError: the recording could not be uploaded
        """
        config = self._session.config
        config.require_ready()
        size = config.part_size if part_size is None else part_size
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        raise_if_any(
            [
                number_problem("part_size", size),
                number_problem("max_retries", max_retries),
                *_recording_problems(recording),
            ]
        )
        if resume is not None:
            check_request_id(resume)
        settings = UploadSettings(recording, size, max_retries, resume)
        return await self._send(
            file_path, on_progress, lambda source, reporter: upload_source(self._session, source, settings, reporter)
        )

    async def submit(
        self,
        file_path: Recording,
        max_retries: int = default("max_retries"),
        *,
        model: str | None = None,
        interval_seconds: int | None = None,
        channels: str | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
        on_progress: ProgressListener | None = None,
    ) -> str:
        """
        Send a recording in one call instead of parts; returns its request identifier.

        Quicker for small recordings, but nothing is kept when it breaks off. The parameters are those of `upload`.
        """
        self._session.config.require_ready()
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        raise_if_any([number_problem("max_retries", max_retries), *_recording_problems(recording)])
        return await self._send(
            file_path,
            on_progress,
            lambda source, reporter: submit_source(self._session, source, recording, max_retries, reporter),
        )

    async def emotions(
        self,
        request_id: str,
        max_tries: int = default("max_tries"),
        interval: int = default("interval"),
        *,
        details: bool = True,
        on_progress: ProgressListener | None = None,
    ) -> AsynchResult:
        """
        Wait for the result of a request and return its time line.

        :param request_id: what `upload` returned
        :param max_tries: how often to ask, 1 to 100
        :param interval: **milliseconds** between two tries, 1000 to 60000
        :param details: whether the result has times, speech, all probabilities and segments
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises InvalidRequestIdError: it is not a request_id, is unknown, or has expired
        :raises PredictionTimeoutError: the tries were used up; ask again with its ``request_id``
        :raises PredictionFailedError: the service could not make a time line; ``code`` says why
        """
        self._check_polling(max_tries, interval)
        check_request_id(request_id)
        return await self._wait_for_result(request_id, PollSettings(max_tries, interval, details), on_progress)

    async def classify(
        self,
        file_path: Recording,
        part_size: int | None = None,
        max_retries: int = default("max_retries"),
        *,
        max_tries: int | None = None,
        interval: int | None = None,
        details: bool = True,
        resume: str | None = None,
        model: str | None = None,
        interval_seconds: int | None = None,
        channels: str | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
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
            resume=resume,
            model=model,
            interval_seconds=interval_seconds,
            channels=channels,
            label=label,
            webhook_url=webhook_url,
            on_progress=on_progress,
        )
        return await self._wait_for_result(request_id, PollSettings(max_tries, interval, details), on_progress)

    async def list(self, status: str | None = None, limit: int | None = None, cursor: str | None = None) -> RequestList:
        """
        List the requests of this key, newest first, a page at a time.

        :param status: only those in this status
        :param limit: how many at once, 1 to 200; 50 when absent
        :param cursor: the `next_cursor` of the page before
        """
        self._session.config.require_ready()
        raise_if_any(
            [choice_problem("status", status, STATUSES), None if limit is None else number_problem("limit", limit)]
        )
        url = join_url(
            self._session.config.asynch_url, "/requests", {"status": status, "limit": limit, "cursor": cursor}
        )
        with failing_as(RequestFailedError):
            answer = await self._session.call_with_retries("Listing the requests", "GET", url)
            return read_json(answer, url, RequestList.from_dict)

    async def webhook_secret(self) -> str:
        """Give what webhooks to this key are signed with: a Standard Webhooks library verifies them with it."""
        self._session.config.require_ready()
        url = join_url(self._session.config.asynch_url, "/webhook-secret")
        with failing_as(RequestFailedError):
            answer = await self._session.call_with_retries("Asking for the webhook secret", "GET", url)
            return read_json(answer, url, lambda value: str(value["secret"]))

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

    async def _send(
        self,
        file_path: Recording,
        on_progress: ProgressListener | None,
        send: Callable[[Source, Reporter], Awaitable[str]],
    ) -> str:
        with failing_as(UploadFailedError):
            source = await run_blocking(lambda: open_source(file_path, ASYNCH_MAX_BYTES))
            reporter = Reporter(on_progress, show=self._session.config.show_progress)
            try:
                return await send(source, reporter)
            finally:
                reporter.end()
                source.close()

    async def _wait_for_result(
        self, request_id: str, settings: PollSettings, on_progress: ProgressListener | None
    ) -> AsynchResult:
        reporter = Reporter(on_progress, show=self._session.config.show_progress)
        with failing_as(class_of_refusal, request_id):
            try:
                return await poll_result(self._session, request_id, settings, reporter)
            finally:
                reporter.end()


async def list_models(session: Session) -> ModelList:
    """List the models."""
    session.config.require_ready()
    url = models_url(session.config.asynch_url)
    with failing_as(RequestFailedError):
        answer = await session.call_with_retries("Listing the models", "GET", url)
        return read_json(answer, url, ModelList.from_dict)


def _recording_problems(recording: RecordingSettings) -> list[str | None]:
    step, address = recording.interval_seconds, recording.webhook_url
    return [
        model_problem(recording.model),
        None if step is None else number_problem("interval_seconds", step),
        choice_problem("channels", recording.channels, CHANNEL_MODES),
        label_problem(recording.label),
        None if address is None else url_problem("webhook_url", address),
    ]


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
