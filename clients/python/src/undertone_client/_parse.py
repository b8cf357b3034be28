"""Reads fields of the service's JSON. A field of the wrong type raises, and the response counts as invalid."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def word(value: Any) -> Any:
    """Read one of the service's fixed words, for a field whose type lists them. A newer server may have others."""
    return text(value)


def number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TypeError


def predictions(value: Mapping[str, Any]) -> dict[str, float]:
    return {text(emotion): number(probability) for emotion, probability in value.items()}


def optional_field(read: Callable[[Any], T], value: Mapping[str, Any], name: str) -> T | None:
    """Read a field that may be absent or null."""
    return None if value.get(name) is None else read(value[name])


def known_fields(result: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not None, as plain values."""
    pairs = ((field.name, getattr(result, field.name)) for field in fields(result))
    return {name: dict(value) if name == "all_predictions" else value for name, value in pairs if value is not None}
