"""Progress of long operations: for a listener, and as a progress bar."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from tqdm import tqdm

from ._log import logger
from ._portal import call_back

if TYPE_CHECKING:
    from .literals import RequestState

_LABELS = {"uploading": "Uploading", "queued": "Waiting", "processing": "Classifying"}


@dataclass(frozen=True)
class Progress:
    """The progress of one recording."""

    #: ``uploading``, ``queued``, ``processing`` or ``completed``.
    status: RequestState
    #: Progress within the current status, 0 to 1.
    progress: float
    #: The request; empty until the server has assigned an ID.
    request_id: str
    #: While uploading: bytes sent so far.
    sent_bytes: int | None = None
    #: While uploading: bytes to send in total.
    total_bytes: int | None = None


ProgressListener = Callable[[Progress], None]


class Reporter:
    """
    Passes progress to the listener and the bar. Retried parts do not move it backwards.

    Both run in the caller's thread: a notebook shows the output of other threads in the wrong place.
    """

    def __init__(self, listener: ProgressListener | None, *, show: bool) -> None:
        self._listener = listener
        self._show = show and _is_interactive()
        self._bar: _Bar | None = None
        self._latest: Progress | None = None

    def report(self, progress: Progress) -> None:
        call_back(lambda: self._report(progress))

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_exception: object) -> None:
        call_back(self._close_bar)

    def _report(self, progress: Progress) -> None:
        latest = self._latest
        if latest and latest.status == progress.status and progress.progress < latest.progress:
            return
        self._latest = progress
        if self._show:
            self._draw(progress, is_new=latest is None or latest.status != progress.status)
        if self._listener is not None:
            try:
                self._listener(progress)
            except Exception:
                # An error in the listener must not stop the upload.
                logger.exception("on_progress raised an error.")

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, progress: Progress, *, is_new: bool) -> None:
        if is_new:
            self._close_bar()
            if progress.status in _LABELS:
                self._bar = _bar_for(progress)
        if self._bar is not None:
            done = progress.progress if progress.sent_bytes is None else progress.sent_bytes
            self._bar.update(done - self._bar.n)
            self._bar.refresh_if_whole()


class BatchBar:
    """Counts the finished recordings of a batch, in the caller's thread."""

    def __init__(self, total: int | None, *, show: bool) -> None:
        self._total = total
        self._show = show and _is_interactive()
        self._bar: _Bar | None = None

    def __enter__(self) -> BatchBar:
        return self

    def __exit__(self, *_exception: object) -> None:
        call_back(self._close)

    def advance(self) -> None:
        if self._show:
            call_back(self._advance)

    def _advance(self) -> None:
        if self._bar is None:
            self._bar = _Bar(total=self._total, desc="Classifying", unit="file", file=sys.stderr)
        self._bar.update()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Bar(tqdm):  # type: ignore[type-arg]
    """A bar without tqdm's monitor thread."""

    monitor_interval = 0

    def refresh_if_whole(self) -> None:
        # tqdm redraws at most ten times a second, and could skip the last update.
        if self.n >= (self.total or 0):
            self.refresh()


def _bar_for(progress: Progress) -> _Bar:
    label = _LABELS[progress.status]
    if progress.total_bytes is None:
        form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"
        return _Bar(total=1, desc=label, bar_format=form, file=sys.stderr)
    return _Bar(total=progress.total_bytes, desc=label, unit="B", unit_scale=True, unit_divisor=1024, file=sys.stderr)


def _is_interactive() -> bool:
    """Whether stderr is a terminal or a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
