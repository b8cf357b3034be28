"""Every error this client raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class UndertoneError(Exception):
    """Base class of all errors."""

    #: The HTTP status, if the service responded.
    status: int | None
    #: Machine-readable: a code of the service, or of this client.
    code: str | None
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
        code: str | None = None,
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


class ConfigError(UndertoneError, ValueError):
    """A setting or an argument is invalid. Nothing was sent."""

    #: One sentence per problem, which says how to fix it.
    problems: tuple[str, ...]

    def __init__(self, problems: Sequence[str] | str, code: str = "invalid_config") -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        lines = "\n".join(f"- {problem}" for problem in found)
        super().__init__(found[0] if len(found) == 1 else f"Invalid configuration:\n{lines}", code=code)
        self.problems = found


class MissingApiKeyError(ConfigError):
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


class InvalidRequestIdError(UndertoneError):
    """The request_id is malformed, unknown to the service for this key, or expired."""


class PredictionTimeoutError(UndertoneError):
    """No result after all tries. The request continues on the server: call again with its ``request_id``."""


class PredictionFailedError(UndertoneError):
    """The service could not classify the recording; ``code`` says why."""
