"""Resumed uploads and lost responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from undertone_client import Progress, UploadFailedError

from .support.clients import MIB, scrambled
from .support.flaky_server import Fault, FlakyServer

if TYPE_CHECKING:
    from .conftest import MakeTwin
    from .support.flaky_server import Seen

RECORDING = scrambled(12 * MIB + 77)

pytestmark = pytest.mark.usefixtures("waits")


def test_an_upload_interrupted_five_times_is_resumed_with_little_overhead(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    left = 0

    def faults(seen: Seen) -> Fault | None:
        nonlocal left
        if seen.route != "part":
            return None
        left -= 1
        return None if left >= 0 else Fault("cut", after_bytes=1000)

    flaky.faults = faults
    resume = None
    for _ in range(5):
        left = 2
        with pytest.raises(UploadFailedError) as caught:
            make_twin(**flaky.settings, part_size=MIB, max_threads=1).asynch.upload(
                RECORDING, max_retries=0, resume=resume
            )
        resume = caught.value.request_id
    left = 99
    events: list[Progress] = []
    request_id = make_twin(**flaky.settings).asynch.upload(RECORDING, resume=resume, on_progress=events.append)
    assert request_id == resume
    assert flaky.assembled(request_id) == RECORDING
    assert sum(len(seen.body) for seen in flaky.calls("part")) <= 1.15 * len(RECORDING)
    assert len(flaky.calls("initiate")) == 1
    assert (events[-1].sent_bytes, events[-1].progress) == (len(RECORDING), 1)


def test_resuming_with_another_recording_is_rejected(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    flaky.faults = lambda seen: Fault("answer", status=500) if seen.part == 3 else None
    twin = make_twin(**flaky.settings, part_size=MIB, max_threads=1)
    with pytest.raises(UploadFailedError) as caught:
        twin.asynch.upload(RECORDING, max_retries=0)
    flaky.faults = lambda _seen: None
    resume = caught.value.request_id
    changed = RECORDING[:5] + bytes([RECORDING[5] ^ 1]) + RECORDING[6:]
    for other in (changed, RECORDING[1:], scrambled(100)):
        with pytest.raises(UploadFailedError, match="belong to another recording") as refused:
            twin.asynch.upload(other, resume=resume)
        assert (refused.value.code, refused.value.request_id) == ("other_recording", resume)
    assert flaky.deleted == set(), "the upload can still be resumed with the right file"
    assert flaky.assembled(twin.asynch.upload(RECORDING, resume=resume)) == RECORDING


def test_urls_about_to_expire_are_renewed_before_use(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    def faults(seen: Seen) -> None:
        if seen.route == "resume":
            flaky.url_seconds = 3600

    flaky.url_seconds = 30
    flaky.faults = faults
    request_id = make_twin(**flaky.settings, part_size=MIB, max_threads=1).asynch.upload(RECORDING)
    assert flaky.assembled(request_id) == RECORDING
    assert len(flaky.calls("resume")) == 1


@pytest.mark.parametrize(("operation", "route"), [("upload", "initiate"), ("submit", "submit")])
def test_a_lost_response_is_retried_with_the_same_key_and_creates_one_request(
    operation: str, route: str, flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    flaky.faults = lambda seen: Fault("silent") if seen.route == route and seen.time < 2 else None
    send = getattr(make_twin(**flaky.settings).asynch, operation)
    first, second = send(RECORDING), send(RECORDING)
    assert first != second
    assert set(flaky.uploads) == {first, second}
    assert flaky.assembled(first) == RECORDING
    keys = [seen.headers["idempotency-key"] for seen in flaky.calls(route)]
    assert (len(keys), len(set(keys[:3])), len(set(keys))) == (4, 1, 2)
