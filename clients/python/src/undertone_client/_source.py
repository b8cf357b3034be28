"""Recordings as seekable files of known length, whatever the caller passes in."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tempfile
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO, Union, cast

from ._failure import Failure
from .errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A recording: the path of a file, its bytes, or a binary file that is open.
Recording = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]

#: Read size.
PIECE_BYTES = 256 * 1024

DISCRETE_MAX_BYTES = 32 * 1024 * 1024
ASYNCH_MAX_BYTES = 1024**3
MAX_NAME_LENGTH = 255

_NAMELESS = "recording"


class Source:
    """Keeps the file open, so that renaming or replacing it does not change what is read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.file = file
        # Threads share the file position.
        self._lock = threading.Lock()
        self._before = self._state()
        self.size = self._before[0]

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            with self._lock:
                self.file.seek(start)
                piece = self.file.read(min(PIECE_BYTES, end - start))
            if not piece:
                raise _changed("shrank")
            yield piece
            start += len(piece)

    def verify(self) -> None:
        """Raise if the recording has changed since it was opened."""
        size, written = self._state()
        if size != self._before[0]:
            raise _changed("shrank" if size < self._before[0] else "grew")
        if written != self._before[1]:
            raise _changed("was written to")

    def close(self) -> None:
        self.file.close()

    def _state(self) -> tuple[int, int]:
        if isinstance(self.file, io.BytesIO):
            return self.file.getbuffer().nbytes, 0
        now = os.fstat(self.file.fileno())
        return now.st_size, now.st_mtime_ns


def open_source(recording: Recording, max_bytes: int) -> Source:
    """Open a recording. A stream is copied to a temporary file first, because its length is unknown."""
    if isinstance(recording, (bytes, bytearray, memoryview)):
        return Source(io.BytesIO(recording), _NAMELESS)
    if isinstance(recording, (str, os.PathLike)):
        return _open_path(os.fspath(recording), max_bytes)
    if callable(getattr(recording, "read", None)):
        name = getattr(recording, "name", None)
        return _spool(recording, base_name(name) if isinstance(name, str) else _NAMELESS, max_bytes)
    raise ConfigError("Not a recording: give the path of a file, its bytes, or an open binary file.")


def read_whole(recording: Recording) -> tuple[str, bytes]:
    """Read a short recording; return its name and its bytes."""
    with closing(open_source(recording, DISCRETE_MAX_BYTES)) as source:
        if source.size > DISCRETE_MAX_BYTES:
            raise too_large(DISCRETE_MAX_BYTES)
        return source.name, b"".join(source.pieces(0, source.size))


def base_name(path: str) -> str:
    """Return the last component of a path, cut to the length that the service accepts."""
    names = [name for name in re.split(r"[\\/]", path) if name]
    return names[-1][:MAX_NAME_LENGTH] if names else _NAMELESS


def too_large(max_bytes: int) -> Failure:
    size, unit = (1024**2, "MiB") if max_bytes < 1024**3 else (1024**3, "GiB")
    return Failure(
        f"The recording is larger than {max_bytes // size} {unit}, the maximum for this operation.",
        code="file_too_large",
    )


def _open_path(path: str, max_bytes: int) -> Source:
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116 - opening a pipe would block
            raise IsADirectoryError
        file = open(path, "rb")  # noqa: PTH123, SIM115 - the source closes it
    except (OSError, ValueError) as error:
        raise MissingFileError(f"{path} cannot be read: {_why(error)}.", code="missing_file") from error
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return Source(file, base_name(path))
    # A pipe has no length and can be read only once.
    with file:
        return _spool(file, base_name(path), max_bytes)


def _spool(stream: Any, name: str, max_bytes: int) -> Source:
    kept = cast("BinaryIO", tempfile.TemporaryFile(prefix="undertone-", buffering=0))  # noqa: SIM115
    try:
        shutil.copyfileobj(_Limited(stream, max_bytes), kept, PIECE_BYTES)
        return Source(kept, name)
    except BaseException:
        kept.close()
        raise


class _Limited:
    """A reader that raises when the service's limit is exceeded."""

    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._read = 0

    def read(self, size: int = -1, /) -> bytes:
        piece = self._stream.read(size)
        if not isinstance(piece, bytes):
            raise ConfigError('The file returns text: open it with mode "rb".')
        self._read += len(piece)
        if self._read > self._max_bytes:
            raise too_large(self._max_bytes)
        return piece


def _changed(how: str) -> Failure:
    return Failure(
        f"The file {how} while it was being read. Try again when no program is writing to it.", code="file_changed"
    )


def _why(error: Exception) -> str:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder, not a file"
    if isinstance(error, PermissionError):
        return "permission denied"
    return getattr(error, "strerror", None) or str(error)
