"""What the service answers, as typed objects; `to_dict` gives plain dicts."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._optional import optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from .errors import UndertoneError

T = TypeVar("T")

#: Callers are advised to drop an emotion whose confidence is lower than this.
CONFIDENCE_FLOOR = 0.38

#: What a recording or a step with less than `MIN_SPEECH_SECONDS` of speech is called; its emotion means nothing.
NO_SPEECH = "no speech"
MIN_SPEECH_SECONDS = 0.5


@dataclass(frozen=True)
class DiscreteResult:
    """The answer for one short recording."""

    #: The emotion with the highest confidence.
    main_emotion: str
    #: The confidence of `main_emotion`. Under 0.38 you may want to drop it.
    confidence: float
    #: The confidence of every emotion of the model; together they make 1.
    all_predictions: Mapping[str, float]
    #: How many seconds of the recording are speech; None where the server did not say.
    speech_seconds: float | None = None
    #: With `details`: the model that answered, its weights, the length, and the HTTP request.
    model: str | None = None
    weights: str | None = None
    duration_seconds: float | None = None
    request_id: str | None = None

    @property
    def heard(self) -> str:
        """The main emotion, or ``no speech`` where nobody speaks."""
        is_silent = self.speech_seconds is not None and self.speech_seconds < MIN_SPEECH_SECONDS
        return NO_SPEECH if is_silent else self.main_emotion

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DiscreteResult:
        """Read the service's JSON."""
        return cls(
            _text(value["main_emotion"]),
            _number(value["confidence"]),
            _predictions(value["all_predictions"]),
            _maybe(_number, value, "speech_seconds"),
            _maybe(_text, value, "model"),
            _maybe(_text, value, "weights"),
            _maybe(_number, value, "duration_seconds"),
            _maybe(_text, value, "request_id"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON, with `speech_seconds` and the details where they are known."""
        return _known(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Give a table of emotions and confidences, the most confident first. Needs pandas."""
        ranked = sorted(self.all_predictions.items(), key=lambda item: -item[1])
        return optional("pandas", "to_dataframe").DataFrame(ranked, columns=["emotion", "confidence"])

    def _repr_html_(self) -> str:
        """Draw bars in a notebook."""
        from ._html import predictions_html

        return predictions_html(self)


@dataclass(frozen=True)
class Outcome:
    """What came of one of many recordings: its result, or why there is none."""

    #: What was given for it.
    file: Any
    result: DiscreteResult | None
    error: UndertoneError | None


@dataclass(frozen=True)
class TimelineElement:
    """The emotion of one step of a long recording. From `start` on: with details, otherwise None."""

    #: Minutes and seconds from the start, as in ``00:05``; minutes count on past 99.
    t: str
    #: The emotion with the highest confidence.
    emotion: str
    #: Under 0.38 you may want to drop the element.
    confidence: float
    #: With ``channels="separate"``: the channel it was heard in, from 0.
    channel: int | None = None
    #: Where the step begins and ends, in seconds.
    start: float | None = None
    end: float | None = None
    #: How much of the step is speech.
    speech_seconds: float | None = None
    #: False means that there is no speech, and then the emotion means nothing.
    speech: bool | None = None
    #: The confidence of every emotion of the model.
    all_predictions: Mapping[str, float] | None = None

    @property
    def seconds(self) -> int:
        """Seconds from the start of the recording to the start of this step."""
        minutes, seconds = self.t.split(":")
        return int(minutes) * 60 + int(seconds)

    @property
    def heard(self) -> str:
        """The emotion, or ``no speech`` where nobody speaks."""
        return NO_SPEECH if self.speech is False else self.emotion

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TimelineElement:
        """Read the service's JSON."""
        element = cls(
            _text(value["t"]),
            _text(value["emotion"]),
            _number(value["confidence"]),
            _maybe(operator.index, value, "channel"),
            _maybe(_number, value, "start"),
            _maybe(_number, value, "end"),
            _maybe(_number, value, "speech_seconds"),
            _maybe(bool, value, "speech"),
            _maybe(_predictions, value, "all_predictions"),
        )
        _ = element.seconds  # an invalid time stamp is found here, not when it is drawn
        return element

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        return _known(self)


@dataclass(frozen=True)
class Segment:
    """Neighbouring steps of one channel with one emotion, joined."""

    #: 0 where channels were mixed.
    channel: int
    #: Seconds from the start of the recording.
    start: float
    end: float
    #: None: no speech.
    emotion: str | None
    #: The mean over its steps.
    confidence: float
    speech_seconds: float

    @property
    def heard(self) -> str:
        """The emotion, or ``no speech`` where nobody speaks."""
        return self.emotion or NO_SPEECH

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Segment:
        """Read the service's JSON."""
        numbers = [_number(value[name]) for name in ("start", "end", "confidence", "speech_seconds")]
        start, end, confidence, speech_seconds = numbers
        emotion = _maybe(_text, value, "emotion")
        return cls(operator.index(value["channel"]), start, end, emotion, confidence, speech_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class AsynchResult:
    """The time line of one long recording. In a notebook it draws itself. From `model` on: with details."""

    request_id: str
    #: Always ``completed``: anything else is an error.
    status: str
    #: One element for each step, ordered by time, then channel.
    emotions: tuple[TimelineElement, ...]
    model: str | None = None
    weights: str | None = None
    #: How long the recording is.
    duration_seconds: float | None = None
    #: When this result is erased, ISO 8601.
    expires_at: str | None = None
    segments: tuple[Segment, ...] | None = None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> AsynchResult:
        """Read the service's JSON."""
        segments = value.get("segments")
        return cls(
            _text(value["request_id"]),
            _text(value["status"]),
            tuple(TimelineElement.from_dict(item) for item in value["emotions"]),
            _maybe(_text, value, "model"),
            _maybe(_text, value, "weights"),
            _maybe(_number, value, "duration_seconds"),
            _maybe(_text, value, "expires_at"),
            None if segments is None else tuple(Segment.from_dict(item) for item in segments),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        known = _known(self)
        for name in ("emotions", "segments"):
            if name in known:
                known[name] = [item.to_dict() for item in known[name]]
        return known

    def shares(self) -> dict[str, float]:
        """Give the share of the steps each emotion has, the largest first; steps without speech are ``no speech``."""
        counts = Counter(element.heard for element in self.emotions)
        return {heard: count / len(self.emotions) for heard, count in counts.most_common()}

    def to_dataframe(self) -> pd.DataFrame:
        """
        Give a table with a row for each step: t, seconds, emotion, confidence. Needs pandas.

        The emotion of a step without speech is ``no speech``. With details there are also start, end,
        speech_seconds, speech and a column for each emotion; with separate channels there is channel.
        """
        names = ["channel", "start", "end", "speech_seconds", "speech"]
        present = [name for name in names if any(getattr(item, name) is not None for item in self.emotions)]
        rows = [
            {
                "t": item.t,
                "seconds": item.seconds,
                "emotion": item.heard,
                "confidence": item.confidence,
                **{name: getattr(item, name) for name in present},
                **(item.all_predictions or {}),
            }
            for item in self.emotions
        ]
        columns = None if rows else ["t", "seconds", "emotion", "confidence"]
        return optional("pandas", "to_dataframe").DataFrame(rows, columns=columns)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the time line with matplotlib, onto `ax` or a new figure, and return the axes."""
        from ._plot import plot_timeline

        return plot_timeline(self, ax)

    def _repr_html_(self) -> str:
        """Draw the time line in a notebook."""
        from ._html import timeline_html

        return timeline_html(self)


@dataclass(frozen=True)
class StreamPrediction:
    """The emotion in the last 5 seconds of one channel of a stream."""

    #: Minutes and seconds of `start`.
    t: str
    #: Where the window begins and ends, in seconds of what was written.
    start: float
    end: float
    channel: int
    main_emotion: str
    #: Under 0.38 you may want to drop the prediction.
    confidence: float
    all_predictions: Mapping[str, float]
    #: How much of the window is speech.
    speech_seconds: float

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], offset: float = 0) -> StreamPrediction:
        """Read the service's JSON; `offset` seconds were written before this connection was made."""
        start = _number(value["start"]) + offset
        return cls(
            f"{int(start // 60):02}:{int(start % 60):02}",
            start,
            _number(value["end"]) + offset,
            int(_number(value["channel"])),
            _text(value["main_emotion"]),
            _number(value["confidence"]),
            {_text(name): _number(share) for name, share in value["all_predictions"].items()},
            _number(value["speech_seconds"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        return {**vars(self), "all_predictions": dict(self.all_predictions)}


@dataclass(frozen=True)
class RequestSummary:
    """One long recording in the list of them."""

    request_id: str
    #: Your own name for it.
    label: str | None
    #: ``uploading``, ``queued``, ``processing``, ``completed``, ``failed`` or ``expired``.
    status: str
    #: The share of the present status that is done, 0 to 1.
    progress: float
    #: ISO 8601.
    created_at: str
    expires_at: str
    #: None until the recording has been read.
    duration_seconds: float | None


@dataclass(frozen=True)
class RequestList:
    """The requests of a key, newest first."""

    requests: tuple[RequestSummary, ...]
    #: Give it as `cursor` for the next page; None on the last one.
    next_cursor: str | None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RequestList:
        """Read the service's JSON."""
        requests = tuple(
            RequestSummary(
                _text(item["request_id"]),
                _maybe(_text, item, "label"),
                _text(item["status"]),
                _number(item["progress"]),
                _text(item["created_at"]),
                _text(item["expires_at"]),
                _maybe(_number, item, "duration_seconds"),
            )
            for item in value["requests"]
        )
        return cls(requests, _maybe(_text, value, "next_cursor"))

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        return {"requests": [dict(vars(item)) for item in self.requests], "next_cursor": self.next_cursor}

    def to_dataframe(self) -> pd.DataFrame:
        """Give a table with a row for each request. Needs pandas."""
        columns = [field.name for field in fields(RequestSummary)]
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
    """A model a server offers."""

    id: str
    #: Whether this model answers when none is named.
    default: bool
    emotions: tuple[str, ...]
    #: Measured on speakers it was not trained on: uar, accuracy, macro_f1, ece, split.
    figures: dict[str, Any] | None


@dataclass(frozen=True)
class ModelList:
    """The models a server offers and the weights behind them."""

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
        """Give the service's JSON."""
        models = [{**vars(model), "emotions": list(model.emotions)} for model in self.models]
        return {"version": self.version, "weights": dict(vars(self.weights)), "models": models}


def _known(result: Any) -> dict[str, Any]:
    """Give the fields of a result that are known, as plain values."""
    pairs = ((field.name, getattr(result, field.name)) for field in fields(result))
    return {name: dict(value) if name == "all_predictions" else value for name, value in pairs if value is not None}


def _maybe(read: Callable[[Any], T], value: Mapping[str, Any], name: str) -> T | None:
    """Read a field that may be absent or null."""
    return None if value.get(name) is None else read(value[name])


def _predictions(value: Mapping[str, Any]) -> dict[str, float]:
    return {_text(name): _number(share) for name, share in value.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TypeError
