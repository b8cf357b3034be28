"""Every operation of the client, once for both of its forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ._answers import read_json
from ._checks import model_problem, number_problem, raise_if_any
from ._failure import Failure, failing_as
from ._poll import PollSettings, check_request_id, poll_result
from ._progress import Reporter
from ._samples import prepare_samples
from ._source import ASYNCH_MAX_BYTES, open_source, read_whole
from ._steps import Send, Steps, do
from ._upload import UploadSettings, upload_source
from ._urls import join_url, models_url, with_query
from .errors import (
    InvalidRequestIdError,
    PredictionFailedError,
    RequestFailedError,
    UploadFailedError,
)
from .results import AsynchResult, DiscreteResult, ModelList

if TYPE_CHECKING:
    from ._calls import Context
    from ._failure import ErrorClass
    from ._progress import ProgressListener
    from ._source import Recording

_GONE = (404, 410)
_UNPROCESSABLE = 422


def discrete_emotions(
    context: Context,
    file_path: Recording | None,
    samples: Any,
    sample_rate: int | None,
    model: str | None,
) -> Steps[DiscreteResult]:
    """Classify one short recording. Nothing is retried: the moment would be over."""
    raise_if_any([model_problem(model), _input_problem(file_path, samples, sample_rate)])
    url = with_query(context.config.discrete_url, {"model": model})
    with failing_as(RequestFailedError):
        if samples is None:
            assert file_path is not None  # noqa: S101 - told to the type checker; checked above
            recording = file_path
            request = Send("POST", url, file=(yield from do(lambda: read_whole(recording))))
        else:
            body = yield from do(lambda: _payload(prepare_samples(samples, sample_rate)))
            request = Send("POST", url, {"content-type": "application/json"}, content=body)
        answer = yield from context.call(request)
        return read_json(answer, url, DiscreteResult.from_dict)


def upload(
    context: Context, file_path: Recording, settings: UploadSettings, listener: ProgressListener | None
) -> Steps[str]:
    """Send a long recording."""
    with failing_as(UploadFailedError):
        source = yield from do(lambda: open_source(file_path, ASYNCH_MAX_BYTES))
        reporter = Reporter(listener, show=context.config.show_progress)
        try:
            return (yield from upload_source(context, source, settings, reporter))
        finally:
            reporter.end()
            source.close()


def emotions(
    context: Context, request_id: str, settings: PollSettings, listener: ProgressListener | None
) -> Steps[AsynchResult]:
    """Wait for a result."""
    check_request_id(request_id)
    with failing_as(_of_request, request_id):
        reporter = Reporter(listener, show=context.config.show_progress)
        try:
            return (yield from poll_result(context, request_id, settings, reporter))
        finally:
            reporter.end()


def classify(
    context: Context,
    file_path: Recording,
    sending: UploadSettings,
    asking: PollSettings,
    listener: ProgressListener | None,
) -> Steps[AsynchResult]:
    """Send a long recording and wait for its result."""
    request_id = yield from upload(context, file_path, sending, listener)
    return (yield from emotions(context, request_id, asking, listener))


def delete(context: Context, request_id: str) -> Steps[None]:
    """Make the service forget a request."""
    check_request_id(request_id)
    url = join_url(context.config.asynch_url, f"/requests/{request_id}")
    with failing_as(_of_request, request_id):
        yield from context.call_patiently("Deleting the request", Send("DELETE", url))


def models(context: Context) -> Steps[ModelList]:
    """List the models."""
    url = models_url(context.config.asynch_url)
    with failing_as(RequestFailedError):
        answer = yield from context.call_patiently("Listing the models", Send("GET", url))
        return read_json(answer, url, ModelList.from_dict)


def upload_settings(
    part_size: int, max_retries: int, model: str | None, interval_seconds: int | None
) -> UploadSettings:
    """Check how a recording is to be sent."""
    raise_if_any(
        [
            number_problem("part_size", part_size),
            number_problem("max_retries", max_retries),
            model_problem(model),
            None if interval_seconds is None else number_problem("interval_seconds", interval_seconds),
        ]
    )
    return UploadSettings(part_size, max_retries, model, interval_seconds)


def poll_settings(max_tries: int | None, interval: int) -> PollSettings:
    """Check how a result is to be waited for."""
    raise_if_any(
        [
            None if max_tries is None else number_problem("max_tries", max_tries),
            number_problem("interval", interval),
        ]
    )
    return PollSettings(max_tries, interval)


def _input_problem(file_path: Any, samples: Any, sample_rate: Any) -> str | None:
    if (file_path is None) == (samples is None):
        return "Give either file_path or samples."
    if samples is None and sample_rate is not None:
        return "sample_rate goes with samples: a file tells its own."
    if samples is not None and sample_rate is None:
        return "Say the sample_rate of the samples, in hertz."
    return None


def _payload(prepared: Any) -> bytes:
    """Write samples in the documented form: a JSON string that holds a JSON object."""
    # Seven places are finer than 24 bits, and a third of what all digits would take.
    numbers = [round(number, 7) for number in prepared.tolist()]
    return json.dumps(json.dumps({"payload": [numbers]})).encode()


def _of_request(failure: Failure) -> ErrorClass:
    """Tell what a refusal means for somebody who asked about a request."""
    status = failure.details.get("status")
    if status in _GONE:
        return InvalidRequestIdError
    return PredictionFailedError if status == _UNPROCESSABLE else RequestFailedError
