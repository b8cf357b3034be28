"""Draws a timeline with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._drawing import blocks_of, end_of, rows_of
from ._optional import optional
from .timeline import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from .timeline import TimelineElement

_HEIGHT = 0.7


def plot_timeline(timeline: Sequence[TimelineElement], ax: Axes | None) -> Axes:
    """Draw one row per channel and emotion; blocks under the confidence floor are only outlined."""
    blocks = blocks_of(timeline)
    rows = rows_of(blocks)
    if ax is None:
        size = (10, max(3, 0.5 * len(rows)))
        _, ax = optional("matplotlib.pyplot", "plot").subplots(figsize=size, layout="constrained")
    ticker = optional("matplotlib.ticker", "plot")
    for block in blocks:
        ax.broken_barh(
            [(block.start, block.end - block.start)],
            (rows.index(block.row) - _HEIGHT / 2, _HEIGHT),
            facecolor=block.colour if block.is_confident else "none",
            edgecolor=block.colour,
        )
    ax.set_yticks(range(len(rows)), labels=rows)
    ax.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    ax.set_xlim(0, end_of(blocks) or 1)
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda seconds, _position: clock(seconds)))
    ax.set_xlabel("minutes:seconds")
    return ax
