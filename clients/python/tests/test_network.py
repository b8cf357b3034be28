"""Network and server faults."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import pickle
import random
import socket
import time
from typing import TYPE_CHECKING, Any, Callable

import pytest

from undertone_client import AsyncEmotionClient, ConfigError, RequestFailedError, UndertoneError, UploadFailedError

from .support.clients import MIB, scrambled
from .support.flaky_server import DISCRETE_ANSWER, KEY, Fault, FlakyServer

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin
    from .support.flaky_server import Seen

RECORDING = scrambled(3 * MIB + 1234)

FAULTS = {
    "rejected with 500": Fault("answer", status=500),
    "rejected with 503 and Retry-After": Fault("answer", status=503, headers={"retry-after": "1"}),
    "cut before the first byte": Fault("cut"),
    "cut in the middle": Fault("cut", after_bytes=300_000),
    "stored but the response is lost": Fault("silent"),
    "acknowledged without an ETag": Fault("no-etag"),
    "corrupted in transit": Fault("damage"),
    "acknowledged without an ETag and not stored": Fault("forget"),
}

pytestmark = pytest.mark.usefixtures("waits")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_file_arrives_intact_when_a_part_is(fault: Fault, flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: fault if (seen.part, seen.time) == (2, 0) else None
    request_id = make_twin(**flaky.settings, part_size=MIB).asynch.upload(RECORDING)
    assert flaky.assembled(request_id) == RECORDING


def test_random_faults_give_an_intact_file_or_a_resumable_upload(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    chance = random.Random(20_261)
    recording = RECORDING[: 2 * MIB + 99]
    choices = [*FAULTS.values(), None, None, None]
    outcomes = set()
    for _ in range(20):
        plan = [[chance.choice(choices) for _ in range(5)] for _ in range(3)]
        flaky.seen.clear()
        flaky.uploads.clear()

        def faults(seen: Seen, plan: list[list[Fault | None]] = plan) -> Fault | None:
            return plan[seen.part - 1][seen.time] if seen.part is not None and seen.time < 5 else None

        flaky.faults = faults
        twin = make_twin(**flaky.settings, part_size=MIB, max_threads=2)
        try:
            request_id = twin.asynch.upload(recording)
        except UploadFailedError as error:
            flaky.faults = lambda _seen: None
            if "after 3 retries" in str(error):
                stored = flaky.uploads[str(error.request_id)].parts.items()
                if all(body == recording[(part - 1) * MIB : part * MIB] for part, body in stored):
                    continued = twin.asynch.upload(recording, resume=error.request_id)
                    assert flaky.assembled(continued) == recording
                else:
                    with pytest.raises(UploadFailedError, match="belong to another recording"):
                        twin.asynch.upload(recording, resume=error.request_id)
            else:
                assert "send them again" in str(error)
                assert flaky.uploads == {}
            outcomes.add("failed")
        else:
            assert flaky.assembled(request_id) == recording
            outcomes.add("arrived")
    assert "arrived" in outcomes


class TestInRealTime:
    """With real delays instead of recorded ones."""

    @pytest.fixture
    def waits(self) -> None:
        """Do not replace the delays."""

    def test_retry_after_of_one_second_is_respected(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        busy = Fault("answer", status=503, headers={"retry-after": "1"})
        flaky.faults = lambda seen: busy if (seen.part, seen.time) == (1, 0) else None
        started = time.monotonic()
        request_id = make_twin(**flaky.settings).asynch.upload(RECORDING)
        assert 1 <= time.monotonic() - started < 5
        assert flaky.assembled(request_id) == RECORDING


def test_a_part_that_stays_corrupted_raises(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: Fault("damage") if seen.part == 1 else None
    with pytest.raises(UploadFailedError, match=r"^Part 1 was corrupted in transit\. \(after 3 retries\)$") as caught:
        make_twin(**flaky.settings).asynch.upload(RECORDING)
    assert caught.value.code == "etag_mismatch"
    assert flaky.calls("complete") == []


def test_etags_of_kms_encrypted_parts_are_returned_unchanged(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.encrypts = True
    request_id = make_twin(**flaky.settings, part_size=MIB).asynch.upload(RECORDING)
    assert flaky.assembled(request_id) == RECORDING
    assert len(flaky.calls("part")) == 4, "no part was sent twice"


def test_only_parts_reported_missing_are_sent_again(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: Fault("forget") if (seen.part, seen.time) == (3, 0) else None
    request_id = make_twin(**flaky.settings, part_size=MIB).asynch.upload(RECORDING)
    assert flaky.assembled(request_id) == RECORDING
    assert sorted(seen.part or 0 for seen in flaky.calls("part")) == [1, 2, 3, 3, 4]
    assert len(flaky.calls("complete")) == 2


def test_a_lost_response_to_complete_is_retried(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: Fault("silent") if (seen.route, seen.time) == ("complete", 0) else None
    assert flaky.assembled(make_twin(**flaky.settings).asynch.upload(RECORDING)) == RECORDING


def test_a_failed_upload_is_deleted_and_a_failed_deletion_does_not_hide_the_error(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**flaky.settings, part_size=MIB)
    flaky.faults = lambda seen: Fault("answer", status=403) if seen.route == "part" else None
    with pytest.raises(UploadFailedError):
        twin.asynch.upload(RECORDING)
    assert len(flaky.deleted) == 1
    answers = {"part": Fault("answer", status=403), "delete": Fault("answer", status=500)}
    flaky.faults = lambda seen: answers.get(seen.route)
    with pytest.raises(UploadFailedError) as caught:
        twin.asynch.upload(RECORDING)
    assert caught.value.status == 403


def test_the_first_permanent_failure_of_a_part_cancels_the_others(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    def faults(seen: Seen) -> Fault | None:
        if seen.part is None:
            return None
        return Fault("answer", status=413) if seen.part == 1 else Fault("slow", seconds=20)

    flaky.faults = faults
    started = time.monotonic()
    with pytest.raises(UploadFailedError) as caught:
        make_twin(**flaky.settings, part_size=MIB, max_threads=2).asynch.upload(scrambled(20 * MIB))
    assert caught.value.status == 413
    assert time.monotonic() - started < 10
    assert len(flaky.calls("part")) <= 3


def test_presigned_urls_receive_the_part_but_never_the_key(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    make_twin(**flaky.settings).asynch.upload(RECORDING)
    (call,) = flaky.calls("part")
    assert "x-api-key" not in call.headers
    assert call.headers["content-length"] == str(len(RECORDING))
    assert "transfer-encoding" not in call.headers
    assert call.query["signature"] == "secret-signature"


def test_logs_and_errors_contain_no_key_signature_or_file_name(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    flaky.faults = lambda seen: Fault("cut", after_bytes=10) if seen.route == "part" else None
    twin = make_twin(**flaky.settings)
    with pytest.raises(UploadFailedError) as caught:
        twin.asynch.upload(make_file(1000, "my-therapist.wav"))
    lines = [record.getMessage() for record in caplog.records]
    assert sum(record.name == "undertone_client" for record in caplog.records) > 5
    for text in [*lines, str(caught.value), repr(caught.value), repr(twin.client), repr(twin.client._config)]:
        for secret in (KEY, "secret-signature", "my-therapist"):
            assert secret not in text


@pytest.fixture
def vacant_port() -> int:
    """Return a local port without a listener."""
    with socket.socket() as vacant:
        vacant.bind(("127.0.0.1", 0))
        return int(vacant.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_local_server_that_is_not_running_raises_immediately_with_instructions(
    host: str, vacant_port: int, make_twin: MakeTwin, waits: list[int]
) -> None:
    address = f"http://{host}:{vacant_port}"
    twin = make_twin(KEY, base_url=address)
    for operation, kind in ((twin.asynch.upload, UploadFailedError), (twin.discrete.emotions, RequestFailedError)):
        with pytest.raises(kind, match=rf"No server is running at {address}\. Start one .*set SERVICE_URL") as caught:
            operation(RECORDING)
        assert (caught.value.code, caught.value.status) == ("connection_failed", None)
        assert isinstance(caught.value.cause, Exception)
    assert waits == []


def test_a_remote_server_that_refuses_connections_is_retried(
    vacant_port: int, make_twin: MakeTwin, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("undertone_client._responses.is_loopback", lambda _address: False)
    twin = make_twin(KEY, retry_attempts=3, base_url=f"http://127.0.0.1:{vacant_port}")
    with pytest.raises(UploadFailedError, match=r"failed: .*\(after 3 retries\)"):
        twin.asynch.upload(RECORDING)
    with pytest.raises(RequestFailedError, match=r"failed: .*\(after 2 retries\)"):
        twin.discrete.emotions(RECORDING)
    assert len(waits) == 3 + 2


@pytest.mark.parametrize(
    "fault",
    [*(Fault("answer", status=status) for status in (429, 502, 503, 504)), Fault("cut"), Fault("silent")],
    ids=["429", "502", "503", "504", "cut", "response lost"],
)
def test_a_short_recording_is_retried_twice(
    fault: Fault, flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    twin = make_twin(**flaky.settings, retry_attempts=0)
    flaky.faults = lambda seen: fault if seen.time < 2 else None
    assert twin.discrete.emotions(RECORDING).main_emotion == "happy"
    assert [RECORDING in seen.body for seen in flaky.seen][-1]
    assert 250 <= waits[0] <= 500 <= waits[1] <= 1000
    flaky.seen.clear()
    flaky.faults = lambda _seen: fault
    with pytest.raises(RequestFailedError, match=r"\(after 2 retries\)"):
        twin.discrete.emotions(RECORDING)
    assert len(flaky.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 408, 413, 422, 500])
def test_a_permanently_refused_short_recording_is_not_retried(
    status: int, flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
) -> None:
    flaky.faults = lambda _seen: Fault("answer", status=status)
    with pytest.raises(RequestFailedError) as caught:
        make_twin(**flaky.settings).discrete.emotions(RECORDING)
    assert (caught.value.status, len(flaky.seen), waits) == (status, 1, [])


@pytest.mark.parametrize(("header", "seconds"), [("3.25", 3.25), ("0", 0), ("soon", None), ("-1", None)])
def test_speech_seconds_are_read_from_a_header(
    header: str, seconds: float | None, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    headers = {"content-type": "application/json", "x-speech-seconds": header}
    flaky.faults = lambda _seen: Fault("answer", status=200, headers=headers, body=json.dumps(DISCRETE_ANSWER).encode())
    assert make_twin(**flaky.settings).discrete.emotions(RECORDING).speech_seconds == seconds


def test_a_server_that_never_responds_times_out(make_twin: MakeTwin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undertone_client._upload._PART_TIMEOUT_SECONDS", 0.3)
    server = FlakyServer()
    server.faults = lambda seen: Fault("slow", seconds=1) if seen.route == "part" else None
    try:
        with pytest.raises(UploadFailedError, match="did not respond in time") as caught:
            make_twin(**server.settings).asynch.upload(RECORDING, max_retries=0)
        assert caught.value.code == "timed_out"
    finally:
        server.stop()


def test_errors_can_be_pickled(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda _seen: Fault("answer", status=403)
    twin = make_twin(**flaky.settings)
    for operation in (twin.asynch.upload, twin.discrete.emotions):
        with pytest.raises(UndertoneError, match="403") as caught:
            operation(b"x")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.status) == (type(caught.value), str(caught.value), 403)
    for settings in ({"part_size": 1}, {"part_size": 1, "max_threads": 0}):
        with pytest.raises(ConfigError, match="part_size") as config:
            make_twin(KEY, **settings).validate_config()
        assert isinstance(config.value, ValueError)
        again = pickle.loads(pickle.dumps(config.value))
        assert (again.problems, str(again)) == (config.value.problems, str(config.value))


def test_cancelling_a_task_stops_the_upload_and_it_can_be_resumed(flaky: FlakyServer) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=20) if seen.route == "part" else None

    async def main() -> None:
        async with AsyncEmotionClient(**flaky.settings, part_size=MIB) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.asynch.upload(RECORDING), 1)

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 10
    assert len(flaky.uploads) == 1


def test_an_upload_does_not_block_the_event_loop(flaky: FlakyServer) -> None:
    flaky.faults = lambda seen: Fault("slow", seconds=0.5) if seen.route == "part" else None

    async def main() -> int:
        async with AsyncEmotionClient(**flaky.settings) as client:
            upload = asyncio.ensure_future(client.asynch.upload(RECORDING))
            for turns in itertools.count():
                if upload.done():
                    return turns
                await asyncio.sleep(0.01)
            raise AssertionError

    assert asyncio.run(main()) > 10


def test_threads_can_share_one_client(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    from concurrent.futures import ThreadPoolExecutor

    recordings = [scrambled(MIB + i) for i in range(6)]

    def send(recording: bytes) -> bytes:
        twin: Any = shared if shared is not None else make_twin(**flaky.settings)
        return flaky.assembled(twin.asynch.upload(recording))

    candidate = make_twin(**flaky.settings)
    # The connections of an async client belong to one event loop, and so to one thread.
    shared = None if isinstance(candidate.client, AsyncEmotionClient) else candidate
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(send, recordings)) == recordings
