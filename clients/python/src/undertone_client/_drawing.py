"""The blocks and rows of a drawn timeline, shared by HTML and matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .timeline import CONFIDENCE_FLOOR, NO_SPEECH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .timeline import TimelineElement

#: In the order of the rows. A colour-blind safe palette (after Okabe and Ito); rows are labelled as well.
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

#: Maximum number of blocks drawn, however long the recording: a screen has no more columns.
MAX_BLOCKS = 600


@dataclass(frozen=True)
class Block:
    """One or more consecutive steps of a channel, drawn as one rectangle."""

    start: float
    end: float
    #: An emotion, or `NO_SPEECH`.
    emotion: str
    confidence: float
    #: None if channels were mixed.
    channel: int | None

    @property
    def is_confident(self) -> bool:
        """Whether the confidence reaches the floor; `NO_SPEECH` is always certain."""
        return self.emotion == NO_SPEECH or self.confidence >= CONFIDENCE_FLOOR

    @property
    def row(self) -> str:
        return self.emotion if self.channel is None else f"{self.channel}: {self.emotion}"

    @property
    def colour(self) -> str:
        return COLOURS.get(self.emotion, OTHER_COLOUR)


def blocks_of(timeline: Sequence[TimelineElement]) -> list[Block]:
    """Make one block per step, or per several steps if there are more than `MAX_BLOCKS`."""
    channels: dict[int | None, list[TimelineElement]] = {}
    for element in timeline:
        channels.setdefault(element.channel, []).append(element)
    blocks: list[Block] = []
    for channel, elements in channels.items():
        step = elements[1].seconds - elements[0].seconds if len(elements) > 1 else 5
        steps = -(-len(elements) // (MAX_BLOCKS // len(channels)))
        groups = [elements[at : at + steps] for at in range(0, len(elements), steps)]
        blocks += [_block(group, step, channel) for group in groups]
    return blocks


def rows_of(blocks: list[Block]) -> list[str]:
    """Return the row labels: per channel, the emotions that occur in it."""
    order = list(COLOURS)
    seen = {(block.channel or 0, block.emotion, block.row) for block in blocks}

    def place(item: tuple[int, str, str]) -> tuple[int, int, str]:
        channel, emotion, _row = item
        return channel, order.index(emotion) if emotion in COLOURS else len(order), emotion

    return [row for _channel, _emotion, row in sorted(seen, key=place)]


def end_of(blocks: list[Block]) -> float:
    return max((block.end for block in blocks), default=0)


def _block(group: list[TimelineElement], step: int, channel: int | None) -> Block:
    """Pick the emotion with the highest total confidence; the block's confidence is the mean over its steps."""
    confidences_of: dict[str, list[float]] = {}
    for element in group:
        confidences_of.setdefault(element.heard, []).append(element.confidence)
    emotion, confidences = max(confidences_of.items(), key=lambda item: sum(item[1]))
    mean = sum(confidences) / len(confidences)
    end = group[-1].seconds + step if group[-1].end is None else group[-1].end
    return Block(group[0].seconds, end, emotion, mean, channel)
