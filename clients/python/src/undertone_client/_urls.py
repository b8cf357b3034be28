"""URLs: join, add a query, and redact for logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Union
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

QueryValue = Union[str, int, None]


def with_query(address: str, query: Mapping[str, QueryValue]) -> str:
    """Add query parameters to a URL, keeping its existing ones."""
    scheme, host, path, old, _ = urlsplit(address)
    added = {name: str(value) for name, value in query.items() if value is not None}
    if added:
        kept = [(name, value) for name, value in parse_qsl(old, keep_blank_values=True) if name not in added]
        old = urlencode([*kept, *added.items()])
    return urlunsplit((scheme, host, path, old, ""))


def join_url(base: str, path: str, query: Mapping[str, QueryValue] | None = None) -> str:
    """Join a path to a base URL, with or without trailing slashes."""
    parts = urlsplit(base)
    return with_query(urlunsplit(parts._replace(path=parts.path.rstrip("/") + path)), query or {})


def sibling_url(asynch_url: str, name: str) -> str:
    """Return the URL of something beside the asynch interface."""
    parts = urlsplit(asynch_url)
    parent = parts.path.rstrip("/").rpartition("/")[0]
    return with_query(urlunsplit(parts._replace(path=f"{parent}/{name}")), {})


def models_url(asynch_url: str) -> str:
    """Return the URL of the model list."""
    return sibling_url(asynch_url, "models")


def without_query(address: str) -> str:
    """Drop the query, for logs and errors: it can contain signatures and tokens."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def origin_of(address: str) -> tuple[str, str]:
    """Return the scheme and the host with its port, which two addresses of one server share."""
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def is_loopback(address: str) -> bool:
    """Whether a URL points to this machine."""
    host = urlsplit(address).hostname or ""
    return re.fullmatch(r"(.+\.)?localhost|127(\.\d+){3}|0\.0\.0\.0|::1?", host) is not None
