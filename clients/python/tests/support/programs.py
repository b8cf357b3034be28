"""Runs programs in separate processes, with or without a terminal."""

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

#: The test runner may ignore Ctrl-C, as shell background jobs do, and child processes inherit that.
HANDLE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def environment_for(extra: dict[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), **extra}


def start(program: str, extra: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start a program with pipes as stdin, stdout and stderr."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HANDLE_CTRL_C + program, *arguments],
        env=environment_for(extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_on_terminal(program: str, extra: dict[str, str], *arguments: str) -> tuple[str, str]:
    """Run a program with a 100-column terminal as stderr; return the terminal output and stdout."""
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
        except OSError:  # Linux raises this when the other end is closed
            break
        if not piece:
            break
        drawn += piece
    os.close(ours)
    out, _ = process.communicate()
    assert process.returncode == 0, drawn.decode()
    return drawn.decode(), out.decode()
