"""One test per row of the documented tables, named after the row."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, Callable

import pytest

from undertone_client import (
    ConfigError,
    InvalidRequestIdError,
    MissingApiKeyError,
    MissingFileError,
    PredictionTimeoutError,
    RequestFailedError,
    UploadFailedError,
)

from .support.clients import MIB, scrambled
from .support.flaky_server import DISCRETE_ANSWER, KEY, TIMELINE, Fault, FlakyServer
from .support.programs import run_on_terminal, start

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin
    from .support.flaky_server import Seen

UNKNOWN_ID = "0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10"

pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def configured(flaky: FlakyServer, monkeypatch: pytest.MonkeyPatch) -> FlakyServer:
    """Point the environment to a server."""
    for name, value in flaky.environment.items():
        monkeypatch.setenv(name, value)
    return flaky


def part_sizes(server: FlakyServer) -> list[int]:
    return [len(seen.body) for seen in sorted(server.calls("part"), key=lambda seen: seen.part or 0)]


class TestClientConstruction:
    def test_api_key_is_sent_in_the_header_x_api_key(
        self, flaky: FlakyServer, monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin
    ) -> None:
        monkeypatch.setenv("SERVICE_URL", flaky.origin)
        make_twin(KEY).discrete.emotions(scrambled(10))
        make_twin(api_key=KEY).discrete.emotions(scrambled(10))
        assert [seen.headers["x-api-key"] for seen in flaky.seen] == [KEY, KEY]

    def test_part_size_is_5_mib_by_default_or_set_by_the_constructor(
        self, configured: FlakyServer, make_twin: MakeTwin
    ) -> None:
        make_twin().asynch.upload(scrambled(5 * MIB + 1))
        assert part_sizes(configured) == [5 * MIB, 1]
        configured.seen.clear()
        make_twin(KEY, 2 * MIB).asynch.upload(scrambled(5 * MIB))
        assert part_sizes(configured) == [2 * MIB, 2 * MIB, MIB]

    @pytest.mark.parametrize("name", ["EmotionClient", "AsyncEmotionClient"])
    def test_show_progress_draws_a_bar_on_a_terminal_unless_false(self, flaky: FlakyServer, name: str) -> None:
        flaky.pending_polls = 1
        program = (
            "import asyncio, inspect, sys, undertone_client\n"
            "settings = {'show_progress': False} if sys.argv[2] == 'no' else {}\n"
            "async def main():\n"
            "    client = getattr(undertone_client, sys.argv[1])(**settings)\n"
            "    result = client.asynch.classify(b'x' * 1000, interval=1000)\n"
            "    print((await result if inspect.isawaitable(result) else result).status)\n"
            "    closed = client.close()\n"
            "    if closed: await closed\n"
            "asyncio.run(main())\n"
        )
        drawn, out = run_on_terminal(program, flaky.environment, name, "yes")
        assert "Uploading: 100%|" in drawn
        assert "Classifying:  50%|" in drawn
        assert drawn.endswith("\n")
        silent, out = run_on_terminal(program, flaky.environment, name, "no")
        assert (silent, out) == ("", "completed\n")

    @pytest.mark.parametrize(("settings", "expected"), [({}, 3), ({"max_threads": 1}, 1), ({"max_threads": 5}, 5)])
    def test_max_threads_is_3_by_default_or_set_by_the_constructor(
        self, flaky: FlakyServer, make_twin: MakeTwin, settings: dict[str, int], expected: int
    ) -> None:
        def faults(seen: Seen) -> Fault | None:
            """Hold the first parts until all concurrent ones have arrived, then wait a little: no more may come."""
            deadline = time.monotonic() + 60
            while 1 <= (seen.part or 0) <= expected and flaky.in_flight < expected and time.monotonic() < deadline:
                time.sleep(0.005)
            return Fault("slow", seconds=0.05) if seen.part else None

        flaky.faults = faults
        make_twin(**flaky.settings, part_size=MIB, **settings).asynch.upload(scrambled(10 * MIB))
        assert flaky.peak_concurrency == expected

    @pytest.mark.parametrize(("settings", "tries"), [({}, 6), ({"retry_attempts": 0}, 1), ({"retry_attempts": 2}, 3)])
    def test_retry_attempts_is_5_by_default_or_set_by_the_constructor(
        self, flaky: FlakyServer, make_twin: MakeTwin, settings: dict[str, int], tries: int
    ) -> None:
        flaky.faults = lambda _seen: Fault("answer", status=500)
        with pytest.raises(RequestFailedError):
            make_twin(**flaky.settings, **settings).asynch.emotions(UNKNOWN_ID)
        assert len(flaky.seen) == tries


class TestEnvironmentVariables:
    def test_service_api_key_is_used_if_the_constructor_has_no_key(
        self, configured: FlakyServer, make_twin: MakeTwin
    ) -> None:
        make_twin().discrete.emotions(scrambled(10))
        assert configured.seen[0].headers["x-api-key"] == KEY

    def test_service_url_applies_to_all_requests_with_or_without_trailing_slashes(
        self, flaky: FlakyServer, monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin
    ) -> None:
        for address in (flaky.origin, f"{flaky.origin}/", f"{flaky.origin}//"):
            flaky.seen.clear()
            monkeypatch.setenv("SERVICE_URL", address)
            twin = make_twin(KEY)
            twin.discrete.emotions(scrambled(10))
            twin.asynch.upload(scrambled(10))
            twin.models()
            paths = [seen.url.split("?")[0] for seen in flaky.seen if seen.route != "part"]
            tails = ("discrete/emotion", "asynch/upload/initiate", "asynch/upload/complete", "models")
            assert paths == [f"{flaky.origin}/v1/{tail}" for tail in tails]

    def test_service_discrete_url_is_the_full_url_for_short_recordings(
        self, flaky: FlakyServer, monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin
    ) -> None:
        monkeypatch.setenv("SERVICE_DISCRETE_URL", f"{flaky.origin}/discrete/emotion?tenant=7")
        make_twin(KEY).discrete.emotions(scrambled(10), model="7emotions")
        assert flaky.seen[0].url == f"{flaky.origin}/discrete/emotion?tenant=7&model=7emotions"

    def test_service_asynch_url_is_the_base_url_of_asynch_paths(
        self, flaky: FlakyServer, monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin
    ) -> None:
        monkeypatch.setenv("SERVICE_ASYNCH_URL", f"{flaky.origin}/asynch/")
        make_twin(KEY).asynch.upload(scrambled(10))
        paths = [seen.url.split("?")[0] for seen in flaky.seen if seen.route != "part"]
        assert paths == [f"{flaky.origin}/asynch/upload/{step}" for step in ("initiate", "complete")]

    @pytest.mark.parametrize(
        ("level", "spoken"),
        [
            ("DEBUG", {"DEBUG", "INFO", "WARNING"}),
            ("trace", {"DEBUG", "INFO", "WARNING"}),
            ("INFO", {"INFO", "WARNING"}),
            ("Warning", {"WARNING"}),
            ("warn", {"WARNING"}),
            ("ERROR", set()),
            ("fatal", set()),
            ("silent", set()),
        ],
    )
    def test_service_log_level_sets_the_level_of_the_logger(
        self,
        configured: FlakyServer,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        make_twin: MakeTwin,
        level: str,
        spoken: set[str],
    ) -> None:
        logger = logging.getLogger("undertone_client")
        monkeypatch.setattr(logger, "level", logger.level)
        monkeypatch.setenv("SERVICE_LOG_LEVEL", level)
        configured.faults = lambda seen: Fault("answer", status=500) if (seen.route, seen.time) == ("part", 0) else None
        twin = make_twin()
        logger.setLevel(logger.level)  # clear the cache of logging
        twin.asynch.upload(scrambled(10))
        assert {record.levelname for record in caplog.records if record.name == "undertone_client"} == spoken

    def test_service_log_level_writes_to_stderr_if_the_program_configures_no_logging(self, flaky: FlakyServer) -> None:
        program = "import sys, undertone_client\n{}\nundertone_client.EmotionClient().asynch.upload(b'x')"
        loud = {**flaky.environment, "SERVICE_LOG_LEVEL": "INFO"}
        _, err = start(program.format(""), loud).communicate(timeout=120)
        assert re.fullmatch(r"undertone_client INFO: Request [0-9a-f-]{36}: 1 parts sent\.\n", err)
        configured = "import logging; logging.basicConfig(format='mine: %(message)s')"
        _, err = start(program.format(configured), loud).communicate(timeout=120)
        assert re.fullmatch(r"mine: Request [0-9a-f-]{36}: 1 parts sent\.\n", err)
        _, err = start(program.format(""), flaky.environment).communicate(timeout=120)
        assert err == ""

    def test_service_log_level_rejects_unknown_levels(
        self, monkeypatch: pytest.MonkeyPatch, make_twin: MakeTwin
    ) -> None:
        monkeypatch.setenv("SERVICE_LOG_LEVEL", "loud")
        with pytest.raises(ConfigError, match=r"SERVICE_LOG_LEVEL.*debug, info, .*error, .*silent"):
            make_twin(KEY).validate_config()

    def test_validate_config_raises_one_error_with_every_problem(self, make_twin: MakeTwin) -> None:
        with pytest.raises(ConfigError) as caught:
            make_twin(part_size=7, max_threads=0, asynch_url="nowhere").validate_config()
        assert len(caught.value.problems) == 4
        make_twin(KEY).validate_config()


class TestDiscreteEmotions:
    def test_file_path_is_sent_as_the_form_field_file_and_the_result_is_returned(
        self, flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
    ) -> None:
        result = make_twin(**flaky.settings).discrete.emotions(str(make_file(5000, "hello.wav")))
        assert result.to_dict() == DISCRETE_ANSWER
        (call,) = flaky.calls("discrete")
        assert call.headers["content-type"].startswith("multipart/form-data; boundary=")
        assert b'name="file"; filename="hello.wav"' in call.body
        assert scrambled(5000) in call.body

    def test_raises_when_the_file_is_missing(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        with pytest.raises(MissingFileError, match="no such file"):
            make_twin(**flaky.settings).discrete.emotions("/there/is/no/such.wav")
        assert flaky.seen == []

    def test_raises_when_the_api_key_is_missing(self, make_twin: MakeTwin) -> None:
        with pytest.raises(MissingApiKeyError, match="SERVICE_API_KEY"):
            make_twin().discrete.emotions(scrambled(10))

    def test_raises_when_the_request_failed(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        twin = make_twin(**{**flaky.settings, "api_key": "another"})
        with pytest.raises(RequestFailedError) as caught:
            twin.discrete.emotions(scrambled(10))
        error = caught.value
        assert (error.status, error.code, error.request_id) == (401, "invalid_api_key", "http-1")


class TestAsynchUpload:
    def test_file_path_arrives_byte_for_byte_and_the_request_id_is_returned(
        self, flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
    ) -> None:
        path = make_file(3 * MIB + 17)
        request_id = make_twin(**flaky.settings, part_size=MIB).asynch.upload(str(path))
        assert flaky.assembled(request_id) == path.read_bytes()
        assert flaky.uploads[request_id].query["file_name"] == "talk.wav"

    def test_part_size_is_positional_or_named_from_1_mb_to_100_mb(
        self, flaky: FlakyServer, make_twin: MakeTwin
    ) -> None:
        twin = make_twin(**flaky.settings)
        twin.asynch.upload(scrambled(3 * MIB), MIB)
        twin.asynch.upload(scrambled(3 * MIB), part_size=MIB)
        assert len(flaky.calls("part")) == 6
        for wrong in (MIB - 1, 100 * MIB + 1):
            with pytest.raises(ConfigError, match="bytes"):
                twin.asynch.upload(scrambled(10), wrong)
        assert len(flaky.calls("initiate")) == 2

    @pytest.mark.parametrize(("retries", "tries"), [(None, 4), (1, 2), (0, 1)])
    def test_max_retries_is_positional_or_named_and_3_for_each_part_by_default(
        self, flaky: FlakyServer, make_twin: MakeTwin, retries: int | None, tries: int
    ) -> None:
        flaky.faults = lambda seen: Fault("answer", status=500) if seen.route == "part" else None
        twin = make_twin(**flaky.settings)
        positional: tuple[Any, ...] = () if retries is None else (None, retries)
        named = {} if retries is None else {"max_retries": retries}
        for args, settings in ((positional, {}), ((), named)):
            flaky.seen.clear()
            with pytest.raises(UploadFailedError):
                twin.asynch.upload(scrambled(10), *args, **settings)
            assert len(flaky.calls("part")) == tries

    def test_raises_when_the_file_is_missing(self, flaky: FlakyServer, make_twin: MakeTwin, tmp_path: Path) -> None:
        twin = make_twin(**flaky.settings)
        with pytest.raises(MissingFileError, match="no such file"):
            twin.asynch.upload("/there/is/no/such.wav")
        with pytest.raises(MissingFileError, match="folder"):
            twin.asynch.upload(tmp_path)
        assert flaky.seen == []

    def test_raises_when_the_api_key_is_missing(self, make_twin: MakeTwin) -> None:
        with pytest.raises(MissingApiKeyError, match="SERVICE_API_KEY"):
            make_twin().asynch.upload(scrambled(10))

    def test_raises_when_the_upload_failed(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        flaky.faults = lambda seen: Fault("answer", status=403) if seen.route == "part" else None
        with pytest.raises(UploadFailedError) as caught:
            make_twin(**flaky.settings).asynch.upload(scrambled(10))
        assert caught.value.status == 403
        assert flaky.deleted == {caught.value.request_id}


class TestAsynchEmotions:
    def test_request_id_returns_the_asynch_result(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        twin = make_twin(**flaky.settings)
        request_id = twin.asynch.upload(scrambled(10))
        result = twin.asynch.emotions(request_id).to_dict()
        assert result == {"request_id": request_id, "status": "completed", "emotions": TIMELINE}

    def test_max_tries_is_20_by_default_positional_or_named_from_1_to_100(
        self, flaky: FlakyServer, make_twin: MakeTwin
    ) -> None:
        flaky.pending_polls = 1000
        twin = make_twin(**flaky.settings)
        request_id = twin.asynch.upload(scrambled(10))
        for args, settings, tries in (((), {}, 20), ((3,), {}, 3), ((), {"max_tries": 100}, 100)):
            flaky.seen.clear()
            with pytest.raises(PredictionTimeoutError):
                twin.asynch.emotions(request_id, *args, **settings)
            assert len(flaky.calls("prediction")) == tries
        for wrong in (0, 101):
            with pytest.raises(ConfigError):
                twin.asynch.emotions(request_id, wrong)

    def test_interval_is_milliseconds_5000_by_default_positional_or_named_from_1000_to_60000(
        self, flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
    ) -> None:
        flaky.pending_polls = 2
        twin = make_twin(**flaky.settings)
        for args, settings, wait in (((), {}, 5000), ((20, 1000), {}, 1000), ((), {"interval": 60_000}, 60_000)):
            request_id = twin.asynch.upload(scrambled(10))
            waits.clear()
            twin.asynch.emotions(request_id, *args, **settings)
            assert waits == [wait, wait]
        for wrong in (999, 60_001):
            with pytest.raises(ConfigError, match="milliseconds"):
                twin.asynch.emotions(UNKNOWN_ID, interval=wrong)

    def test_raises_when_the_request_id_is_invalid(self, flaky: FlakyServer, make_twin: MakeTwin) -> None:
        twin = make_twin(**flaky.settings)
        with pytest.raises(InvalidRequestIdError):
            twin.asynch.emotions("not-an-id")
        assert flaky.seen == []
        with pytest.raises(InvalidRequestIdError):
            twin.asynch.emotions(UNKNOWN_ID)

    def test_raises_when_the_prediction_timed_out_and_reports_progress(
        self, flaky: FlakyServer, make_twin: MakeTwin
    ) -> None:
        flaky.pending_polls = 9
        twin = make_twin(**flaky.settings)
        request_id = twin.asynch.upload(scrambled(10))
        with pytest.raises(
            PredictionTimeoutError, match=r"^Not finished after 4 tries: .*processing, 40 % done"
        ) as caught:
            twin.asynch.emotions(request_id, 4, 2000)
        assert caught.value.request_id == request_id

    def test_rule_1_it_waits_between_tries_but_not_after_the_last(
        self, flaky: FlakyServer, make_twin: MakeTwin, waits: list[int]
    ) -> None:
        flaky.pending_polls = 99
        twin = make_twin(**flaky.settings)
        request_id = twin.asynch.upload(scrambled(10))
        with pytest.raises(PredictionTimeoutError):
            twin.asynch.emotions(request_id, 3)
        assert len(waits) == 2

    def test_rule_2_an_interval_in_seconds_raises_and_mentions_milliseconds(
        self, flaky: FlakyServer, make_twin: MakeTwin
    ) -> None:
        with pytest.raises(ConfigError, match=r"interval is 5: .*milliseconds.*1000 to 60000"):
            make_twin(**flaky.settings).asynch.emotions(UNKNOWN_ID, 20, 5)
        assert flaky.seen == []
