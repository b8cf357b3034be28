"""The logger `undertone_client`. Keys, signatures, file names and audio are never logged."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Python's level names and the server's, case-insensitive: client and server can share one SERVICE_LOG_LEVEL.
LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "critical": logging.CRITICAL,
    "silent": logging.CRITICAL + 1,
}

logger = logging.getLogger("undertone_client")

_ours: ContextVar[bool] = ContextVar("undertone_request", default=False)


def level_number(level: Any) -> int | None:
    return LEVELS.get(level.lower()) if isinstance(level, str) else None


def set_level(level: str | None) -> None:
    """Set the logger's level. None leaves it to the program's logging configuration."""
    number = level_number(level)
    if number is None:
        return
    logger.setLevel(number)
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        logger.addHandler(_Stderr())


@contextmanager
def unlogged_by_httpx() -> Iterator[None]:
    """Keep our requests out of httpx's own log, which contains full URLs with their signatures."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


class _Stderr(logging.Handler):
    """Writes to stderr without breaking a progress bar, and only if the program has configured no handlers."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            tqdm.write(f"undertone_client {record.levelname}: {record.getMessage()}", file=sys.stderr)


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _ours.get()


logging.getLogger("httpx").addFilter(_is_not_ours)
