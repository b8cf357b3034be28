"""Long recordings: uploaded, classified on the server, and fetched as a timeline."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Callable, overload

from ._checks import NUMBERS, default, number_problem, timeout_problem
from ._deadline import time_limit
from ._failure import failing_as
from ._open_upload import RecordingSettings, UploadSettings
from ._poll import PollSettings, check_request_id, error_class_of, poll_result
from ._portal import run_blocking
from ._progress import Reporter
from ._requests import AsyncRequests
from ._source import ASYNCH_MAX_BYTES, Source, open_source
from ._upload import submit_source, upload_source
from .errors import UploadFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from typing_extensions import Literal, TypedDict, Unpack

    from ._progress import ProgressListener
    from ._source import Recording
    from .literals import ChannelMode, ModelName
    from .results import AsynchResult, DetailedAsynchResult

_NOT_FOUND = 404
_LARGEST_PAGE = NUMBERS["limit"].most


if TYPE_CHECKING:

    class _ClassifySettings(TypedDict, total=False):
        """The settings of `classify` that its overloads share."""

        max_tries: int | None
        interval: int | None
        resume: str | None
        model: ModelName | None
        interval_seconds: int | None
        channels: ChannelMode | None
        label: str | None
        webhook_url: str | None
        on_progress: ProgressListener | None
        timeout: float | None


class AsyncAsynch(AsyncRequests):
    """Long recordings: upload one, then fetch its timeline."""

    async def upload(
        self,
        file_path: Recording,
        part_size: int | None = None,
        max_retries: int = default("max_retries"),
        *,
        resume: str | None = None,
        model: ModelName | None = None,
        interval_seconds: int | None = None,
        channels: ChannelMode | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
        on_progress: ProgressListener | None = None,
        timeout: float | None = None,
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
        :param interval_seconds: seconds between classifications, 1 to 60; 5 by default
        :param channels: ``mix`` (the default), or ``separate`` to analyse up to 8 channels separately
        :param label: your own name for the recording, up to 100 characters; shown in lists and webhooks
        :param webhook_url: https URL to notify when the result is ready (Standard Webhooks)
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :param timeout: maximum seconds for this call, with its retries
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no API key
        :raises UploadFailedError: the recording could not be uploaded
        """
        size = self._session.config.part_size if part_size is None else part_size
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        numbers = [number_problem("part_size", size), number_problem("max_retries", max_retries)]
        self._check(*numbers, *recording.problems(), timeout_problem(timeout))
        if resume is not None:
            check_request_id(resume)
        settings = UploadSettings(recording, size, max_retries, resume)
        with time_limit(timeout):
            return await self._send(
                file_path,
                on_progress,
                lambda source, reporter: upload_source(self._session, source, settings, reporter),
            )

    async def submit(
        self,
        file_path: Recording,
        max_retries: int = default("max_retries"),
        *,
        model: ModelName | None = None,
        interval_seconds: int | None = None,
        channels: ChannelMode | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
        on_progress: ProgressListener | None = None,
        timeout: float | None = None,
    ) -> str:
        """
        Send a recording in one request instead of parts, and return its request_id.

        Faster for small recordings, but cannot be resumed. The parameters are those of `upload`.
        """
        recording = RecordingSettings(model, interval_seconds, channels, label, webhook_url)
        self._check(number_problem("max_retries", max_retries), *recording.problems(), timeout_problem(timeout))
        with time_limit(timeout):
            return await self._send(
                file_path,
                on_progress,
                lambda source, reporter: submit_source(self._session, source, recording, max_retries, reporter),
            )

    @overload
    async def emotions(
        self,
        request_id: str,
        max_tries: int = ...,
        interval: int = ...,
        *,
        details: Literal[True] = ...,
        on_progress: ProgressListener | None = ...,
        timeout: float | None = ...,
    ) -> DetailedAsynchResult: ...

    @overload
    async def emotions(
        self,
        request_id: str,
        max_tries: int = ...,
        interval: int = ...,
        *,
        details: bool,
        on_progress: ProgressListener | None = ...,
        timeout: float | None = ...,
    ) -> AsynchResult: ...

    async def emotions(
        self,
        request_id: str,
        max_tries: int = default("max_tries"),
        interval: int = default("interval"),
        *,
        details: bool = True,
        on_progress: ProgressListener | None = None,
        timeout: float | None = None,
    ) -> AsynchResult:
        """
        Wait for the result of a request and return its timeline.

        :param request_id: returned by `upload`
        :param max_tries: maximum number of polls, 1 to 100
        :param interval: **milliseconds** between polls, 1000 to 60000
        :param details: include times, speech, all probabilities and segments in the result
        :param on_progress: called with a `Progress`, in the caller's thread or event loop
        :param timeout: maximum seconds for this call, with its retries
        :raises InvalidRequestIdError: the request_id is malformed, unknown or expired
        :raises PredictionTimeoutError: no result after `max_tries` or `timeout`; call again with its ``request_id``
        :raises PredictionFailedError: the recording could not be classified; ``code`` says why
        """
        self._check_polling(max_tries, interval, timeout)
        check_request_id(request_id)
        with time_limit(timeout):
            return await self._wait_for_result(request_id, PollSettings(max_tries, interval, details), on_progress)

    @overload
    async def classify(
        self,
        file_path: Recording,
        part_size: int | None = ...,
        max_retries: int = ...,
        *,
        details: Literal[True] = ...,
        **settings: Unpack[_ClassifySettings],
    ) -> DetailedAsynchResult: ...

    @overload
    async def classify(
        self,
        file_path: Recording,
        part_size: int | None = ...,
        max_retries: int = ...,
        *,
        details: bool,
        **settings: Unpack[_ClassifySettings],
    ) -> AsynchResult: ...

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
        model: ModelName | None = None,
        interval_seconds: int | None = None,
        channels: ChannelMode | None = None,
        label: str | None = None,
        webhook_url: str | None = None,
        on_progress: ProgressListener | None = None,
        timeout: float | None = None,
    ) -> AsynchResult:
        """
        Upload a recording and wait until its timeline is ready or has failed.

        The parameters are those of `upload` and `emotions`. Without `max_tries` it polls until there is a result;
        without `interval` it polls after half a second at first, then less often, up to every 5 seconds.
        """
        self._check_polling(max_tries, interval, timeout)
        with time_limit(timeout):
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

    def _check_polling(self, max_tries: int | None, interval: int | None, timeout: float | None) -> None:
        given = {"max_tries": max_tries, "interval": interval}
        numbers = [number_problem(name, value) for name, value in given.items() if value is not None]
        self._check(*numbers, timeout_problem(timeout))

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
