"""What the service answers, as typed objects; `to_dict` gives plain dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._optional import optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

#: Callers are advised to drop an emotion whose confidence is lower than this.
CONFIDENCE_FLOOR = 0.38


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

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DiscreteResult:
        """Read the service's JSON."""
        predictions = {_text(name): _number(share) for name, share in value["all_predictions"].items()}
        speech = value.get("speech_seconds")
        return cls(
            _text(value["main_emotion"]),
            _number(value["confidence"]),
            predictions,
            None if speech is None else _number(speech),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON, with `speech_seconds` where they are known."""
        return {
            "main_emotion": self.main_emotion,
            "confidence": self.confidence,
            "all_predictions": dict(self.all_predictions),
            **({} if self.speech_seconds is None else {"speech_seconds": self.speech_seconds}),
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Give a table of emotions and confidences, the most confident first. Needs pandas."""
        ranked = sorted(self.all_predictions.items(), key=lambda item: -item[1])
        return optional("pandas", "to_dataframe").DataFrame(ranked, columns=["emotion", "confidence"])

    def _repr_html_(self) -> str:
        """Draw bars in a notebook."""
        from ._html import predictions_html

        return predictions_html(self)


@dataclass(frozen=True)
class TimelineElement:
    """The emotion of one step of a long recording."""

    #: Minutes and seconds from the start, as in ``00:05``; minutes count on past 99.
    t: str
    #: The emotion with the highest confidence.
    emotion: str
    #: Under 0.38 you may want to drop the element.
    confidence: float

    @property
    def seconds(self) -> int:
        """Seconds from the start of the recording to the start of this step."""
        minutes, seconds = self.t.split(":")
        return int(minutes) * 60 + int(seconds)

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        return {"t": self.t, "emotion": self.emotion, "confidence": self.confidence}


@dataclass(frozen=True)
class AsynchResult:
    """The time line of one long recording. In a notebook it draws itself."""

    request_id: str
    #: Always ``completed``: anything else is an error.
    status: str
    #: One element for each step, in order.
    emotions: tuple[TimelineElement, ...]

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> AsynchResult:
        """Read the service's JSON."""
        elements = tuple(
            TimelineElement(_text(item["t"]), _text(item["emotion"]), _number(item["confidence"]))
            for item in value["emotions"]
        )
        for element in elements:
            _ = element.seconds  # an invalid time stamp is found here, not when it is drawn
        return cls(_text(value["request_id"]), _text(value["status"]), elements)

    def to_dict(self) -> dict[str, Any]:
        """Give the service's JSON."""
        return {
            "request_id": self.request_id,
            "status": self.status,
            "emotions": [element.to_dict() for element in self.emotions],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Give a table with a row for each step: t, seconds, emotion, confidence. Needs pandas."""
        rows = [(item.t, item.seconds, item.emotion, item.confidence) for item in self.emotions]
        columns = ["t", "seconds", "emotion", "confidence"]
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


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TypeError
