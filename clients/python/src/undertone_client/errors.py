"""Every error this client raises, in one small tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class UndertoneError(Exception):
    """The root of the tree."""

    #: The HTTP status, when the service answered.
    status: int | None
    #: What programs branch on: a code of the service, or one of this client's own.
    code: str | None
    #: The asynch request it is about; where there is none, the HTTP request (``x-request-id``).
    request_id: str | None
    #: Seconds after which the service would like to be asked again.
    retry_after_seconds: float | None
    #: The whole answer of the service (RFC 9457), with figures such as ``min_seconds`` and ``actual_seconds``.
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
        """Keep the sentence and what is known beside it."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self.problem = problem

    @property
    def cause(self) -> BaseException | None:
        """What led to it, where it was something else than an answer of the service."""
        return self.__cause__


class ConfigError(UndertoneError, ValueError):
    """A setting or an argument is invalid. Nothing was sent."""

    #: One sentence for each problem, which says how to fix it.
    problems: tuple[str, ...]

    def __init__(self, problems: Sequence[str] | str, code: str = "invalid_config") -> None:
        """List everything that is wrong."""
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        lines = "\n".join(f"- {problem}" for problem in found)
        super().__init__(found[0] if len(found) == 1 else f"Invalid configuration:\n{lines}", code=code)
        self.problems = found


class MissingApiKeyError(ConfigError):
    """There is no API key, neither given nor in the environment."""

    def __init__(self, problem: str) -> None:
        """Say how to give one."""
        super().__init__(problem, "missing_api_key")


class MissingPackageError(UndertoneError, ImportError):
    """An optional package is needed for this and is not installed."""


class MissingFileError(UndertoneError):
    """The file is missing or cannot be opened."""


class RequestFailedError(UndertoneError):
    """The service refused a request, or could not be reached."""


class UploadFailedError(UndertoneError):
    """The recording could not be uploaded. If it may succeed later, continue with ``resume=error.request_id``."""


class InvalidRequestIdError(UndertoneError):
    """The request_id is not one, is unknown to the service under this key, or has expired."""


class PredictionTimeoutError(UndertoneError):
    """The tries were used up before there was a result. The request continues: ask again with ``request_id``."""


class PredictionFailedError(UndertoneError):
    """The service could not make a time line of the recording; ``code`` says why."""
