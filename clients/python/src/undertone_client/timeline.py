"""What a timeline and a stream consist of: the emotion of one step, segment or window."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ._parse import known_fields, number, optional_field, predictions, text, word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .literals import Emotion, EmotionOrNoSpeech

#: Recommended threshold: drop emotions with a lower confidence.
CONFIDENCE_FLOOR = 0.38

#: Stands in for the emotion where there is less than `MIN_SPEECH_SECONDS` of speech: without speech it has no meaning.
NO_SPEECH: Final = "no speech"
MIN_SPEECH_SECONDS = 0.5


def clock(seconds: float) -> str:
    """Format as minutes and seconds, as the service does."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


@dataclass(frozen=True)
class TimelineElement:
    """The emotion of one step of a long recording. From `start` on: None without details."""

    #: Minutes and seconds from the start, such as ``00:05``; minutes can exceed 99.
    t: str
    #: The emotion with the highest confidence.
    emotion: Emotion
    #: Consider dropping elements under 0.38.
    confidence: float
    #: With ``channels="separate"``: the channel, from 0.
    channel: int | None = None
    #: Start and end of the step, in seconds.
    start: float | None = None
    end: float | None = None
    #: Seconds of speech in the step.
    speech_seconds: float | None = None
    #: False: there is no speech, and the emotion has no meaning.
    speech: bool | None = None
    #: The confidence of every emotion of the model.
    all_predictions: Mapping[str, float] | None = None

    @property
    def seconds(self) -> int:
        """Seconds from the start of the recording to the start of this step."""
        minutes, seconds = self.t.split(":")
        return int(minutes) * 60 + int(seconds)

    @property
    def heard(self) -> EmotionOrNoSpeech:
        """The emotion, or ``no speech``."""
        return NO_SPEECH if self.speech is False else self.emotion

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TimelineElement:
        """Read the service's JSON."""
        element = cls(
            text(value["t"]),
            word(value["emotion"]),
            number(value["confidence"]),
            optional_field(operator.index, value, "channel"),
            optional_field(number, value, "start"),
            optional_field(number, value, "end"),
            optional_field(number, value, "speech_seconds"),
            optional_field(bool, value, "speech"),
            optional_field(predictions, value, "all_predictions"),
        )
        _ = element.seconds  # raises now if the timestamp is invalid, not later when it is drawn
        return element

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        return known_fields(self)


if TYPE_CHECKING:

    class DetailedTimelineElement(TimelineElement):
        """An element with `details`, which are then never None."""

        start: float
        end: float
        speech_seconds: float
        speech: bool
        all_predictions: Mapping[str, float]

else:
    DetailedTimelineElement = TimelineElement


@dataclass(frozen=True)
class Segment:
    """Consecutive steps of one channel with the same emotion, merged."""

    #: 0 if channels were mixed.
    channel: int
    #: Seconds from the start of the recording.
    start: float
    end: float
    #: None: no speech.
    emotion: Emotion | None
    #: The mean over its steps.
    confidence: float
    speech_seconds: float

    @property
    def heard(self) -> EmotionOrNoSpeech:
        """The emotion, or ``no speech``."""
        return self.emotion or NO_SPEECH

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Segment:
        """Read the service's JSON."""
        return cls(
            operator.index(value["channel"]),
            number(value["start"]),
            number(value["end"]),
            optional_field(word, value, "emotion"),
            number(value["confidence"]),
            number(value["speech_seconds"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the service's JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class StreamPrediction:
    """The emotion in the last 5 seconds of one channel of a stream."""

    #: `start` in minutes and seconds.
    t: str
    #: Start and end of the window, in seconds of audio written to the stream.
    start: float
    end: float
    channel: int
    main_emotion: Emotion
    #: Consider dropping predictions under 0.38.
    confidence: float
    all_predictions: Mapping[str, float]
    #: Seconds of speech in the window.
    speech_seconds: float

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], offset: float = 0) -> StreamPrediction:
        """Read the service's JSON; `offset` is the seconds of audio written before this connection was opened."""
        start = number(value["start"]) + offset
        return cls(
            clock(start),
            start,
            number(value["end"]) + offset,
            int(number(value["channel"])),
            word(value["main_emotion"]),
            number(value["confidence"]),
            predictions(value["all_predictions"]),
            number(value["speech_seconds"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return known_fields(self)
