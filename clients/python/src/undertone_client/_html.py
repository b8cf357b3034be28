"""Drawings for notebooks: self-contained HTML without scripts or style sheets."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._drawing import COLOURS, OTHER_COLOUR, Block, blocks_of, end_of, rows_of
from .timeline import CONFIDENCE_FLOOR, NO_SPEECH, clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .timeline import TimelineElement

_LEFT, _WIDTH, _ROW, _BAR = 90, 720, 26, 18
_TICKS = 6


def timeline_html(request_id: str, timeline: Sequence[TimelineElement], shares: Mapping[str, float]) -> str:
    """Draw one row per channel and emotion; blocks under the confidence floor are only outlined."""
    blocks = blocks_of(timeline)
    if not blocks:
        return f"<p>Request {escape(request_id)}: the timeline is empty.</p>"
    rows, end = rows_of(blocks), end_of(blocks)
    scale = _WIDTH / end
    shapes = [_name(name, row) for row, name in enumerate(rows)]
    shapes += [_rect(block, rows.index(block.row), scale) for block in blocks]
    shapes += _ticks(end, len(rows) * _ROW)
    counts = ", ".join(f"{share:.0%} {heard}" for heard, share in shares.items())
    label = escape(f"Emotions over {clock(end)} minutes: {counts}.", quote=True)
    return (
        f"{_svg(len(rows) * _ROW + 24, label)}{''.join(shapes)}</svg>"
        f'<p style="margin:0;font-size:12px">{label} '
        f"Outlined: confidence under {CONFIDENCE_FLOOR}, not reliable.</p>"
    )


def predictions_html(predictions: Mapping[str, float], caption: str) -> str:
    """Draw one bar per emotion, highest confidence first."""
    ranked = sorted(predictions.items(), key=lambda item: -item[1])
    label = escape(caption, quote=True)
    shapes = []
    for row, (emotion, share) in enumerate(ranked):
        width = max(0.0, min(1.0, share)) * 300
        top = row * _ROW + (_ROW - _BAR) / 2
        colour = COLOURS.get(emotion, OTHER_COLOUR)
        shapes.append(
            f'{_name(emotion, row)}<rect x="{_LEFT}" y="{top:g}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
            f'<text x="{_LEFT + width + 6:.1f}" y="{top + 13:g}" fill="currentColor">{share:.2f}</text>'
        )
    return f"{_svg(len(ranked) * _ROW, label)}{''.join(shapes)}</svg>"


def _svg(height: float, label: str) -> str:
    width = _LEFT + _WIDTH + 20
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height:g}" width="100%" '
        f'style="max-width:{width}px;font:12px sans-serif;color:inherit"><title>{label}</title>'
    )


def _name(emotion: str, row: int) -> str:
    middle = row * _ROW + _ROW / 2 + 4
    text = escape(emotion)
    return f'<text x="{_LEFT - 8}" y="{middle:g}" text-anchor="end" fill="currentColor">{text}</text>'


def _rect(block: Block, row: int, scale: float) -> str:
    left = _LEFT + block.start * scale
    width = max((block.end - block.start) * scale - 0.5, 0.5)
    top = row * _ROW + (_ROW - _BAR) / 2
    look = f'fill="{block.colour}"' if block.is_confident else f'fill="none" stroke="{block.colour}"'
    sure = "" if block.emotion == NO_SPEECH else f" {block.confidence:.2f}"
    title = escape(f"{clock(block.start)} {block.row}{sure}")
    return f'<rect x="{left:.1f}" y="{top:g}" width="{width:.1f}" height="{_BAR}" {look}><title>{title}</title></rect>'


def _ticks(end: float, bottom: float) -> list[str]:
    shapes = [f'<path d="M{_LEFT} {bottom:g}h{_WIDTH}" stroke="currentColor" fill="none"/>']
    for i in range(_TICKS + 1):
        left = _LEFT + _WIDTH * i / _TICKS
        text = clock(end * i / _TICKS)
        shapes.append(
            f'<text x="{left:.1f}" y="{bottom + 16:g}" text-anchor="middle" fill="currentColor">{text}</text>'
        )
    return shapes
