"""The test cases shared by the clients of all languages."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import undertone_client
from undertone_client import (
    ConfigError,
    EmotionClient,
    InvalidRequestIdError,
    TimelineElement,
    UndertoneError,
    UploadFailedError,
)
from undertone_client import _retry as retry
from undertone_client._checks import NUMBERS
from undertone_client._failure import failing_as
from undertone_client._open_upload import StoredPart, is_etag_of, original_part_size, plan_parts
from undertone_client._poll import check_request_id
from undertone_client._source import base_name
from undertone_client._urls import join_url, models_url, with_query

from .support.clients import scrambled
from .support.flaky_server import Fault
from .support.real_server import ROOT

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.clients import Twin
    from .support.flaky_server import FlakyServer, Seen

CASES = json.loads((ROOT / "clients" / "cases.json").read_text(encoding="utf-8"))
EXAMPLE_ID = CASES["requestIds"]["example"]
SETTING_NAMES = {
    *(row["name"] for row in CASES["settings"]),
    *CASES["environment"],
    *("showProgress", "baseUrl", "webhookUrl", "webhookSecret"),
}

#: The kind of an error, which its class has besides that of the operation.
KINDS = {401: "AuthenticationError", 429: "RateLimitError"}


def named(row: dict[str, Any]) -> str:
    return str(row["name"])


def snake(name: str) -> str:
    """Convert the name of a setting to Python style; other words stay unchanged."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name) if name in SETTING_NAMES else name


def translated(settings: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in settings.items()}


def perform(twin: Twin, operation: str, request_id: str, **options: Any) -> Any:
    recording = scrambled(1000)
    if operation == "discrete.many":
        (outcome,) = twin.discrete.many([recording], **options)
        return outcome.result
    if operation == "asynch.resume":
        return twin.asynch.upload(recording, resume=request_id, **options)
    if operation == "models":
        return twin.models()
    name, method = operation.split(".")
    given: dict[str, list[Any]] = {
        "emotions": [recording if name == "discrete" else request_id],
        "upload": [recording],
        "submit": [recording],
        "delete": [request_id],
    }
    return getattr(getattr(twin, name), snake(method))(*given.get(method, []), **options)


def use_setting(make_twin: MakeTwin, settings: dict[str, Any], place: str, name: str, value: Any) -> Any:
    if place == "client":
        return make_twin(**{**settings, name: value}).asynch.emotions(EXAMPLE_ID)
    return perform(make_twin(**settings), place, EXAMPLE_ID, **{name: value})


