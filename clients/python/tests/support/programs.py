"""Programs run as their users run them: in processes of their own, on a terminal or not."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src"

#: Whoever runs the tests may ignore Ctrl-C (jobs in the background of a shell do), and a child inherits that.
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def environment_for(extra: dict[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), **extra}


def start(program: str, extra: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Starts a program whose stdin, stdout and stderr are pipes."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HEED_CTRL_C + program, *arguments],
        env=environment_for(extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_on_terminal(program: str, extra: dict[str, str], *arguments: str) -> tuple[str, str]:
    """Runs a program whose stderr is a terminal of 100 columns; gives what it wrote there, and its stdout."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        env=environment_for(extra),
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        drawn += piece
    os.close(ours)
    out, _ = process.communicate()
    assert process.returncode == 0, drawn.decode()
    return drawn.decode(), out.decode()
