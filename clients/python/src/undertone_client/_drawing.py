"""What a drawing of a time line shows, whichever way it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .results import CONFIDENCE_FLOOR

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
}
OTHER_COLOUR = "#6a51a3"

#: Hours of steps are drawn as at most this many blocks: a screen has no more columns.
MAX_BLOCKS = 600


@dataclass(frozen=True)
class Block:
    """A section of the recording that is drawn as one."""

    start: float
    end: float
    emotion: str
    confidence: float

    @property
    def is_confident(self) -> bool:
        """Whether the confidence reaches the floor."""
        return self.confidence >= CONFIDENCE_FLOOR

    @property
    def colour(self) -> str:
        """The colour of the emotion."""
        return COLOURS.get(self.emotion, OTHER_COLOUR)


def blocks_of(result: AsynchResult) -> list[Block]:
    """Make blocks of a time line: one for each step, or for several steps where there are very many."""
    elements = result.emotions
    if not elements:
        return []
    step = step_seconds(elements)
    steps = -(-len(elements) // MAX_BLOCKS)
    groups = [elements[at : at + steps] for at in range(0, len(elements), steps)]
    return [_block(group, step) for group in groups]


def rows_of(blocks: list[Block]) -> list[str]:
    """Give the emotions that occur, in the order of the rows."""
    seen = {block.emotion for block in blocks}
    known = [emotion for emotion in COLOURS if emotion in seen]
    return known + sorted(seen - set(known))


def step_seconds(elements: tuple[TimelineElement, ...]) -> int:
    """Give the step of a time line."""
    return elements[1].seconds - elements[0].seconds if len(elements) > 1 else 5


def clock(seconds: float) -> str:
    """Write minutes and seconds as the service does."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def _block(group: tuple[TimelineElement, ...], step: int) -> Block:
    """Give the emotion with the most confidence in total; its own is the mean over its steps."""
    confidences_of: dict[str, list[float]] = {}
    for element in group:
        confidences_of.setdefault(element.emotion, []).append(element.confidence)
    emotion, confidences = max(confidences_of.items(), key=lambda item: sum(item[1]))
    mean = sum(confidences) / len(confidences)
    return Block(group[0].seconds, group[-1].seconds + step, emotion, mean)
