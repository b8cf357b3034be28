"""Verifies webhooks, which follow the Standard Webhooks specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from ._parse import optional_field, text
from .errors import ConfigError, WebhookVerificationError
from .literals import EventType, RequestState

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "whsec_"
_TOLERANCE_SECONDS = 5 * 60


@dataclass(frozen=True)
class WebhookData:
    """The request that a webhook is about."""

    request_id: str
    #: Your own name for it.
    label: str | None
    status: RequestState


@dataclass(frozen=True)
class WebhookEvent:
    """A verified webhook."""

    #: The same for every delivery of one event: use it to ignore repetitions.
    id: str
    #: ``request.completed``, ``request.failed`` or ``request.expired``.
    type: EventType
    #: When it happened, ISO 8601.
    timestamp: str
    data: WebhookData


def verify(body: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """
    Check who sent a webhook and return its event.

    :param body: the body of the request exactly as it arrived
    :param headers: the headers of the request; their case does not matter
    :param secret: from `asynch.webhook_secret`
    :raises WebhookVerificationError: the signature is wrong or missing, or older than 5 minutes
    """
    raw = body.encode() if isinstance(body, str) else bytes(body)
    named = {str(name).lower(): value for name, value in headers.items()}
    event_id, sent_at = _header(named, "webhook-id"), _header(named, "webhook-timestamp")
    signed = b".".join([event_id.encode(), sent_at.encode(), raw])
    ours = hmac.new(_key_of(secret), signed, hashlib.sha256).digest()
    # A secret that is being replaced signs with both, separated by spaces.
    signatures = _header(named, "webhook-signature").split()
    if not any(_matches(signature, ours) for signature in signatures):
        raise WebhookVerificationError(
            "The signature of this webhook is wrong. Check that the secret is this key's own, and that the body is "
            "passed on unchanged.",
            code="invalid_signature",
        )
    _check_time(sent_at)
    return _read(event_id, raw)


def _key_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (AttributeError, TypeError, ValueError):
        raise ConfigError(f"secret is not valid: give the one that starts with {_PREFIX}.") from None


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if isinstance(value, str) and value:
        return value
    raise WebhookVerificationError(f"The header {name} is missing: this is not a webhook.", code="invalid_signature")


def _matches(signature: str, ours: bytes) -> bool:
    version, _, encoded = signature.partition(",")
    try:
        return version == "v1" and hmac.compare_digest(base64.b64decode(encoded, validate=True), ours)
    except ValueError:
        return False


def _check_time(sent_at: str) -> None:
    """Refuse a webhook that was recorded and is sent again."""
    age = time.time() - int(sent_at) if sent_at.isascii() and sent_at.isdigit() else float("inf")
    if abs(age) > _TOLERANCE_SECONDS:
        raise WebhookVerificationError(
            "This webhook is more than 5 minutes old or from the future. Check the clock of this machine.",
            code="wrong_time",
        )


def _read(event_id: str, raw: bytes) -> WebhookEvent:
    try:
        value: dict[str, Any] = json.loads(raw)
        data = value["data"]
        status = _one_of(get_args(RequestState), data["status"])
        about = WebhookData(text(data["request_id"]), optional_field(text, data, "label"), status)
        return WebhookEvent(event_id, _one_of(get_args(EventType), value["type"]), text(value["timestamp"]), about)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise WebhookVerificationError(
            "This webhook is signed correctly, but its content is not known here. Update this package.",
            code="invalid_event",
        ) from None


def _one_of(known: tuple[Any, ...], value: Any) -> Any:
    return known[known.index(value)]
