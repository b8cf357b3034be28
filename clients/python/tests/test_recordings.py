"""Accepted recordings, limits, and files that change during an upload."""

from __future__ import annotations

import io
import os
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Callable

import pytest

from undertone_client import ConfigError, MissingFileError, RequestFailedError, UploadFailedError

from .support.clients import MIB, scrambled

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin
    from .support.flaky_server import FlakyServer, Seen

SIZE = 2 * MIB + 77
RECORDING = scrambled(SIZE)

KINDS: dict[str, Callable[[Path], Any]] = {
    "a path as text": str,
    "a path": lambda path: path,
    "bytes": lambda path: path.read_bytes(),
    "a bytearray": lambda path: bytearray(path.read_bytes()),
    "a memoryview": lambda path: memoryview(path.read_bytes()),
    "a file in memory": lambda path: io.BytesIO(path.read_bytes()),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_both_interfaces_accept(
    kind: Callable[[Path], Any], flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    path = make_file(SIZE)
    twin = make_twin(**flaky.settings, part_size=MIB)
    assert flaky.assembled(twin.asynch.upload(kind(path))) == RECORDING
    twin.discrete.emotions(kind(path))
    assert RECORDING in flaky.calls("discrete")[0].body


def test_an_open_file_is_read_from_its_position_and_only_its_base_name_is_sent(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    with make_file(SIZE, "Gespräch mit Anna?.wav").open("rb") as file:
        request_id = make_twin(**flaky.settings).asynch.upload(file)
        assert not file.closed
    assert flaky.assembled(request_id) == RECORDING
    assert flaky.uploads[request_id].query["file_name"] == "Gespräch mit Anna?.wav"


def test_a_pipe_is_accepted_like_a_file(flaky: FlakyServer, make_twin: MakeTwin, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(RECORDING,))
    writer.start()
    request_id = make_twin(**flaky.settings).asynch.upload(pipe)
    writer.join()
    assert flaky.assembled(request_id) == RECORDING


def test_temporary_files_are_removed(
    flaky: FlakyServer, make_twin: MakeTwin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            raise OSError("the microphone fell down")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    twin = make_twin(**flaky.settings)
    twin.asynch.upload(io.BytesIO(RECORDING))
    with pytest.raises(OSError, match="microphone"):
        twin.asynch.upload(Broken())
    assert list(tmp_path.iterdir()) == []


def test_an_endless_stream_is_rejected_at_the_limit_and_nothing_is_sent(
    flaky: FlakyServer, make_twin: MakeTwin
) -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1, /) -> bytes:
            self.given += size
            return bytes(size)

    stream = Endless()
    with pytest.raises(RequestFailedError) as caught:
        make_twin(**flaky.settings).discrete.emotions(stream)
    assert caught.value.code == "file_too_large"
    assert stream.given < 40 * MIB
    assert flaky.seen == []


def test_a_file_over_the_limit_is_rejected_before_anything_is_sent(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    path = make_file(0)
    os.truncate(path, 1024 * MIB + 1)
    twin = make_twin(**flaky.settings)
    with pytest.raises(UploadFailedError, match="1 GiB") as upload:
        twin.asynch.upload(path)
    with pytest.raises(RequestFailedError, match="32 MiB") as discrete:
        twin.discrete.emotions(path)
    assert upload.value.code == discrete.value.code == "file_too_large"
    assert flaky.seen == []


def test_an_empty_file_is_rejected_before_anything_is_sent(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    with pytest.raises(UploadFailedError, match="empty") as caught:
        make_twin(**flaky.settings).asynch.upload(make_file(0))
    assert caught.value.code == "audio_too_short"
    assert flaky.seen == []


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shrink(path: Path) -> None:
    os.truncate(path, 1000)


def write_over(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4 * MIB)
        file.write(b"other")


@pytest.mark.parametrize(("change", "says"), [(grow, "grew"), (shrink, "shrank"), (write_over, "was written to")])
def test_a_file_that_changes_during_the_upload_raises_and_the_request_is_deleted(
    change: Callable[[Path], None],
    says: str,
    flaky: FlakyServer,
    make_twin: MakeTwin,
    make_file: Callable[..., Path],
) -> None:
    path = make_file(5 * MIB)

    def faults(seen: Seen) -> None:
        if (seen.part, seen.time) == (2, 0):
            change(path)

    flaky.faults = faults
    with pytest.raises(UploadFailedError, match=says) as caught:
        make_twin(**flaky.settings, part_size=MIB, max_threads=1).asynch.upload(path)
    assert caught.value.code == "file_changed"
    assert flaky.calls("complete") == []
    assert len(flaky.deleted) == 1


def test_values_that_are_not_recordings_are_rejected(
    flaky: FlakyServer, make_twin: MakeTwin, make_file: Callable[..., Path]
) -> None:
    twin = make_twin(**flaky.settings)
    nothing: list[Any] = [None, 7, {}, [1, 2]]
    for wrong in nothing:
        with pytest.raises(ConfigError, match="Not a recording"):
            twin.asynch.upload(wrong)
    with pytest.raises(ConfigError, match="either file_path or samples"):
        twin.discrete.emotions()
    with make_file(100).open(encoding="latin-1") as text, pytest.raises(ConfigError, match='"rb"'):
        twin.asynch.upload(text)
    with pytest.raises(MissingFileError):
        twin.asynch.upload("a\0b")
    assert flaky.seen == []


def test_an_unknown_model_is_rejected_before_anything_is_sent(flaky: FlakyServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**flaky.settings)
    for operation in (twin.discrete.emotions, twin.asynch.upload, twin.asynch.classify):
        with pytest.raises(ConfigError, match="no model '9emotions': choose one of 4emotions"):
            operation(RECORDING, model="9emotions")
    assert flaky.seen == []
