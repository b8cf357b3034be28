"""Addresses: joined, extended, and what may be said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

QueryValue = Union[str, int, None]


def with_query(address: str, query: Mapping[str, QueryValue]) -> str:
    """Add query parameters to an address; those it has already stay."""
    scheme, host, path, old, _ = urlsplit(address)
    added = {name: str(value) for name, value in query.items() if value is not None}
    if added:
        kept = [(name, value) for name, value in parse_qsl(old, keep_blank_values=True) if name not in added]
        old = urlencode([*kept, *added.items()])
    return urlunsplit((scheme, host, path, old, ""))


def join_url(base: str, path: str, query: Mapping[str, QueryValue] | None = None) -> str:
    """Join a path to a base address, however many slashes the base ends in."""
    parts = urlsplit(base)
    return with_query(urlunsplit(parts._replace(path=parts.path.rstrip("/") + path)), query or {})


def models_url(asynch_url: str) -> str:
    """Find the list of models, which lives next to the asynch interface."""
    parts = urlsplit(asynch_url)
    parent = parts.path.rstrip("/").rpartition("/")[0]
    return with_query(urlunsplit(parts._replace(path=f"{parent}/models")), {})


def speakable(address: str) -> str:
    """Give what may be said of an address in a log or an error: signatures and tokens are in the query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
