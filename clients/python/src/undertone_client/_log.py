"""The logger `undertone_client`. Keys, signatures, file names and audio are never given to it."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The names of Python's levels and the server's, in any case: one SERVICE_LOG_LEVEL serves both sides.
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
    """Give logging's number of a level."""
    return LEVELS.get(level.lower()) if isinstance(level, str) else None


def set_level(level: str | None) -> None:
    """Log from this level on. Without one, the program's own settings decide."""
    number = level_number(level)
    if number is None:
        return
    logger.setLevel(number)
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        logger.addHandler(_Stderr())


@contextmanager
def unlogged_by_httpx() -> Iterator[None]:
    """Keep a request of ours out of httpx's own log: that names whole addresses, signatures included."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


class _Stderr(logging.Handler):
    """Writes beside a progress bar, and only while the program has no handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            tqdm.write(f"undertone_client {record.levelname}: {record.getMessage()}", file=sys.stderr)


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _ours.get()


logging.getLogger("httpx").addFilter(_is_not_ours)
