"""The client for asyncio: the same names, to be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _operations as operations
from ._base import ClientBase
from ._checks import default
from ._tasks import TaskRunner

if TYPE_CHECKING:
    from typing import Callable

    import numpy.typing as npt

    from ._calls import Context
    from ._progress import ProgressListener
    from ._source import Recording
    from .results import AsynchResult, DiscreteResult, ModelList


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

    def _open(self) -> None:
        self._runner = TaskRunner()
        self.discrete = AsyncDiscrete(self._begin, self._runner)
        self.asynch = AsyncAsynch(self._begin, self._runner)

    async def models(self) -> ModelList:
        """List the models the server offers, how well they do, and the licence of the weights in use."""
        return await self._runner.run(operations.models(self._begin()))

    async def close(self) -> None:
        """Close the connections. A client that is used again opens new ones."""
        await self._runner.close()

    async def __aenter__(self) -> AsyncEmotionClient:
        """Use it in a `async with` block."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the connections at the end of the block."""
        await self.close()


class AsyncDiscrete:
    """Short recordings of 4 to 10 seconds, answered at once. Nothing is retried: the moment would be over."""

    def __init__(self, begin: Callable[[], Context], runner: TaskRunner) -> None:
        self._begin = begin
        self._runner = runner

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

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param samples: instead of a file, a numpy array: one dimension, or two for several channels; floats
            from -1 to 1 or whole numbers. 4.5 seconds of it are sent, from 0.5 s on. Needs numpy.
        :param sample_rate: the rate of the samples in hertz, 8000 to 192000
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :raises MissingFileError: the file is not there
        :raises MissingApiKeyError: there is no key
        :raises RequestFailedError: the service refused, or could not be reached
        """
        context = self._begin()
        return await self._runner.run(operations.discrete_emotions(context, file_path, samples, sample_rate, model))


class AsyncAsynch:
    """Long recordings: send one, then ask for its time line."""

    def __init__(self, begin: Callable[[], Context], runner: TaskRunner) -> None:
        self._begin = begin
        self._runner = runner

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

        When that cannot be done, or the task is cancelled, the service is told to forget what it has of it.

        :param file_path: the path of the audio file (or its bytes, or an open binary file)
        :param part_size: bytes of each part, 1 MiB to 100 MiB; the client's setting when absent
        :param max_retries: retries of each part, 0 to 100
        :param model: ``4emotions`` (the default), ``5emotions`` or ``7emotions``
        :param interval_seconds: seconds between two classifications (beta), 1 to 60; 5 when absent
        :param on_progress: called, in this loop, with a `Progress`
        :raises MissingFileError: the file is not there
        :raises MissingApiKeyError: there is no key
        :raises UploadFailedError: the recording did not get through
        """
        context = self._begin()
        size = context.config.part_size if part_size is None else part_size
        settings = operations.upload_settings(size, max_retries, model, interval_seconds)
        return await self._runner.run(operations.upload(context, file_path, settings, on_progress))

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
        :param on_progress: called, in this loop, with a `Progress`
        :raises InvalidRequestIdError: it is not a request_id, is unknown, or has expired
        :raises PredictionTimeoutError: the tries were used up; ask again with its ``request_id``
        :raises PredictionFailedError: the service could not make a time line; ``code`` says why
        """
        context = self._begin()
        settings = operations.poll_settings(max_tries, interval)
        return await self._runner.run(operations.emotions(context, request_id, settings, on_progress))

    async def classify(
        self,
        file_path: Recording,
        part_size: int | None = None,
        max_retries: int = default("max_retries"),
        *,
        max_tries: int | None = None,
        interval: int = default("interval"),
        model: str | None = None,
        interval_seconds: int | None = None,
        on_progress: ProgressListener | None = None,
    ) -> AsynchResult:
        """
        Send a recording and wait for its time line: until there is an end, unless `max_tries` is given.

        The parameters are those of `upload` and `emotions`.
        """
        context = self._begin()
        size = context.config.part_size if part_size is None else part_size
        sending = operations.upload_settings(size, max_retries, model, interval_seconds)
        asking = operations.poll_settings(max_tries, interval)
        return await self._runner.run(operations.classify(context, file_path, sending, asking, on_progress))

    async def delete(self, request_id: str) -> None:
        """Make the service forget a request now: its audio, its parts and its result."""
        await self._runner.run(operations.delete(self._begin(), request_id))
