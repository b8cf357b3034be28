"""The real server with the real model, in a separate process with a temporary data folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
VOICES = ROOT / "examples" / "voices"

KEY = "a-key-for-the-real-server"


class RealServer:
    def __init__(self, **environment: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="undertone-python-")
        self.origin = f"http://127.0.0.1:{_free_port()}"
        self._environment = environment
        self.start()

    def start(self) -> None:
        """Start it, or restart it after `kill` on the same port."""
        self._process = subprocess.Popen(
            [ROOT / "node_modules/.bin/node", ROOT / "packages/cli/bin/undertone.js", "serve"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": self._folder,
                "SERVICE_PORT": self.origin.rsplit(":", 1)[1],
                "SERVICE_DATA_DIR": self._folder,
                "SERVICE_API_KEY": KEY,
                **self._environment,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    @property
    def settings(self) -> dict[str, Any]:
        """Client settings for this server."""
        return {"api_key": KEY, "base_url": self.origin}

    @property
    def environment(self) -> dict[str, str]:
        """The same settings as environment variables."""
        return {"SERVICE_API_KEY": KEY, "SERVICE_URL": self.origin}

    def kill(self) -> None:
        """Kill it, as a power failure would."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.origin}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        self._process.kill()
        raise RuntimeError((self._process.stderr.read() if self._process.stderr else b"").decode())


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
