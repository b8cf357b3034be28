"""Internal errors, before an operation converts them to its public error class."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Union

from .errors import UndertoneError, with_kind

if TYPE_CHECKING:
    from collections.abc import Iterator


class Failure(Exception):  # noqa: N818 - never seen by a caller
    """A message and its details. `is_final` disables retries, whatever the code."""

    def __init__(
        self, message: str, *, cause: BaseException | None = None, is_final: bool = False, **details: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.is_final = is_final
        self.details = details

    def with_note(self, note: str) -> Failure:
        """Return a copy with a note in brackets after the message."""
        return Failure(f"{self.message} ({note})", cause=self.cause, is_final=self.is_final, **self.details)

    def as_error(self, error_class: ErrorClass, **details: Any) -> UndertoneError:
        """Convert to a public error."""
        chosen = with_kind(error_class, self.details.get("status"), self.details.get("code"))
        error = chosen(self.message, **{**self.details, **details})
        error.__cause__ = self.cause
        return error


ErrorClass = type[UndertoneError]
ClassOf = Union[ErrorClass, Callable[[Failure], ErrorClass]]


@contextmanager
def failing_as(class_of: ClassOf, request_id: str | None = None) -> Iterator[None]:
    """Convert a `Failure` to the public error class that `class_of` is or returns."""
    try:
        yield
    except Failure as failure:
        chosen = class_of if isinstance(class_of, type) else class_of(failure)
        details = {} if request_id is None else {"request_id": request_id}
        raise failure.as_error(chosen, **details) from failure.cause
