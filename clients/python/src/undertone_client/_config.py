"""The settings of one client: arguments first, then the environment, then defaults."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import httpx

from ._checks import number_problem, raise_if_any
from ._log import LEVELS, level_number
from .errors import MissingApiKeyError

DEFAULT_DISCRETE_URL = "http://127.0.0.1:8080/v1/discrete/emotion"
DEFAULT_ASYNCH_URL = "http://127.0.0.1:8080/v1/asynch"

NO_KEY = "There is no API key: pass api_key or set SERVICE_API_KEY."


@dataclass(frozen=True)
class Config:
    """Defaults filled in, not checked yet."""

    api_key: str | None
    part_size: int
    show_progress: bool
    max_threads: int
    retry_attempts: int
    discrete_url: str
    asynch_url: str
    log_level: str | None

    def __repr__(self) -> str:
        """Say all but the key, because what is printed is often kept."""
        return f"Config(discrete_url={self.discrete_url!r}, asynch_url={self.asynch_url!r})"


def resolve_config(
    api_key: str | None,
    part_size: int,
    *,
    show_progress: bool,
    max_threads: int,
    retry_attempts: int,
    discrete_url: str | None,
    asynch_url: str | None,
    log_level: str | None,
) -> Config:
    """Fill in what was not given. An empty variable is none."""
    return Config(
        api_key=_environment("SERVICE_API_KEY") if api_key is None else api_key,
        part_size=part_size,
        show_progress=show_progress,
        max_threads=max_threads,
        retry_attempts=retry_attempts,
        discrete_url=_first(discrete_url, "SERVICE_DISCRETE_URL", DEFAULT_DISCRETE_URL),
        asynch_url=_first(asynch_url, "SERVICE_ASYNCH_URL", DEFAULT_ASYNCH_URL),
        log_level=_environment("SERVICE_LOG_LEVEL") if log_level is None else log_level,
    )


def settings_problems(config: Config) -> list[str]:
    """List every problem of the settings but a missing key, each in a sentence that says how to mend it."""
    problems = [
        _key_shape_problem(config.api_key),
        *(number_problem(name, getattr(config, name)) for name in ("part_size", "max_threads", "retry_attempts")),
        None if isinstance(config.show_progress, bool) else "show_progress is neither True nor False.",
        _url_problem("discrete_url (SERVICE_DISCRETE_URL)", config.discrete_url),
        _url_problem("asynch_url (SERVICE_ASYNCH_URL)", config.asynch_url),
        _level_problem(config.log_level),
    ]
    return [problem for problem in problems if problem is not None]


def require_ready(config: Config, problems: list[str]) -> str:
    """Begin an operation: sound settings and a key, which is returned, or nothing is sent."""
    raise_if_any(problems)
    if not config.api_key:
        raise MissingApiKeyError(NO_KEY)
    return config.api_key


def _environment(name: str) -> str | None:
    return os.environ.get(name) or None


def _first(given: str | None, variable: str, fallback: str) -> str:
    return given if given is not None else _environment(variable) or fallback


def _key_shape_problem(key: Any) -> str | None:
    if key is None or key == "" or (isinstance(key, str) and re.fullmatch(r"[\x21-\x7e]+", key)):
        return None
    return (
        "api_key (SERVICE_API_KEY) is not a key: it must be one word of plain letters, digits and signs, "
        "without spaces or line breaks."
    )


def _url_problem(name: str, value: Any) -> str | None:
    hint = "give a full address that begins with http:// or https://"
    try:
        url = httpx.URL(value)
    except (TypeError, ValueError, httpx.InvalidURL):
        return f"{name} is not an address: {hint}."
    if url.scheme not in ("http", "https") or not url.host or " " in url.host:
        return f"{name} is not an address: {hint}."
    if url.userinfo:
        return f"{name} holds a user name or password: {hint}, without them."
    return None


def _level_problem(level: Any) -> str | None:
    if level is None or level_number(level) is not None:
        return None
    return f"log_level (SERVICE_LOG_LEVEL) is {level!r}: choose one of {', '.join(LEVELS)}."
