"""The example notebook, run against the real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import wave
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .support.programs import environment_for
from .support.real_server import ROOT, VOICES

if TYPE_CHECKING:
    from .support.real_server import RealServer

RUNNER = Path(__file__).parent / "support" / "run_notebook.py"


def run_notebook(real: RealServer, folder: Path, **settings: str) -> list[dict[str, str]]:
    """Run it in a folder that has a folder `voices`; return what its cells show."""
    text = (ROOT / "examples" / "notebook.ipynb").read_text(encoding="utf-8")
    for name, value in settings.items():
        assert f'"{name} = None ' in text
        text = text.replace(f'"{name} = None ', f"\"{name} = '{value}' ")
    (folder / "notebook.ipynb").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, RUNNER, "notebook.ipynb"],
        env=environment_for({**real.environment, "MPLBACKEND": "agg", "HOME": str(folder)}),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"kind"')]


def write_at_rate(voice: Path, target: Path, rate: int, channels: int, seconds: float | None = None) -> None:
    """Write an example voice at another rate. Interpolation is good enough: nobody looks at the emotions."""
    with wave.open(str(voice)) as file:
        samples, original = np.frombuffer(file.readframes(file.getnframes()), np.int16), file.getframerate()
    count = int((seconds or len(samples) / original) * rate)
    resampled = np.interp(np.arange(count) / rate, np.arange(len(samples)) / original, samples).astype(np.int16)
    target.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(target), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(resampled, channels).tobytes())


def test_the_notebook_turns_a_folder_of_recordings_into_a_table_a_matrix_and_a_plot(
    real: RealServer, tmp_path: Path
) -> None:
    shutil.copytree(VOICES, tmp_path / "voices")
    shows = run_notebook(real, tmp_path)
    kinds = [show["kind"] for show in shows]
    assert kinds == [
        *("Weights", "DataFrame", "Series", "Figure", "Figure", "AsynchResult", "DataFrame", "Figure", "NoneType")
    ]
    for voice in VOICES.glob("*.wav"):
        assert voice.name in shows[1]["shown"]
    assert "10 recordings, UAR 1.00" in shows[4]["shown"], "the examples were chosen because they are right"
    assert "no speech" in shows[5]["shown"], "each speaker is silent while the other speaks"
    assert "channel" in (tmp_path / "call.csv").read_text(encoding="utf-8")


def test_the_notebook_works_on_a_labelled_folder_with_other_names_rates_and_channels(
    real: RealServer, tmp_path: Path
) -> None:
    folder = tmp_path / "voices"
    write_at_rate(VOICES / "angry-1013.wav", folder / "anger" / "1.wav", 8_000, 1)
    write_at_rate(VOICES / "angry-1028.wav", folder / "anger" / "2.WAV", 48_000, 2)
    write_at_rate(VOICES / "sad-1028.wav", folder / "Sad" / "3.wav", 22_050, 1)
    write_at_rate(VOICES / "sad-1016.wav", folder / "Sad" / "short.wav", 11_025, 1, seconds=2)
    write_at_rate(VOICES / "happy-1016.wav", folder / "unlabelled" / "4.wav", 44_100, 1)
    (folder / "notes.txt").write_text("not a recording", encoding="utf-8")
    shows = run_notebook(real, tmp_path)
    table, confusion = shows[1]["shown"], shows[4]["shown"]
    assert all(name in table for name in ("1.wav", "2.WAV", "3.wav", "4.wav"))
    assert "short.wav" not in table
    assert "3 recordings, UAR" in confusion
    assert "label | " in confusion or "| label" in confusion
    assert "channel" in (tmp_path / "call.csv").read_text(encoding="utf-8")


def test_the_notebook_takes_a_table_of_shorter_recordings_and_labels_in_a_csv(real: RealServer, tmp_path: Path) -> None:
    folder = tmp_path / "voices"
    write_at_rate(VOICES / "angry-1013.wav", folder / "1.wav", 16_000, 1, seconds=2.5)
    write_at_rate(VOICES / "sad-1028.wav", folder / "2.wav", 16_000, 1, seconds=2.5)
    write_at_rate(VOICES / "sad-1028.wav", tmp_path / "call.wav", 8_000, 2, seconds=6)
    (tmp_path / "labels.csv").write_text("path,emotion\nvoices/1.wav,anger\nvoices/2.wav,sad\n", encoding="utf-8")
    command = [str(ROOT / "node_modules/.bin/node"), str(ROOT / "packages/cli/bin/undertone.js"), "classify", "voices"]
    subprocess.run([*command, "--output", "emotions.csv"], cwd=tmp_path, capture_output=True, check=True)
    shows = run_notebook(real, tmp_path, TABLE="emotions.csv", LABELS="labels.csv", CALL="call.wav")
    assert "2 recordings, UAR" in shows[4]["shown"]
    assert shows[5]["kind"] == "AsynchResult"


def test_the_notebook_works_without_labels(real: RealServer, tmp_path: Path) -> None:
    write_at_rate(VOICES / "neutral-1013.wav", tmp_path / "voices" / "one.wav", 16_000, 1)
    assert run_notebook(real, tmp_path)[4]["shown"] == repr("There are no labels.")
