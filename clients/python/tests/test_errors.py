"""The classes of errors: by operation, and by kind."""

from __future__ import annotations

import pickle
import re
import socket
from typing import TYPE_CHECKING, Any, Callable, get_args

import pytest

import undertone_client
from undertone_client import (
    AuthenticationError,
    ConfigError,
    ConnectionFailedError,
    ErrorCode,
    InvalidRequestIdError,
    MissingApiKeyError,
    NotFoundError,
    PredictionTimeoutError,
    RateLimitError,
    RequestFailedError,
    RequestTimeoutError,
    UndertoneError,
    UploadFailedError,
)

from .support.clients import scrambled
from .support.flaky_server import Fault
from .support.real_server import ROOT

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.clients import Twin
    from .support.flaky_server import FlakyServer

RECORDING = scrambled(1000)
REQUEST_ID = "0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10"

OPERATIONS: dict[str, tuple[Callable[[Twin], Any], type[UndertoneError]]] = {
    "discrete.emotions": (lambda twin: twin.discrete.emotions(RECORDING), RequestFailedError),
    "asynch.upload": (lambda twin: twin.asynch.upload(RECORDING), UploadFailedError),
    "asynch.submit": (lambda twin: twin.asynch.submit(RECORDING), UploadFailedError),
    "asynch.list": (lambda twin: twin.asynch.list(), RequestFailedError),
    "tokens.create": (lambda twin: twin.tokens.create(), RequestFailedError),
}

KINDS = {401: AuthenticationError, 404: NotFoundError, 429: RateLimitError}


@pytest.mark.parametrize("status", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_error_is_of_its_operation_and_of_its_kind(
    name: str, status: int, flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.faults = lambda _seen: Fault("answer", status=status, headers={"retry-after": "61"})
    operation, error_class = OPERATIONS[name]
    with pytest.raises(KINDS[status]) as caught:
        operation(make_twin(**flaky.settings))
    assert isinstance(caught.value, error_class)
    assert type(caught.value).__name__ == KINDS[status].__name__
    assert waits == []


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.usefixtures("waits")
def test_an_unreachable_server_is_a_connection_error(name: str, make_twin: MakeTwin) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        operation, error_class = OPERATIONS[name]
        with pytest.raises(ConnectionFailedError, match="No server is running") as caught:
            operation(make_twin("k", base_url=url))
    assert isinstance(caught.value, error_class)


def test_errors_of_a_kind_survive_pickling(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    with pytest.raises(UploadFailedError) as caught:
        make_twin(**{**flaky.settings, "api_key": "wrong"}).asynch.upload(RECORDING)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value)
    assert (str(copy), copy.status, copy.code) == (str(caught.value), 401, "invalid_api_key")


def test_the_tree_of_errors() -> None:
    assert issubclass(InvalidRequestIdError, NotFoundError)
    assert issubclass(PredictionTimeoutError, RequestTimeoutError)
    assert issubclass(MissingApiKeyError, AuthenticationError)
    assert issubclass(MissingApiKeyError, ConfigError)
    for name in undertone_client.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(undertone_client, name), UndertoneError)


def test_every_code_of_the_service_has_a_type() -> None:
    source = (ROOT / "packages/contract/src/errors.ts").read_text(encoding="utf-8")
    codes = set(re.findall(r"^  (\w+): \{ status: \d+", source, flags=re.MULTILINE))
    assert "rate_limited" in codes
    assert codes <= set(get_args(ErrorCode))
