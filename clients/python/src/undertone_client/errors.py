"""Every error this client raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .literals import ErrorCode


class UndertoneError(Exception):
    """Base class of all errors."""

    #: The HTTP status, if the service responded.
    status: int | None
    #: Machine-readable: a code of the service, or of this client.
    code: ErrorCode | None
    #: The asynch request; if there is none, the HTTP request (``x-request-id``).
    request_id: str | None
    #: Seconds to wait before a retry, if the service asked for it.
    retry_after_seconds: float | None
    #: The full error response (RFC 9457), with figures such as ``min_seconds`` and ``actual_seconds``.
    problem: Mapping[str, Any] | None

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: ErrorCode | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self.problem = problem

    @property
    def cause(self) -> BaseException | None:
        """The underlying exception, if the error is not a response of the service."""
        return self.__cause__


class AuthenticationError(UndertoneError):
    """The service does not accept the API key, or there is none."""


class RateLimitError(UndertoneError):
    """Too many requests, or a quota is used up; ``retry_after_seconds`` says how long to wait, if that helps."""


class RequestTimeoutError(UndertoneError):
    """There was no response in time."""


class ConnectionFailedError(UndertoneError):
    """The service is unreachable, or the connection broke."""


class NotFoundError(UndertoneError):
    """There is nothing with this ID or at this address, or it has expired."""


class ConfigError(UndertoneError, ValueError):
    """A setting or an argument is invalid. Nothing was sent."""

    #: One sentence per problem, which says how to fix it.
    problems: tuple[str, ...]

    def __init__(self, problems: Sequence[str] | str, code: ErrorCode = "invalid_config") -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        lines = "\n".join(f"- {problem}" for problem in found)
        super().__init__(found[0] if len(found) == 1 else f"Invalid configuration:\n{lines}", code=code)
        self.problems = found


class MissingApiKeyError(ConfigError, AuthenticationError):
    """There is no API key, neither as an argument nor in the environment."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "missing_api_key")


class MissingPackageError(UndertoneError, ImportError):
    """A required optional package is not installed."""


class MissingFileError(UndertoneError):
    """The file is missing or cannot be opened."""


class RequestFailedError(UndertoneError):
    """The service refused a request or is unreachable."""


class UploadFailedError(UndertoneError):
    """The upload failed. If it can be continued, pass ``resume=error.request_id``."""


class InvalidRequestIdError(NotFoundError):
    """The request_id is malformed, unknown to the service for this key, or expired."""


class PredictionTimeoutError(RequestTimeoutError):
    """No result after all tries. The request continues on the server: call again with its ``request_id``."""


class PredictionFailedError(UndertoneError):
    """The service could not classify the recording; ``code`` says why."""


class WebhookVerificationError(UndertoneError, ValueError):
    """The webhook was not sent by the service, or is too old. Do not trust its content."""


_KINDS_BY_STATUS: dict[int, type[UndertoneError]] = {
    401: AuthenticationError,
    404: NotFoundError,
    410: NotFoundError,
    429: RateLimitError,
}
_KINDS_BY_CODE: dict[str, type[UndertoneError]] = {
    "timed_out": RequestTimeoutError,
    "connection_failed": ConnectionFailedError,
}


def _combined(operation: type[UndertoneError], kind: type[UndertoneError]) -> type[UndertoneError]:
    """Both classes in one, which is shown as its kind: that says more than the operation."""

    def reduce(error: UndertoneError) -> tuple[Any, ...]:  # for pickle: the name of the class means its kind
        return _restore, (operation, kind, error.args), vars(error)

    content = {"__doc__": kind.__doc__, "__module__": __name__, "__reduce__": reduce}
    return type(kind.__name__, (operation, kind), content)


_COMBINED: dict[tuple[type[UndertoneError], type[UndertoneError]], type[UndertoneError]] = {
    (operation, kind): _combined(operation, kind)
    for operation in (RequestFailedError, UploadFailedError)
    for kind in (*_KINDS_BY_STATUS.values(), *_KINDS_BY_CODE.values())
}


def with_kind(operation: type[UndertoneError], status: int | None, code: str | None) -> type[UndertoneError]:
    """Return the class for an error of an operation that is also of a kind, such as a wrong key during an upload."""
    kind = _KINDS_BY_STATUS.get(status or 0) or _KINDS_BY_CODE.get(code or "", operation)
    return _COMBINED.get((operation, kind), operation)


def _restore(operation: type[UndertoneError], kind: type[UndertoneError], args: tuple[Any, ...]) -> UndertoneError:
    return _COMBINED[operation, kind](*args)
