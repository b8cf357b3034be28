"""The results of classification as typed objects: as dicts, as tables, and drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

from ._html import predictions_html, timeline_html
from ._optional import optional
from ._parse import known_fields, number, optional_field, predictions, text, word
from ._plot import plot_timeline
from .timeline import MIN_SPEECH_SECONDS, NO_SPEECH, Segment, TimelineElement

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from .errors import UndertoneError
    from .literals import Emotion, EmotionOrNoSpeech, ModelName
    from .timeline import DetailedTimelineElement


@dataclass(frozen=True)
class DiscreteResult:
    """The emotion of one short recording."""

    #: The emotion with the highest confidence.
    main_emotion: Emotion
    #: The confidence of `main_emotion`. Consider dropping results under 0.38.
    confidence: float
    #: The confidence of every emotion of the model; they add up to 1.
    all_predictions: Mapping[str, float]
    #: Seconds of speech in the recording; None if the server did not say.
    speech_seconds: float | None = None
    #: With `details`: the model, its weights, the length of the recording, and the ID of the HTTP request.
    model: ModelName | None = None
    weights: str | None = None
    duration_seconds: float | None = None
    request_id: str | None = None

    @property
    def heard(self) -> EmotionOrNoSpeech:
        """The main emotion, or ``no speech``."""
        is_silent = self.speech_seconds is not None and self.speech_seconds < MIN_SPEECH_SECONDS
        return NO_SPEECH if is_silent else self.main_emotion

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DiscreteResult:
        """Read the service's JSON."""
        return cls(
            word(value["main_emotion"]),
            number(value["confidence"]),
            predictions(value["all_predictions"]),
            optional_field(number, value, "speech_seconds"),
            optional_field(word, value, "model"),
            optional_field(text, value, "weights"),
            optional_field(number, value, "duration_seconds"),
            optional_field(text, value, "request_id"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON, with `speech_seconds` and the details if known."""
        return known_fields(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Return a table of emotions and confidences, highest first. Needs pandas."""
        ranked = sorted(self.all_predictions.items(), key=lambda item: -item[1])
        return optional("pandas", "to_dataframe").DataFrame(ranked, columns=["emotion", "confidence"])

    def _repr_html_(self) -> str:
        if self.heard == NO_SPEECH:
            return predictions_html(self.all_predictions, "No speech: the confidences have no meaning.")
        caption = f"Main emotion: {self.main_emotion}, confidence {self.confidence:.2f}."
        return predictions_html(self.all_predictions, caption)


if TYPE_CHECKING:

    class DetailedDiscreteResult(DiscreteResult):
        """A result with `details`, which are then never None."""

        speech_seconds: float
        model: ModelName
        weights: str
        duration_seconds: float
        request_id: str

else:
    DetailedDiscreteResult = DiscreteResult


@dataclass(frozen=True)
class Classified:
    """A recording of a batch, and its result."""

    #: The recording, as it was passed in.
    file: Any
    result: DiscreteResult
    error: None = None
    #: The position of the recording in the batch, from 0.
    index: int = 0


@dataclass(frozen=True)
class Refused:
    """A recording of a batch that could not be classified, and why."""

    #: The recording, as it was passed in.
    file: Any
    error: UndertoneError
    result: None = None
    #: The position of the recording in the batch, from 0.
    index: int = 0


#: One recording of a batch. `error` is None if it has a `result`, and type checkers know that.
Outcome = Union[Classified, Refused]


@dataclass(frozen=True)
class AsynchResult:
    """The timeline of one long recording. Draws itself in a notebook. From `model` on: None without details."""

    request_id: str
    #: Always ``completed``: anything else is an error.
    status: Literal["completed"]
    #: One element per step, ordered by time, then channel.
    emotions: tuple[TimelineElement, ...]
    model: ModelName | None = None
    weights: str | None = None
    #: Length of the recording.
    duration_seconds: float | None = None
    #: When the server deletes this result, ISO 8601.
    expires_at: str | None = None
    segments: tuple[Segment, ...] | None = None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> AsynchResult:
        """Read the service's JSON."""
        segments = value.get("segments")
        return cls(
            text(value["request_id"]),
            word(value["status"]),
            tuple(TimelineElement.from_dict(item) for item in value["emotions"]),
            optional_field(word, value, "model"),
            optional_field(text, value, "weights"),
            optional_field(number, value, "duration_seconds"),
            optional_field(text, value, "expires_at"),
            None if segments is None else tuple(Segment.from_dict(item) for item in segments),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        known = known_fields(self)
        for name in ("emotions", "segments"):
            if name in known:
                known[name] = [item.to_dict() for item in known[name]]
        return known

    def shares(self) -> dict[str, float]:
        """Return each emotion's share of the steps, largest first; steps without speech count as ``no speech``."""
        counts = Counter(element.heard for element in self.emotions)
        return {heard: count / len(self.emotions) for heard, count in counts.most_common()}

    def to_dataframe(self) -> pd.DataFrame:
        """
        Return a table with one row per step: t, seconds, emotion, confidence. Needs pandas.

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
        """Draw the timeline with matplotlib, on `ax` or a new figure, and return the axes."""
        return plot_timeline(self.emotions, ax)

    def _repr_html_(self) -> str:
        return timeline_html(self.request_id, self.emotions, self.shares())


if TYPE_CHECKING:

    class DetailedAsynchResult(AsynchResult):
        """A timeline with `details`, which are then never None."""

        emotions: tuple[DetailedTimelineElement, ...]
        model: ModelName
        weights: str
        duration_seconds: float
        expires_at: str
        segments: tuple[Segment, ...]

else:
    DetailedAsynchResult = AsynchResult
