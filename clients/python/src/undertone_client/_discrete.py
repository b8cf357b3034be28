"""Short recordings: one at a time, or a batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ._checks import default, model_problem, number_problem, raise_if_any
from ._failure import failing_as
from ._many import SharedPause, as_completed, outcome_of
from ._portal import run_blocking
from ._responses import read_json
from ._retry import BATCH_ATTEMPTS, DISCRETE_ATTEMPTS, DISCRETE_RETRIES, with_retries
from ._samples import samples_as_json
from ._source import read_whole
from ._urls import with_query
from .errors import RequestFailedError
from .results import DiscreteResult, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    import httpx
    import numpy.typing as npt

    from ._session import Session
    from ._source import Recording


class AsyncDiscrete:
    """Short recordings of 4 to 10 seconds, classified immediately."""

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

        Retried twice if the server is busy (429, 502, 503, 504) or the connection breaks.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param samples: instead of a file, a numpy array with one dimension, or two for several channels: floats
            from -1 to 1, or integers. Only 4.5 seconds are sent, from 0.5 s on. Needs numpy.
        :param sample_rate: sample rate of `samples` in hertz, 8000 to 192000
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: include model, weights, duration_seconds and request_id in the result
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no API key
        :raises RequestFailedError: the service refused the request or is unreachable
        """
        self._session.config.require_ready()
        raise_if_any([model_problem(model), _input_problem(file_path, samples, sample_rate)])
        with failing_as(RequestFailedError):
            if file_path is not None:
                return await self._classify(file_path, DISCRETE_ATTEMPTS, SharedPause(), model=model, details=details)
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
        Classify many short recordings and yield each outcome, with its file, as soon as it is available.

        A recording that is refused does not stop the others: its outcome has an `error` instead of a `result`. If the
        server is busy, all of them wait as long as it asks. A wrong key, or an unreachable server, is raised.

        :param files: paths, or anything else that `emotions` accepts as `file_path`
        :param concurrency: maximum number of concurrent requests, 1 to 64
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: include model, weights, duration_seconds and request_id in the results
        """
        self._session.config.require_ready()
        raise_if_any([model_problem(model), number_problem("concurrency", concurrency)])
        pause = SharedPause()

        async def classify(file: Recording) -> DiscreteResult:
            with failing_as(RequestFailedError):
                return await self._classify(file, BATCH_ATTEMPTS, pause, model=model, details=details)

        outcomes = as_completed(files, concurrency, lambda file: outcome_of(file, classify))
        try:
            async for outcome in outcomes:
                yield outcome
        finally:
            await outcomes.aclose()

    async def _classify(self, file: Recording, attempts: int, pause: SharedPause, **query: Any) -> DiscreteResult:
        body = {"files": {"file": await run_blocking(lambda: read_whole(file))}}
        return await self._post(body, attempts, pause, **query)

    async def _post(
        self, body: dict[str, Any], attempts: int, pause: SharedPause, *, model: str | None, details: bool
    ) -> DiscreteResult:
        session = self._session
        url = with_query(session.config.discrete_url, {"model": model, "details": "true" if details else None})

        async def attempt(_retry: int) -> httpx.Response:
            await pause.over()
            return await session.call("POST", url, **body)

        response = await with_retries("Classifying", attempts, DISCRETE_RETRIES, attempt, pause.wait)
        speech = _seconds(response.headers.get("x-speech-seconds"))
        return read_json(response, url, lambda value: DiscreteResult.from_dict({"speech_seconds": speech, **value}))


def _input_problem(file_path: Any, samples: Any, sample_rate: Any) -> str | None:
    if (file_path is None) == (samples is None):
        return "Give either file_path or samples."
    if samples is None and sample_rate is not None:
        return "sample_rate is only for samples: a file contains its own."
    if samples is not None and sample_rate is None:
        return "Give the sample_rate of the samples, in hertz."
    return None


def _seconds(header: str | None) -> float | None:
    return float(header) if header and re.fullmatch(r"\d+(\.\d+)?", header) else None
