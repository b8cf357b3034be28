"""What went wrong inside, before the operation it belongs to gives it its public class."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Union

from .errors import UndertoneError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Failure(Exception):  # noqa: N818 - never seen by a caller
    """A sentence, its details, and whether the same again may well succeed."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        cause: BaseException | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.cause = cause
        self.details = details


ErrorClass = type[UndertoneError]
ClassOf = Union[ErrorClass, Callable[[Failure], ErrorClass]]


@contextmanager
def failing_as(class_of: ClassOf, request_id: str | None = None) -> Iterator[None]:
    """Let a failure inside leave as the class that `class_of` is or picks."""
    try:
        yield
    except Failure as failure:
        chosen = class_of if isinstance(class_of, type) else class_of(failure)
        details = dict(failure.details)
        if request_id is not None:
            details["request_id"] = request_id
        raise chosen(failure.message, **details) from failure.cause
