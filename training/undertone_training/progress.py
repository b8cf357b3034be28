"""One line that tells how far a long step is and how long it will still take."""
import sys
import time


class Progress:
    def __init__(self, what, total, every=1.0, out=sys.stderr):
        self.what, self.total, self.every, self.out = what, total, every, out
        self.done, self.begun, self.shown = 0, time.monotonic(), 0.0

    def step(self, note="", count=1):
        self.done += count
        now = time.monotonic()
        # A terminal gets a line that moves; a log gets one line in ten seconds.
        every = self.every if self.out.isatty() else max(self.every, 10.0)
        if now - self.shown < every and self.done < self.total:
            return
        self.shown = now
        left = (now - self.begun) / self.done * (self.total - self.done)
        end = "\r" if self.out.isatty() and self.done < self.total else "\n"
        self.out.write(f"{self.what}: {self.done}/{self.total} {note} {left:.0f} s left{end}")
        self.out.flush()
