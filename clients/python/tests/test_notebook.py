"""The example notebook, run against the real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .support.programs import environment_for
from .support.real_server import ROOT, VOICES

if TYPE_CHECKING:
    from .support.real_server import RealServer

RUNNER = Path(__file__).parent / "support" / "run_notebook.py"


def test_the_notebook_turns_a_folder_of_recordings_into_a_table_and_a_plot(real: RealServer, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "notebook.ipynb", tmp_path)
    shutil.copytree(VOICES, tmp_path / "voices")
    done = subprocess.run(
        [sys.executable, RUNNER, "notebook.ipynb"],
        env=environment_for({**real.environment, "MPLBACKEND": "agg", "HOME": str(tmp_path)}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shows = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [show["kind"] for show in shows]
    assert kinds == ["Weights", "DataFrame", "Series", "Figure", "AsynchResult", "DataFrame", "Figure", "NoneType"]
    for voice in VOICES.glob("*.wav"):
        assert voice.name in shows[1]["shown"]
    assert "no speech" in shows[4]["shown"], "each speaker is silent while the other speaks"
    assert "channel" in (tmp_path / "call.csv").read_text(encoding="utf-8")
