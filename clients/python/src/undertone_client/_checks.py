"""Validation of settings and arguments: defaults, ranges and error messages."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, get_args

import httpx

from .errors import ConfigError
from .literals import ChannelMode, ModelName, RequestState, TokenScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIB = 1024 * 1024

MODEL_IDS: tuple[str, ...] = get_args(ModelName)
CHANNEL_MODES: tuple[str, ...] = get_args(ChannelMode)
STATUSES: tuple[str, ...] = get_args(RequestState)
TOKEN_SCOPES: tuple[str, ...] = get_args(TokenScope)
MAX_LABEL_LENGTH = 100


@dataclass(frozen=True)
class Range:
    default: int
    least: int
    most: int
    unit: str


NUMBERS = {
    "part_size": Range(5 * MIB, MIB, 100 * MIB, "bytes"),
    "max_threads": Range(3, 1, 64, "concurrent parts"),
    "retry_attempts": Range(5, 0, 100, "retries"),
    "max_retries": Range(3, 0, 100, "retries"),
    "max_tries": Range(20, 1, 100, "tries"),
    "interval": Range(5000, 1000, 60_000, "milliseconds"),
    "interval_seconds": Range(5, 1, 60, "seconds"),
    "concurrency": Range(4, 1, 64, "concurrent recordings"),
    "limit": Range(50, 1, 200, "requests"),
    "expires_in": Range(600, 60, 3600, "seconds"),
}

#: The numbers of a stream.
STREAM_NUMBERS = {
    "sample_rate": Range(44_100, 8_000, 192_000, "hertz"),
    "channels": Range(1, 1, 2, "channels"),
    "interval": Range(5, 1, 10, "seconds"),
}


def default(name: str, numbers: Mapping[str, Range] = NUMBERS) -> int:
    return numbers[name].default


def number_problem(name: str, value: Any, numbers: Mapping[str, Range] = NUMBERS) -> str | None:
    """Describe what is wrong with a number, and how to fix it."""
    limits = numbers[name]
    try:
        # Accepts numpy integers; rejects floats, text and bool.
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is not None and limits.least <= whole <= limits.most:
        return None
    return f"{name} is {value!r}: give a whole number of {limits.unit} from {limits.least} to {limits.most}."


def timeout_problem(timeout: Any) -> str | None:
    is_number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    if timeout is None or (is_number and 0 < float(timeout) < math.inf):
        return None
    return f"timeout is {timeout!r}: give a number of seconds greater than 0."


def model_problem(model: Any) -> str | None:
    if model is None or model in MODEL_IDS:
        return None
    return f"There is no model {model!r}: choose one of {', '.join(MODEL_IDS)}."


def choice_problem(name: str, value: Any, choices: tuple[str, ...]) -> str | None:
    if value is None or value in choices:
        return None
    return f"{name} is {value!r}: choose one of {', '.join(choices)}."


def label_problem(label: Any) -> str | None:
    if label is None or (isinstance(label, str) and 1 <= len(label) <= MAX_LABEL_LENGTH):
        return None
    return f"label is {label!r}: give 1 to {MAX_LABEL_LENGTH} characters."


def url_problem(name: str, value: Any) -> str | None:
    hint = "give a full URL that starts with http:// or https://"
    try:
        url = httpx.URL(value)
    except (TypeError, ValueError, httpx.InvalidURL):
        return f"{name} is not a URL: {hint}."
    if url.scheme not in ("http", "https") or not url.host or " " in url.host:
        return f"{name} is not a URL: {hint}."
    if url.userinfo:
        return f"{name} contains a user name or password: {hint}, without them."
    return None


def raise_if_any(problems: Iterable[str | None]) -> None:
    """Raise one error that lists all problems, if there are any."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise ConfigError(found)