@pytest.mark.parametrize("row", CASES["settings"], ids=named)
def test_a_setting_outside_its_range_is_rejected_before_anything_is_sent(
    row: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    name = snake(row["name"])
    assert NUMBERS[name].default == row["default"]
    for place in row["in"]:
        for value in row["accepts"]:
            # A valid setting leads to a request, whose ID may be unknown.
            with contextlib.suppress(InvalidRequestIdError):
                use_setting(make_twin, flaky.settings, place, name, value)
        before = len(flaky.seen)
        assert before > 0
        for value in row["refuses"]:
            with pytest.raises(ConfigError) as caught:
                use_setting(make_twin, flaky.settings, place, name, value)
            for words in row["messageContains"]:
                assert snake(words) in str(caught.value)
        assert len(flaky.seen) == before
    assert waits == []


def test_defaults_and_environment_variables(monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin) -> None:
    config = make_twin().client._config
    for name in {"showProgress", "baseUrl", "discreteUrl", "asynchUrl"} & CASES["defaults"].keys():
        assert getattr(config, snake(name)) == CASES["defaults"][name]
    tries = inspect.signature(EmotionClient("k").asynch.classify).parameters["max_tries"]
    assert tries.default is CASES["defaults"]["classifyMaxTries"]
    for variable in CASES["environment"].values():
        monkeypatch.setenv(variable, f"from {variable}")
    from_environment = make_twin().client._config
    for name, variable in CASES["environment"].items():
        assert getattr(from_environment, snake(name)) == f"from {variable}"


def test_endpoint_urls(monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin) -> None:
    for row in CASES["addresses"]:
        with monkeypatch.context() as patched:
            for variable, value in row["environment"].items():
                patched.setenv(variable, value)
            config = make_twin(**translated(row["options"])).client._config
        assert (config.discrete_url, config.asynch_url) == (row["discreteUrl"], row["asynchUrl"]), row["name"]


@pytest.mark.parametrize("row", CASES["config"], ids=named)
def test_validate_config(row: dict[str, Any], make_twin: MakeTwin) -> None:
    twin = make_twin(**translated(row["options"]))
    if not row["problems"]:
        twin.validate_config()
        return
    with pytest.raises(ConfigError) as caught:
        twin.validate_config()
    assert len(caught.value.problems) == len(row["problems"])
    for problem, words in zip(caught.value.problems, row["problems"]):
        for word in words:
            assert snake(word) in problem
    key = row["options"].get("apiKey")
    assert not key or key not in str(caught.value)


def test_retry_delay_and_retry_after() -> None:
    cases = CASES["backoff"]
    limits = (retry.FIRST_MS, retry.LONGEST_MS, retry.LONGEST_RETRY_AFTER_SECONDS)
    assert limits == (cases["firstMs"], cases["longestMs"], cases["longestRetryAfterSeconds"])
    for row in cases["delays"]:
        assert retry.retry_delay(row["retry"], row["random"], row.get("retryAfterSeconds")) == row["delayMs"]
    for row in cases["retryAfterHeaders"]:
        now = row.get("now", "2026-01-01T00:00:00.000Z").replace("Z", "+00:00")
        assert retry.parse_retry_after(row["header"], datetime.fromisoformat(now).timestamp()) == row["seconds"]
    assert set(cases["retryableStatuses"]) <= retry.ASYNCH_RETRIES.statuses
    assert not retry.ASYNCH_RETRIES.statuses & set(cases["finalStatuses"])


@pytest.mark.parametrize("row", CASES["backoff"]["schedules"], ids=named)
def test_retry_schedule(row: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]) -> None:
    known = make_twin(**flaky.settings).asynch.upload(scrambled(100))
    flaky.seen.clear()
    settings = translated(row["settings"])
    upload = {name: value for name, value in settings.items() if name == "max_retries"}
    client = {name: value for name, value in settings.items() if name != "max_retries"}

    def faults(seen: Seen) -> Fault | None:
        answer = row["answers"][min(seen.time, len(row["answers"]) - 1)]
        if seen.route != row["route"] or answer is None:
            return None
        if isinstance(answer, int):
            return Fault("answer", status=answer)
        return Fault("answer", status=answer["status"], headers={"retry-after": answer["retryAfter"]})

    flaky.faults = faults
    twin = make_twin(**flaky.settings, **client)
    if row["ends"] is None:
        perform(twin, row["operation"], known, **upload)
    else:
        with pytest.raises(getattr(undertone_client, row["ends"])):
            perform(twin, row["operation"], known, **upload)
    assert len(waits) == len(row["waits"])
    for wait, (least, most) in zip(waits, row["waits"]):
        assert least <= wait <= most
    assert len(flaky.calls(row["route"])) == len(row["waits"]) + 1


