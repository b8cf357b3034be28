"""Webhooks: signed by another implementation of the specification, verified by this client."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from undertone_client import ConfigError, UndertoneError, WebhookVerificationError, webhooks

SECRET = "whsec_" + base64.b64encode(b"a secret of the service").decode()
OTHER = "whsec_" + base64.b64encode(b"another secret").decode()
EVENT: dict[str, Any] = {
    "type": "request.completed",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "data": {"request_id": "r-1", "label": "call 7", "status": "completed"},
}


def signed(body: str, secret: str = SECRET, age: float = 0) -> dict[str, str]:
    sent = datetime.now(timezone.utc) - timedelta(seconds=age)
    signature = Webhook(secret).sign("msg_1", sent, body)
    return {
        "Webhook-Id": "msg_1",
        "webhook-timestamp": str(int(sent.timestamp())),
        "WEBHOOK-SIGNATURE": signature,
        "content-type": "application/json",
    }


@pytest.mark.parametrize("kind", ["completed", "failed", "expired"])
def test_a_signed_webhook_is_returned_as_a_typed_event(kind: str) -> None:
    data = {"request_id": "r-1", "label": None, "status": kind}
    body = json.dumps({**EVENT, "type": f"request.{kind}", "data": data})
    event = webhooks.verify(body.encode(), signed(body), SECRET)
    assert (event.id, event.type, event.timestamp) == ("msg_1", f"request.{kind}", EVENT["timestamp"])
    assert (event.data.request_id, event.data.label, event.data.status) == ("r-1", None, kind)
    assert webhooks.verify(body, signed(body), SECRET) == event


def test_one_right_signature_among_several_is_enough() -> None:
    body = json.dumps(EVENT)
    headers = signed(body)
    headers["WEBHOOK-SIGNATURE"] = f"v1a,AAAA v1,not-base64 v1,{'A' * 43}= {headers['WEBHOOK-SIGNATURE']}"
    assert webhooks.verify(body, headers, SECRET).data.label == "call 7"


@pytest.mark.parametrize(
    ("body", "changes", "secret", "code"),
    [
        ('{"type": "request.failed"}', {}, SECRET, "invalid_signature"),
        (None, {}, OTHER, "invalid_signature"),
        (None, {"Webhook-Id": "msg_2"}, SECRET, "invalid_signature"),
        (None, {"webhook-timestamp": "1"}, SECRET, "invalid_signature"),
        (None, {"webhook-timestamp": ""}, SECRET, "invalid_signature"),
        (None, {"WEBHOOK-SIGNATURE": "v2,AAAA"}, SECRET, "invalid_signature"),
        (None, {"WEBHOOK-SIGNATURE": ""}, SECRET, "invalid_signature"),
    ],
)
def test_anything_else_is_rejected(body: str | None, changes: dict[str, str], secret: str, code: str) -> None:
    given = json.dumps(EVENT)
    with pytest.raises(WebhookVerificationError) as caught:
        webhooks.verify(body or given, {**signed(given), **changes}, secret)
    assert isinstance(caught.value, UndertoneError)
    assert caught.value.code == code


@pytest.mark.parametrize("age", [301, -310])
def test_an_old_webhook_or_one_from_the_future_is_rejected(age: float) -> None:
    body = json.dumps(EVENT)
    with pytest.raises(WebhookVerificationError, match="5 minutes") as caught:
        webhooks.verify(body, signed(body, age=age), SECRET)
    assert caught.value.code == "wrong_time"
    assert webhooks.verify(body, signed(body, age=280), SECRET)


@pytest.mark.parametrize("body", ["[]", "{}", '"text"', json.dumps({**EVENT, "type": "request.other"}), "not JSON"])
def test_a_signed_body_that_is_not_an_event_is_rejected(body: str) -> None:
    with pytest.raises(WebhookVerificationError, match="Update this package") as caught:
        webhooks.verify(body, signed(body), SECRET)
    assert caught.value.code == "invalid_event"


@pytest.mark.parametrize("secret", ["whsec_?", None, 7])
def test_an_invalid_secret_is_rejected(secret: Any) -> None:
    body = json.dumps(EVENT)
    with pytest.raises(ConfigError, match="starts with whsec_"):
        webhooks.verify(body, signed(body), secret)
