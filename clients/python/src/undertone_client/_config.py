"""Resolves the settings of a client: arguments first, then the environment, then defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from ._checks import number_problem, raise_if_any, timeout_problem, url_problem
from ._log import LEVELS, level_number
from ._urls import join_url
from .errors import MissingApiKeyError

#: A server on this machine.
DEFAULT_URL = "http://127.0.0.1:8080"

NO_KEY = "There is no API key: pass api_key or set SERVICE_API_KEY."


@dataclass(frozen=True)
class Config:
    """Resolved settings, not validated yet. The key is left out of `repr`, which often ends up in logs."""

    api_key: str | None = field(repr=False)
    part_size: int
    show_progress: bool
    max_threads: int
    retry_attempts: int
    base_url: str
    discrete_url: str
    asynch_url: str
    log_level: str | None
    timeout: float | None
    headers: Mapping[str, str] = field(repr=False)
    proxy: str | None = field(repr=False)
    http_client: httpx.AsyncClient | None = field(repr=False)

    def problems(self) -> list[str]:
        """List every problem except a missing key; each says how to fix it."""
        found = [
            _key_problem(self.api_key),
            *(number_problem(name, getattr(self, name)) for name in ("part_size", "max_threads", "retry_attempts")),
            None if isinstance(self.show_progress, bool) else "show_progress must be True or False.",
            url_problem("base_url (SERVICE_URL)", self.base_url),
            url_problem("discrete_url (SERVICE_DISCRETE_URL)", self.discrete_url),
            url_problem("asynch_url (SERVICE_ASYNCH_URL)", self.asynch_url),
            _level_problem(self.log_level),
            timeout_problem(self.timeout),
            _headers_problem(self.headers),
            _proxy_problem(self.proxy),
            _http_client_problem(self.http_client, self.proxy),
        ]
        return [problem for problem in found if problem is not None]

    def require_ready(self) -> None:
        """Raise before anything is sent, unless the settings are valid and there is a key."""
        raise_if_any(self.problems())
        if not self.api_key:
            raise MissingApiKeyError(NO_KEY)


def resolve_config(
    api_key: str | None,
    base_url: str | None,
    discrete_url: str | None,
    asynch_url: str | None,
    log_level: str | None,
    **settings: Any,
) -> Config:
    """Fill in missing settings. An empty variable counts as not set."""

    def first(given: str | None, variable: str) -> str | None:
        return (os.environ.get(variable) or None) if given is None else given

    base = first(base_url, "SERVICE_URL")
    base = DEFAULT_URL if base is None else base
    # An invalid base_url is reported once, not again for the two URLs derived from it.
    root = DEFAULT_URL if url_problem("base_url", base) else base
    discrete = first(discrete_url, "SERVICE_DISCRETE_URL")
    asynch = first(asynch_url, "SERVICE_ASYNCH_URL")
    return Config(
        api_key=first(api_key, "SERVICE_API_KEY"),
        base_url=base,
        discrete_url=join_url(root, "/v1/discrete/emotion") if discrete is None else discrete,
        asynch_url=join_url(root, "/v1/asynch") if asynch is None else asynch,
        log_level=first(log_level, "SERVICE_LOG_LEVEL"),
        **settings,
    )


def _key_problem(key: Any) -> str | None:
    if key is None or key == "" or (isinstance(key, str) and re.fullmatch(r"[\x21-\x7e]+", key)):
        return None
    return "api_key (SERVICE_API_KEY) is not valid: use only printable ASCII characters, without spaces or line breaks."


def _headers_problem(headers: Any) -> str | None:
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(item, str) for pair in headers.items() for item in pair):
        if any(name.lower() == "x-api-key" for name in headers):
            return "headers contains x-api-key: pass the key as api_key."
        if all(re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) for name in headers) and all(
            re.fullmatch(r"[\t\x20-\x7e]*", value) for value in headers.values()
        ):
            return None
    return "headers is not valid: give a dict of header names and ASCII values, both str."


def _proxy_problem(proxy: Any) -> str | None:
    if proxy is None:
        return None
    try:
        url = httpx.URL(proxy)
    except (TypeError, httpx.InvalidURL):
        url = httpx.URL()
    if url.scheme in ("http", "https", "socks5", "socks5h") and url.host:
        return None
    return "proxy is not a URL: give one such as http://proxy.example:3128."


def _http_client_problem(client: Any, proxy: Any) -> str | None:
    if client is None:
        return None
    if not isinstance(client, httpx.AsyncClient):
        return "http_client must be an httpx.AsyncClient, also for EmotionClient: every operation is a coroutine."
    return None if proxy is None else "Give either proxy or http_client: a client has its own proxy."


def _level_problem(level: Any) -> str | None:
    if level is None or level_number(level) is not None:
        return None
    return f"log_level (SERVICE_LOG_LEVEL) is {level!r}: choose one of {', '.join(LEVELS)}."
