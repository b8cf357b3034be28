"""A progress line with the remaining time."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """A terminal gets a line that moves; a log gets one line in ten seconds."""

    def __init__(self, what: str, total: int, every: float = 1.0, out: TextIO | None = None) -> None:
        self.what, self.total, self.every, self.out = what, total, every, out or sys.stderr
        self.done, self.begun, self.shown = 0, time.monotonic(), 0.0

    def step(self, note: str = "", count: int = 1) -> None:
        """Count a step, and tell from time to time."""
        self.done += count
        now = time.monotonic()
        every = self.every if self.out.isatty() else max(self.every, 10.0)
        if now - self.shown < every and self.done < self.total:
            return
        self.shown = now
        left = (now - self.begun) / self.done * (self.total - self.done)
        end = "\r" if self.out.isatty() and self.done < self.total else "\n"
        self.out.write(f"{self.what}: {self.done}/{self.total} {note} {left:.0f} s left{end}")
        self.out.flush()
