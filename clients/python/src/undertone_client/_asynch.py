"""Long recordings: uploaded, classified on the server, and fetched as a timeline."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Callable

from ._checks import STATUSES, choice_problem, default, number_problem, raise_if_any
from ._failure import Failure, failing_as
from ._open_upload import RecordingSettings, UploadSettings
from ._poll import PollSettings, check_request_id, error_class_of, poll_result
from ._portal import run_blocking
from ._progress import Reporter
from ._responses import read_json
from ._retry import ASYNCH_RETRIES, with_retries
from ._source import ASYNCH_MAX_BYTES, Source, open_source
from ._upload import submit_source, upload_source
from ._urls import join_url, models_url
from .errors import RequestFailedError, UploadFailedError
from .listings import ModelList, RequestList

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ._progress import ProgressListener
    from ._session import Session
    from ._source import Recording
    from ._urls import QueryValue
    from .results import AsynchResult

_NOT_FOUND = 404


class AsyncAsynch:
    """Long recordings: upload one, then fetch its timeline."""

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
        Upload a recording of 5 seconds to 1 GiB in parts, and return its request_id.

        An upload interrupted by the network, Ctrl-C or task cancellation stays on the server for 24 hours: `resume`
        continues it. An upload that the server refuses is deleted.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param part_size: bytes per part, 1 MiB to 100 MiB; by default the client's setting
        :param max_retries: retries per part, 0 to 100
        :param resume: the request_id of an interrupted upload of this recording; only missing parts are sent, and the
            settings of the first attempt apply
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param interval_seconds: seconds between classifications (beta), 1 to 60; 5 by default
        :param channels: ``mix`` (the default), or ``separate`` to analyse up to 8 channels separately
        :param label: your own name for the recording, up to 100 characters; shown in lists and webhooks
        :param webhook_url: https URL to notify when the result is ready (Standard Webhooks)
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no API key
        :raises UploadFailedError: the recording could not be uploaded
        """
        config = self._session.config
        config.require_ready()
        size = config.part_size if part_size is None else part_size
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        numbers = [number_problem("part_size", size), number_problem("max_retries", max_retries)]
        raise_if_any([*numbers, *recording.problems()])
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
        Send a recording in one request instead of parts, and return its request_id.

        Faster for small recordings, but cannot be resumed. The parameters are those of `upload`.
        """
        self._session.config.require_ready()
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        raise_if_any([number_problem("max_retries", max_retries), *recording.problems()])
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
        Wait for the result of a request and return its timeline.

        :param request_id: returned by `upload`
        :param max_tries: maximum number of polls, 1 to 100
        :param interval: **milliseconds** between polls, 1000 to 60000
        :param details: include times, speech, all probabilities and segments in the result
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :raises InvalidRequestIdError: the request_id is malformed, unknown or expired
        :raises PredictionTimeoutError: no result after `max_tries`; call again with its ``request_id``
        :raises PredictionFailedError: the recording could not be classified; ``code`` says why
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
        Upload a recording and wait until its timeline is ready or has failed.

        The parameters are those of `upload` and `emotions`. Without `max_tries` it polls until there is a result;
        without `interval` it polls after half a second at first, then less often, up to every 5 seconds.
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

        :param status: only requests with this status
        :param limit: maximum page size, 1 to 200; 50 by default
        :param cursor: the `next_cursor` of the previous page
        """
        self._session.config.require_ready()
        limit_problem = None if limit is None else number_problem("limit", limit)
        raise_if_any([choice_problem("status", status, STATUSES), limit_problem])
        query: dict[str, QueryValue] = {"status": status, "limit": limit, "cursor": cursor}
        url = join_url(self._session.config.asynch_url, "/requests", query)
        with failing_as(RequestFailedError):
            response = await self._session.call_with_retries("Listing the requests", "GET", url)
            return read_json(response, url, RequestList.from_dict)

    async def webhook_secret(self) -> str:
        """Return the secret that signs this key's webhooks; a Standard Webhooks library verifies them with it."""
        self._session.config.require_ready()
        url = join_url(self._session.config.asynch_url, "/webhook-secret")
        with failing_as(RequestFailedError):
            response = await self._session.call_with_retries("Getting the webhook secret", "GET", url)
            return read_json(response, url, lambda value: str(value["secret"]))

    async def delete(self, request_id: str) -> None:
        """Delete a request from the server now: its audio, its parts and its result."""
        session = self._session
        session.config.require_ready()
        check_request_id(request_id)
        url = join_url(session.config.asynch_url, f"/requests/{request_id}")

        async def attempt(retry: int) -> None:
            try:
                await session.call("DELETE", url)
            except Failure as failure:
                # 404 on a retry: an earlier attempt deleted it, and only its response was lost.
                if retry == 0 or failure.details.get("status") != _NOT_FOUND:
                    raise

        with failing_as(error_class_of, request_id):
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
            with closing(source), Reporter(on_progress, show=self._session.config.show_progress) as reporter:
                return await send(source, reporter)

    async def _wait_for_result(
        self, request_id: str, settings: PollSettings, on_progress: ProgressListener | None
    ) -> AsynchResult:
        show = self._session.config.show_progress
        with failing_as(error_class_of, request_id), Reporter(on_progress, show=show) as reporter:
            return await poll_result(self._session, request_id, settings, reporter)


async def list_models(session: Session) -> ModelList:
    session.config.require_ready()
    url = models_url(session.config.asynch_url)
    with failing_as(RequestFailedError):
        response = await session.call_with_retries("Listing the models", "GET", url)
        return read_json(response, url, ModelList.from_dict)
