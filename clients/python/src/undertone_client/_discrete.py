"""Short recordings: one at a time, or a batch."""

from __future__ import annotations

import re
from collections.abc import Sized
from typing import TYPE_CHECKING, Any, Union, overload

from ._checks import default, model_problem, number_problem, raise_if_any, timeout_problem
from ._deadline import time_limit
from ._failure import failing_as
from ._many import as_completed, batch_problem, outcome_of
from ._portal import run_blocking
from ._progress import BatchBar
from ._responses import read_json
from ._retry import BATCH_ATTEMPTS, DISCRETE_ATTEMPTS, DISCRETE_RETRIES, with_retries
from ._samples import samples_as_request
from ._source import read_whole
from ._throttle import Throttle
from ._urls import with_query
from .errors import ConfigError, RequestFailedError
from .results import DiscreteResult, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Literal

    import httpx
    import numpy.typing as npt

    from ._session import Session
    from ._source import Recording
    from .literals import ModelName
    from .results import DetailedDiscreteResult

    #: A recording, or samples with their rate, as soundfile and librosa return them.
    BatchItem = Union[Recording, tuple[npt.ArrayLike, float]]


class AsyncDiscrete:
    """Short recordings of 4 to 10 seconds, classified immediately."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @overload
    async def emotions(
        self,
        file_path: Recording | None = None,
        *,
        samples: npt.ArrayLike | None = None,
        sample_rate: float | None = None,
        model: ModelName | None = None,
        details: Literal[True],
        timeout: float | None = None,
    ) -> DetailedDiscreteResult: ...

    @overload
    async def emotions(
        self,
        file_path: Recording | None = None,
        *,
        samples: npt.ArrayLike | None = None,
        sample_rate: float | None = None,
        model: ModelName | None = None,
        details: bool = False,
        timeout: float | None = None,
    ) -> DiscreteResult: ...

    async def emotions(
        self,
        file_path: Recording | None = None,
        *,
        samples: npt.ArrayLike | None = None,
        sample_rate: float | None = None,
        model: ModelName | None = None,
        details: bool = False,
        timeout: float | None = None,
    ) -> DiscreteResult:
        """
        Classify the emotion of one short recording.

        Retried twice if the server is busy (429, 502, 503, 504) or the connection breaks.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param samples: instead of a file, a numpy array with one dimension, or two for several channels: floats
            from -1 to 1, or int16. The result is the same as for the file they were read from. Needs numpy.
        :param sample_rate: sample rate of `samples` in hertz, 8000 to 192000
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: include model, weights, duration_seconds and request_id in the result
        :param timeout: maximum seconds for this call, with its retries
        :raises MissingFileError: the file is missing
        :raises MissingApiKeyError: there is no API key
        :raises RequestFailedError: the service refused the request or is unreachable
        """
        self._session.config.require_ready()
        raise_if_any([model_problem(model), _input_problem(file_path, samples, sample_rate), timeout_problem(timeout)])
        with failing_as(RequestFailedError), time_limit(timeout):
            recording = (samples, sample_rate) if file_path is None else file_path
            body = await run_blocking(lambda: _body_of(recording))
            return await self._post(body, DISCRETE_ATTEMPTS, None, model=model, details=details)

    async def many(
        self,
        files: Iterable[BatchItem],
        concurrency: int = default("concurrency"),
        *,
        model: ModelName | None = None,
        details: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[Outcome]:
        """
        Classify many short recordings and yield each outcome, with its file, as soon as it is available.

        A recording that is refused does not stop the others: its outcome has an `error` instead of a `result`. A
        wrong key, or an unreachable server, is raised. If the server is overloaded, fewer requests are sent at a
        time, and slowly more again. On a terminal or in a notebook a bar shows the progress.

        :param files: paths, anything else that `emotions` accepts as `file_path`, or pairs of samples and their rate
        :param concurrency: maximum number of concurrent requests, 1 to 64
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param details: include model, weights, duration_seconds and request_id in the results
        :param timeout: maximum seconds for each recording, with its retries, from when it is sent
        """
        config = self._session.config
        config.require_ready()
        numbers = [number_problem("concurrency", concurrency), timeout_problem(timeout)]
        raise_if_any([model_problem(model), *numbers, batch_problem(files)])
        throttle = Throttle(concurrency)

        async def classify(item: BatchItem) -> DiscreteResult:
            with failing_as(RequestFailedError):
                body = await run_blocking(lambda: _body_of(item))
                await throttle.turn()  # before its time starts
                with time_limit(timeout):
                    return await self._post(body, BATCH_ATTEMPTS, throttle, model=model, details=details)

        items = enumerate(files)
        outcomes = as_completed(items, concurrency, lambda item: outcome_of(item[0], item[1], classify))
        total = len(files) if isinstance(files, Sized) else None
        with BatchBar(total, show=config.show_progress) as bar:
            try:
                async for outcome in outcomes:
                    bar.advance()
                    yield outcome
            finally:
                await outcomes.aclose()

    async def _post(
        self, body: dict[str, Any], attempts: int, throttle: Throttle | None, *, model: str | None, details: bool
    ) -> DiscreteResult:
        session = self._session
        url = with_query(session.config.discrete_url, {"model": model, "details": "true" if details else None})

        async def attempt(_retry: int) -> httpx.Response:
            if throttle is None:
                return await session.call("POST", url, **body)
            return await throttle.send(lambda: session.call("POST", url, **body))

        pause = None if throttle is None else throttle.pause
        response = await with_retries("Classifying", attempts, DISCRETE_RETRIES, attempt, pause)
        speech = _seconds(response.headers.get("x-speech-seconds"))
        return read_json(response, url, lambda value: DiscreteResult.from_dict({"speech_seconds": speech, **value}))


def _body_of(recording: Any) -> dict[str, Any]:
    """Return the body that sends a recording, or samples with their rate."""
    if isinstance(recording, tuple):
        if len(recording) != 2:  # noqa: PLR2004
            raise ConfigError("Not a recording: a tuple must contain samples and their sample rate.")
        return samples_as_request(*recording)
    return {"files": {"file": read_whole(recording)}}


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
