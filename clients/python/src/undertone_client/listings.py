"""What the service lists and creates besides results: requests, models, tokens."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ._optional import optional
from ._parse import number, optional_field, text, word

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from .errors import UndertoneError
    from .literals import RequestState, TokenScope


@dataclass(frozen=True)
class RequestSummary:
    """One long recording in a `RequestList`."""

    request_id: str
    #: Your own name for it.
    label: str | None
    #: ``uploading``, ``queued``, ``processing``, ``completed``, ``failed`` or ``expired``.
    status: RequestState
    #: Progress within the current status, 0 to 1.
    progress: float
    #: ISO 8601.
    created_at: str
    expires_at: str
    #: None until the recording has been read.
    duration_seconds: float | None


@dataclass(frozen=True)
class RequestStatus:
    """The status of one long recording."""

    request_id: str
    #: ``uploading``, ``queued``, ``processing``, ``completed``, ``failed`` or ``expired``.
    status: RequestState
    #: Progress within the current status, 0 to 1.
    progress: float
    #: If it has failed: why.
    error: UndertoneError | None

    @property
    def is_finished(self) -> bool:
        """Whether the status will not change any more, except by expiring."""
        return self.status in ("completed", "failed", "expired")


@dataclass(frozen=True)
class RequestList:
    """One page of the requests of a key, newest first."""

    requests: tuple[RequestSummary, ...]
    #: Pass it as `cursor` to get the next page; None on the last page.
    next_cursor: str | None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RequestList:
        """Read the service's JSON."""
        requests = tuple(
            RequestSummary(
                text(item["request_id"]),
                optional_field(text, item, "label"),
                word(item["status"]),
                number(item["progress"]),
                text(item["created_at"]),
                text(item["expires_at"]),
                optional_field(number, item, "duration_seconds"),
            )
            for item in value["requests"]
        )
        return cls(requests, optional_field(text, value, "next_cursor"))

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        return {"requests": [dict(vars(item)) for item in self.requests], "next_cursor": self.next_cursor}

    def to_dataframe(self) -> pd.DataFrame:
        """Return a table with one row per request. Needs pandas."""
        columns = [column.name for column in fields(RequestSummary)]
        rows = [vars(item) for item in self.requests]
        return optional("pandas", "to_dataframe").DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class Weights:
    """The weights behind the models of a server, and what their licence allows."""

    id: str
    licence: str
    commercial_use: bool
    summary: str


@dataclass(frozen=True)
class Model:
    """A model of a server."""

    id: str
    #: Whether this model is used when a request names none.
    default: bool
    emotions: tuple[str, ...]
    #: Measured on speakers it was not trained on: uar, accuracy, macro_f1, ece, split.
    figures: dict[str, Any] | None


@dataclass(frozen=True)
class ModelList:
    """The models of a server and the weights behind them."""

    version: str
    weights: Weights
    models: tuple[Model, ...]

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ModelList:
        """Read the service's JSON."""
        weights = value["weights"]
        return cls(
            value["version"],
            Weights(weights["id"], weights["licence"], weights["commercial_use"], weights["summary"]),
            tuple(
                Model(item["id"], item["default"], tuple(item["emotions"]), item["figures"]) for item in value["models"]
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        models = [{**vars(model), "emotions": list(model.emotions)} for model in self.models]
        return {"version": self.version, "weights": dict(vars(self.weights)), "models": models}


@dataclass(frozen=True)
class Token:
    """A short-lived credential, used like an API key. It is left out of `repr`, which often ends up in logs."""

    token: str = field(repr=False)
    #: ISO 8601.
    expires_at: str
    #: ``discrete``, ``stream`` or ``all``.
    scope: TokenScope

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Token:
        """Read the service's JSON."""
        return cls(text(value["token"]), text(value["expires_at"]), word(value["scope"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        return dict(vars(self))
