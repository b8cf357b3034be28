"""The time line with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._drawing import blocks_of, clock, end_of, rows_of
from ._optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import AsynchResult

_HEIGHT = 0.7


def plot_timeline(result: AsynchResult, ax: Axes | None) -> Axes:
    """Draw a strip for each channel: a row for each emotion that occurs; what is under the floor is only outlined."""
    blocks = blocks_of(result)
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