@pytest.mark.parametrize("row", CASES["errors"], ids=named)
def test_service_errors_map_to_client_errors(
    row: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    body, expected = row["body"], row["expect"]
    text = body if isinstance(body, str) else json.dumps(body)
    flaky.faults = lambda _seen: Fault("answer", status=row["status"], headers=row["headers"], body=text.encode())
    with pytest.raises(UndertoneError) as caught:
        perform(make_twin(**flaky.settings, retry_attempts=2), row["operation"], EXAMPLE_ID)
    error = caught.value
    names = [found.__name__ for found in type(error).__mro__]
    assert names[0] == KINDS.get(row["status"], expected["error"])
    assert expected["error"] in names
    assert (error.code, error.status, error.request_id) == (
        expected["code"],
        expected["status"],
        expected["requestId"],
    )
    assert expected["messageContains"] in str(error)
    assert "token=" not in str(error)
    if "retryAfterSeconds" in expected:
        assert error.retry_after_seconds == expected["retryAfterSeconds"]
    for name, value in expected.get("problem", {}).items():
        assert error.problem is not None
        assert error.problem[name] == value
    assert len(flaky.seen) == (3 if expected["retried"] else 1)
    assert len(waits) == (2 if expected["retried"] else 0)


@pytest.mark.parametrize("row", CASES["operations"], ids=lambda row: f"{row['operation']}: {row['name']}")
def test_requests_and_parsed_results_of_operations(
    row: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    if "answer" in row:
        body = json.dumps(row["answer"]["body"]).encode()
        headers = {"content-type": "application/json"}
        flaky.faults = lambda _seen: Fault("answer", status=row["answer"]["status"], headers=headers, body=body)
    got = perform(make_twin(**flaky.settings), row["operation"], EXAMPLE_ID, **translated(row["options"]))
    seen, call = flaky.seen[0], row["call"]
    assert (seen.method, urlsplit(seen.url).path, seen.query) == (call["method"], call["path"], call["query"])
    assert ("idempotency-key" in seen.headers) == call["hasIdempotencyKey"]
    if "result" in row:
        assert (got.to_dict() if hasattr(got, "to_dict") else got) == row["result"]


@pytest.mark.parametrize("row", CASES["refusals"], ids=lambda row: f"{row['operation']} {list(row['options'])}")
def test_invalid_options_are_rejected_before_anything_is_sent(
    row: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    with pytest.raises(ConfigError) as caught:
        perform(make_twin(**flaky.settings), row["operation"], EXAMPLE_ID, **translated(row["options"]))
    for words in row["messageContains"]:
        assert snake(words) in str(caught.value)
    assert flaky.seen == []


def test_inferred_part_size_of_an_interrupted_upload() -> None:
    for row in CASES["resume"]:
        stored = [StoredPart(number, "", size) for number, size in row["stored"]]
        found = original_part_size(row["size"], row["partCount"], stored, row["partSize"])
        assert found == row["begunWith"], row["name"]


def test_request_id_validation() -> None:
    for request_id in CASES["requestIds"]["accepts"]:
        check_request_id(request_id)
    for request_id in CASES["requestIds"]["refuses"]:
        with pytest.raises(InvalidRequestIdError):
            check_request_id(request_id)


def test_urls_and_file_names() -> None:
    urls = CASES["urls"]
    for row in urls["join"]:
        assert join_url(row["base"], row["path"], row["query"]) == row["url"]
    for row in urls["withQuery"]:
        assert with_query(row["address"], row["query"]) == row["url"]
    for row in urls["models"]:
        assert models_url(row["asynchUrl"]) == row["url"]
    for row in urls["fileNames"]:
        assert base_name(row["path"]) == row["name"]


@pytest.mark.parametrize("row", CASES["parts"], ids=lambda row: f"{row['size']} by {row['partSize']}")
def test_splitting_a_recording_into_parts(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(UndertoneError) as caught, failing_as(UploadFailedError):
            plan_parts(row["size"], row["partSize"])
        assert (type(caught.value).__name__, caught.value.code) == (row["error"], row["code"])
        return
    parts = plan_parts(row["size"], row["partSize"])
    assert len(parts) == row["count"]
    assert parts[-1].end - parts[-1].start == row["lastSize"]


def test_etags_and_timestamps() -> None:
    for row in CASES["etags"]:
        assert is_etag_of(row["etag"], row["md5"]) == row["matches"]
    for row in CASES["timestamps"]:
        assert TimelineElement(row["t"], "happy", 1).seconds == row["seconds"]
