"""Requests that the service knows, and tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from undertone_client import ConfigError, InvalidRequestIdError, PredictionFailedError, RequestFailedError

from .support.clients import scrambled
from .support.flaky_server import KEY, Fault

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.flaky_server import FlakyServer, Seen

RECORDING = scrambled(1000)
PROBLEM = {"content-type": "application/problem+json"}


def test_status_follows_a_request_without_raising(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.pending_polls = 1
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    running = twin.asynch.status(request_id)
    assert (running.request_id, running.status, running.progress) == (request_id, "processing", 0.5)
    assert not running.is_finished
    completed = twin.asynch.status(request_id)
    assert (completed.status, completed.progress, completed.error) == ("completed", 1, None)
    assert completed.is_finished
    twin.asynch.delete(request_id)
    expired = twin.asynch.status(request_id)
    assert (expired.status, expired.error, expired.is_finished) == ("expired", None, True)


def test_the_status_of_a_failed_request_says_why(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    body = json.dumps({"code": "audio_too_short", "detail": "It has 3 seconds.", "actual_seconds": 3}).encode()
    flaky.faults = lambda _seen: Fault("answer", status=422, headers=PROBLEM, body=body)
    failed = twin.asynch.status(request_id)
    assert (failed.status, failed.is_finished) == ("failed", True)
    assert isinstance(failed.error, PredictionFailedError)
    assert (failed.error.code, str(failed.error)) == ("audio_too_short", "It has 3 seconds.")


def test_the_status_of_an_unknown_request_raises(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**flaky.settings)
    with pytest.raises(InvalidRequestIdError):
        twin.asynch.status("0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10")
    with pytest.raises(InvalidRequestIdError):
        twin.asynch.status("not an ID")


def test_iter_requests_fetches_all_pages_as_needed(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    def page(seen: Seen) -> Fault:
        number = int(seen.query.get("cursor", "0"))
        item: dict[str, Any] = {"label": None, "status": "failed", "progress": 1, "created_at": "x", "expires_at": "x"}
        requests = [{**item, "request_id": f"{number}-{i}"} for i in range(2)]
        body = json.dumps({"requests": requests, "next_cursor": str(number + 1) if number < 2 else None})
        return Fault("answer", headers={"content-type": "application/json"}, body=body.encode())

    flaky.faults = page
    found = list(make_twin(**flaky.settings).asynch.iter_requests("failed"))
    assert [item.request_id for item in found] == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    assert [seen.query.get("cursor") for seen in flaky.seen] == [None, "1", "2"]
    assert {(seen.query["status"], seen.query["limit"]) for seen in flaky.seen} == {("failed", "200")}


def test_iter_requests_rejects_an_unknown_status(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    with pytest.raises(ConfigError, match="status is 'lost'"):
        list(make_twin(**flaky.settings).asynch.iter_requests("lost"))
    assert flaky.seen == []


def test_a_token_is_created_with_lifetime_and_scope_and_goes_where_a_key_goes(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**flaky.settings)
    token = twin.tokens.create(expires_in=60, scope="stream")
    assert token.to_dict() == {
        "token": "a.token",
        "expires_at": "2026-01-01T00:10:00.000Z",
        "scope": "stream",
    }
    assert "a.token" not in repr(token)
    assert twin.tokens.create().scope == "all"
    asked = [(seen.method, seen.url, json.loads(seen.body)) for seen in flaky.seen]
    url = f"{flaky.origin}/v1/tokens"
    assert asked == [
        ("POST", url, {"expires_in": 60, "scope": "stream"}),
        ("POST", url, {"expires_in": 600, "scope": "all"}),
    ]
    assert {seen.headers["x-api-key"] for seen in flaky.seen} == {KEY}
    with pytest.raises(RequestFailedError):  # this server does not know it
        make_twin(token.token, base_url=flaky.origin).discrete.emotions(RECORDING)
    assert flaky.seen[-1].headers["x-api-key"] == token.token


@pytest.mark.parametrize("settings", [{"expires_in": 59}, {"expires_in": 3601}, {"expires_in": 1.5}, {"scope": "x"}])
def test_invalid_token_settings_are_rejected(settings: dict[str, Any], flaky: FlakyServer, make_twin: MakeTwin) -> None:
    with pytest.raises(ConfigError):
        make_twin(**flaky.settings).tokens.create(**settings)
    assert flaky.seen == []
