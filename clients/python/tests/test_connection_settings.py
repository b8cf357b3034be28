"""Timeouts, headers, proxies, an httpx client of one's own, and how this client names itself."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

import httpx
import pytest
from websockets.sync.server import ServerConnection, serve

import undertone_client
from undertone_client import (
    AsyncEmotionClient,
    ConfigError,
    EmotionClient,
    PredictionTimeoutError,
    RequestFailedError,
    RequestTimeoutError,
    UploadFailedError,
)

from .support.clients import MIB, scrambled
from .support.flaky_server import KEY, Fault, FlakyServer

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.clients import Twin

RECORDING = scrambled(1000)
SLOW = Fault("slow", seconds=60)


def test_the_timeout_of_a_client_ends_a_request_that_stalls(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda _seen: SLOW
    with pytest.raises(RequestFailedError, match="did not respond in time") as caught:
        make_twin(**flaky.settings, timeout=0.2).discrete.emotions(RECORDING)
    assert isinstance(caught.value, RequestTimeoutError)
    assert caught.value.code == "timed_out"


CALLS: dict[str, Callable[[Twin], Any]] = {
    "discrete.emotions": lambda twin: twin.discrete.emotions(RECORDING, timeout=0.2),
    "asynch.upload": lambda twin: twin.asynch.upload(RECORDING, timeout=0.2),
    "asynch.submit": lambda twin: twin.asynch.submit(RECORDING, timeout=0.2),
    "asynch.emotions": lambda twin: twin.asynch.emotions(undertone_id(), timeout=0.2),
    "asynch.classify": lambda twin: twin.asynch.classify(RECORDING, timeout=0.2),
    "asynch.status": lambda twin: twin.asynch.status(undertone_id(), timeout=0.2),
    "asynch.list": lambda twin: twin.asynch.list(timeout=0.2),
    "asynch.iter_requests": lambda twin: list(twin.asynch.iter_requests(timeout=0.2)),
    "asynch.delete": lambda twin: twin.asynch.delete(undertone_id(), timeout=0.2),
    "asynch.webhook_secret": lambda twin: twin.asynch.webhook_secret(timeout=0.2),
    "models": lambda twin: twin.models(timeout=0.2),
    "tokens.create": lambda twin: twin.tokens.create(timeout=0.2),
}


def undertone_id() -> str:
    return "0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_timeout_of_a_call_ends_it_with_its_retries(
    call: Callable[[Twin], Any], flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    flaky.faults = lambda _seen: SLOW
    with pytest.raises(RequestTimeoutError):
        call(make_twin(**flaky.settings))
    assert len(flaky.seen) <= 1


def test_a_retry_that_would_exceed_the_timeout_is_not_waited_for(
    flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.faults = lambda _seen: Fault("answer", status=503, headers={"retry-after": "30"})
    with pytest.raises(RequestFailedError, match="not retried: the timeout of this call is over"):
        make_twin(**flaky.settings).discrete.emotions(RECORDING, timeout=20)
    assert waits == []


def test_an_upload_that_times_out_can_be_resumed(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: SLOW if seen.part == 2 else None
    twin = make_twin(**flaky.settings, part_size=MIB)
    recording = scrambled(2 * MIB)
    with pytest.raises(UploadFailedError) as caught:
        twin.asynch.upload(recording, timeout=5)
    assert isinstance(caught.value, RequestTimeoutError)
    flaky.faults = lambda _seen: None
    request_id = twin.asynch.upload(recording, resume=caught.value.request_id)
    assert flaky.assembled(request_id) == recording


def test_waiting_for_a_result_ends_at_the_timeout(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.pending_polls = 100
    twin = make_twin(**flaky.settings)
    request_id = twin.asynch.upload(RECORDING)
    started = time.monotonic()
    with pytest.raises(PredictionTimeoutError) as caught:
        twin.asynch.emotions(request_id, interval=60_000, timeout=3)
    assert time.monotonic() - started < 30
    assert caught.value.request_id == request_id


def test_the_timeout_of_a_batch_counts_for_each_recording(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: SLOW if seen.time == 0 else None
    outcomes = list(make_twin(**flaky.settings).discrete.many([RECORDING] * 3, 1, timeout=5))
    assert [outcome.error.code if outcome.error else None for outcome in outcomes] == ["timed_out", None, None]


def test_recordings_of_a_batch_that_wait_for_their_turn_do_not_time_out(flaky: FlakyServer) -> None:
    flaky.faults = lambda _seen: Fault("slow", seconds=2)
    with EmotionClient(**flaky.settings) as client:  # 4, 8, 16 and 32 requests at a time: 8 seconds
        outcomes = list(client.discrete.many([RECORDING] * 60, 60, timeout=7))
    assert [outcome.error for outcome in outcomes] == [None] * 60


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
def test_an_invalid_timeout_is_rejected_before_anything_is_sent(
    timeout: Any, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    with pytest.raises(ConfigError, match="number of seconds greater than 0"):
        make_twin(**flaky.settings, timeout=timeout).models()
    with pytest.raises(ConfigError, match="number of seconds greater than 0"):
        make_twin(**flaky.settings).discrete.emotions(RECORDING, timeout=timeout)
    assert flaky.seen == []


def test_every_request_names_this_client_and_has_the_headers_of_the_caller(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**flaky.settings, headers={"X-Tenant": "seven"})
    twin.asynch.classify(RECORDING)
    twin.discrete.emotions(RECORDING)
    assert {seen.route for seen in flaky.seen} == {"initiate", "part", "complete", "prediction", "discrete"}
    for seen in flaky.seen:
        assert seen.headers["x-tenant"] == "seven"
        assert seen.headers["user-agent"].startswith(f"undertone-client/{undertone_client.__version__} python/")


def test_the_headers_of_the_caller_do_not_go_to_another_host(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    storage = FlakyServer()
    url = {"part_number": 1, "url": f"{storage.origin}/v1/put/x/1"}
    body = json.dumps({"request_id": undertone_id(), "upload_id": "u", "presigned_urls": [url]}).encode()
    flaky.faults = lambda seen: Fault("answer", body=body) if seen.route == "initiate" else None
    with pytest.raises(UploadFailedError):
        make_twin(**flaky.settings, headers={"x-tenant": "seven"}).asynch.upload(RECORDING)
    (part,) = storage.calls("part")
    storage.stop()
    assert "x-tenant" not in part.headers
    assert "x-api-key" not in part.headers


def test_a_stream_sends_the_same_headers() -> None:
    received: list[Any] = []

    def answer(connection: ServerConnection) -> None:
        assert connection.request
        received.append(connection.request.headers)
        connection.close()

    with serve(answer, "127.0.0.1", 0, subprotocols=["undertone.v1"]) as server:  # type: ignore[list-item]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        with EmotionClient(KEY, base_url=url, headers={"x-tenant": "seven"}) as client, client.stream() as stream:
            stream.write(b"")
        server.shutdown()
    assert received[0].get_all("x-tenant") == ["seven"]
    assert received[0].get_all("user-agent")[0].startswith("undertone-client/")


def test_requests_go_through_the_proxy(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(KEY, base_url="http://service.invalid", proxy=flaky.origin)
    assert twin.discrete.emotions(RECORDING).main_emotion == "happy"
    assert flaky.seen[0].headers["host"] == "service.invalid"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"proxy": "proxy.example:3128"}, "proxy is not a URL"),
        ({"proxy": 7}, "proxy is not a URL"),
        ({"headers": ["x"]}, "headers is not valid"),
        ({"headers": {"x-tenant": "a\nb"}}, "headers is not valid"),
        ({"headers": {"x tenant": "a"}}, "headers is not valid"),
        ({"headers": {"X-API-Key": "a"}}, "pass the key as api_key"),
        ({"http_client": httpx.Client}, r"must be an httpx\.AsyncClient"),
        ({"http_client": httpx.AsyncClient(), "proxy": "http://p:1"}, "either proxy or http_client"),
    ],
)
def test_invalid_connection_settings_are_rejected(settings: dict[str, Any], says: str, make_twin: MakeTwin) -> None:
    with pytest.raises(ConfigError, match=says):
        make_twin("k", **settings).validate_config()


def test_the_settings_of_a_client_do_not_show_secrets() -> None:
    config = EmotionClient("k", headers={"authorization": "hush"}, proxy="http://me:hush@proxy:1")._config
    assert "hush" not in repr(config)


def test_an_httpx_client_of_ones_own_is_used_and_closed_by_the_synchronous_client(flaky: FlakyServer) -> None:
    own = httpx.AsyncClient(headers={"x-mine": "yes"})
    with EmotionClient(**flaky.settings, http_client=own) as client:
        assert client.discrete.emotions(RECORDING).main_emotion == "happy"
    assert flaky.seen[0].headers["x-mine"] == "yes"
    assert own.is_closed
    with pytest.raises(ConfigError, match=r"make a new client with a new httpx\.AsyncClient"):
        client.discrete.emotions(RECORDING)
    client.close()


def test_an_httpx_client_of_ones_own_stays_open_with_asyncio(flaky: FlakyServer) -> None:
    async def main() -> None:
        async with httpx.AsyncClient(headers={"x-mine": "yes"}, follow_redirects=True) as own:
            async with AsyncEmotionClient(**flaky.settings, http_client=own) as client:
                await client.discrete.emotions(RECORDING)
            assert not own.is_closed
            flaky.faults = lambda _seen: Fault("answer", status=307, headers={"location": "http://elsewhere.invalid/"})
            with pytest.raises(RequestFailedError, match="redirects"):
                await client.discrete.emotions(RECORDING)

    asyncio.run(main())
    assert flaky.seen[0].headers["x-mine"] == "yes"
