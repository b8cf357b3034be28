"""What a drawing of a time line shows, whichever way it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .results import CONFIDENCE_FLOOR, NO_SPEECH

if TYPE_CHECKING:
    from .results import AsynchResult, TimelineElement

#: The order of the rows. The colours suit every kind of colour vision (after Okabe and Ito), and no emotion
#: is shown by its colour alone: each has a row and a name.
COLOURS = {
    "angry": "#d55e00",
    "happy": "#e69f00",
    "neutral": "#8c8c8c",
    "sad": "#0072b2",
    "nervous": "#cc79a7",
    "surprised": "#56b4e9",
    "disgusted": "#009e73",
    NO_SPEECH: "#c8c8c8",
}
OTHER_COLOUR = "#6a51a3"

#: Hours of steps are drawn as at most this many blocks: a screen has no more columns.
MAX_BLOCKS = 600


@dataclass(frozen=True)
class Block:
    """A section of one channel that is drawn as one."""

    start: float
    end: float
    #: An emotion, or that there is no speech.
    emotion: str
    confidence: float
    #: None where channels were mixed.
    channel: int | None

    @property
    def is_confident(self) -> bool:
        """Whether the confidence reaches the floor; that nobody speaks is no guess."""
        return self.emotion == NO_SPEECH or self.confidence >= CONFIDENCE_FLOOR

    @property
    def row(self) -> str:
        """The name of the row it is drawn in."""
        return self.emotion if self.channel is None else f"{self.channel}: {self.emotion}"

    @property
    def colour(self) -> str:
        """The colour of the emotion."""
        return COLOURS.get(self.emotion, OTHER_COLOUR)


def blocks_of(result: AsynchResult) -> list[Block]:
    """Make blocks of a time line: one for each step, or for several steps where there are very many."""
    channels: dict[int | None, list[TimelineElement]] = {}
    for element in result.emotions:
        channels.setdefault(element.channel, []).append(element)
    blocks: list[Block] = []
    for channel, elements in channels.items():
        step = step_seconds(elements)
        steps = -(-len(elements) // (MAX_BLOCKS // len(channels)))
        groups = [elements[at : at + steps] for at in range(0, len(elements), steps)]
        blocks += [_block(group, step, channel) for group in groups]
    return blocks


def rows_of(blocks: list[Block]) -> list[str]:
    """Give the rows, one strip of them for each channel: the emotions that occur in it, in their order."""
    order = list(COLOURS)
    seen = {(block.channel or 0, block.emotion, block.row) for block in blocks}

    def place(item: tuple[int, str, str]) -> tuple[int, int, str]:
        channel, emotion, _row = item
        return channel, order.index(emotion) if emotion in COLOURS else len(order), emotion

    return [row for _channel, _emotion, row in sorted(seen, key=place)]


def end_of(blocks: list[Block]) -> float:
    """Give the end of the recording."""
    return max((block.end for block in blocks), default=0)


def step_seconds(elements: list[TimelineElement]) -> int:
    """Give the step of a channel's time line."""
    return elements[1].seconds - elements[0].seconds if len(elements) > 1 else 5


def clock(seconds: float) -> str:
    """Write minutes and seconds as the service does."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def _block(group: list[TimelineElement], step: int, channel: int | None) -> Block:
    """Give the emotion with the most confidence in total; its own is the mean over its steps."""
    confidences_of: dict[str, list[float]] = {}
    for element in group:
        confidences_of.setdefault(element.heard, []).append(element.confidence)
    emotion, confidences = max(confidences_of.items(), key=lambda item: sum(item[1]))
    mean = sum(confidences) / len(confidences)
    end = group[-1].seconds + step if group[-1].end is None else group[-1].end
    return Block(group[0].seconds, end, emotion, mean, channel)
