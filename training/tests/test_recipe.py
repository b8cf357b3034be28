"""The whole recipe, step by step as a user runs it, on a few generated clips and a small random encoder."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from conftest import ROOT, voice

from undertone_training.__main__ import main

RECIPE = """
work = "runs"
[training]
encoder = "{encoder}"
layers = 2
halve_after = [0]
seeds = [1, 2]
steps = 4
rounding_steps = 3
batch = 4
seconds = 2.0
[left_out]
steps = 2
rounding_steps = 2
[licences]
mine = "CC0"
[weights]
mine = ["mine", "yours"]
[[corpus]]
name = "mine"
kind = "csv"
path = "{corpus}"
licence = "CC BY 4.0"
attribution = "My Voices"
commercial_use = true
[[corpus]]
name = "yours"
kind = "csv"
path = "{other}"
licence = "CC0"
commercial_use = true
[split.validation]
mine = ["speaker3"]
yours = ["your3"]
"""


def run_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "undertone_training", *arguments],
        cwd=ROOT / "training",
        capture_output=True,
        text=True,
        check=False,
    )


def run(folder, *arguments):
    """Run a step in this process: a new one would import PyTorch again, which takes longer than the step."""
    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            main(["--recipe", str(folder / "recipe.toml"), *arguments])
        except SystemExit as ended:
            print(ended.code, file=sys.stderr)
            code = 1
    return subprocess.CompletedProcess(arguments, code, stderr=said.getvalue())


@pytest.fixture(scope="module")
def recipe_dir(tmp_path_factory, corpus, encoder):
    folder = tmp_path_factory.mktemp("recipe_dir")
    other = tmp_path_factory.mktemp("yours") / "clips.csv"
    table = (corpus / "clips.csv").read_text().splitlines()
    other.write_text("\n".join([table[0]] + [f"{corpus}/{row}".replace("speaker", "your") for row in table[1:]]))
    (folder / "recipe.toml").write_text(RECIPE.format(encoder=encoder, corpus=corpus, other=other))
    return folder


def test_the_whole_recipe_from_wavs_to_measured_graph(recipe_dir):
    models, pictures = recipe_dir / "models", recipe_dir / "pictures"
    done = run_process("--recipe", str(recipe_dir / "recipe.toml"), "prepare")
    assert done.returncode == 0, done.stderr
    assert "s left" in done.stderr, "long steps show the remaining time"
    for step in (
        ("train", "mine", "--device", "cpu"),
        ("leave-one-out", "mine", "--device", "cpu"),
        ("calibrate", "mine"),
        ("export", "mine", "--models", str(models)),
        ("evaluate", "mine", "--models", str(models), "--most", "20"),
        ("card", "--out", str(pictures)),
    ):
        done = run(recipe_dir, *step)
        assert done.returncode == 0, f"{step}: {done.stderr[-2000:]}"
        if step[0] == "train":
            assert "s left" in done.stderr
    session = onnxruntime.InferenceSession(str(models / "mine.onnx"))
    p = session.run(["4emotions"], {"samples": voice(120, 5.0).astype(np.float32)[None]})[0]
    assert p.shape == (1, 4)
    assert abs(p.sum() - 1) < 1e-5
    row = json.loads((models / "catalog.json").read_text())["weights"]["mine"]
    assert row["bytes"] == (models / "mine.onnx").stat().st_size
    assert set(row["figures"]) == {"4emotions", "5emotions", "7emotions"}
    assert set(row["figures"]["4emotions"]["new_speakers"]) == set(row["figures"]["4emotions"]["never_heard"])
    assert row["licence"] == "CC0, with attribution of My Voices (CC BY 4.0) and yours (CC0)"
    figures = json.loads((recipe_dir / "runs/mine/figures.json").read_text())
    assert set(figures["conditions"]) == {"clean", "telephone", "babble 10 dB", "20 dB softer", "20 dB louder"}
    assert set(figures["without"]) == {"mine", "yours"}
    assert len(list(pictures.glob("*.png"))) == 3
    assert "| 4emotions |" in (pictures / "figures.md").read_text()


def test_steps_in_the_wrong_order_say_what_to_run_first(recipe_dir, tmp_path):
    (tmp_path / "recipe.toml").write_text((recipe_dir / "recipe.toml").read_text())
    for step, first in (
        (("train", "mine"), "prepare"),
        (("calibrate", "mine"), "train"),
        (("export", "mine"), "train"),
    ):
        done = run(tmp_path, *step)
        assert done.returncode == 1
        assert f"run the step '{first}' first" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("steps = 4", "stepz = 4"), "unknown setting stepz"),
        (('mine = ["mine", "yours"]', 'mine = ["hers"]'), "use unknown corpora: hers"),
        (('mine = ["speaker3"]', 'mine = ["nobody"]'), "no such speaker: nobody"),
        (('kind = "csv"', 'kind = "tape"'), "unknown kind 'tape'"),
        (("[weights]", "[training.hers]\nsteps = 3\n[weights]"), "for weights that [weights] does not name"),
        (("rounding_steps = 2", "rounding_stepz = 2"), "[left_out]: unknown setting rounding_stepz"),
        (("[weights]", "[training.mine]\nstepz = 3\n[weights]"), "[training.mine]: unknown setting stepz"),
    ],
)
def test_a_mistake_in_the_recipe_is_named(recipe_dir, tmp_path, change, message):
    text = (recipe_dir / "recipe.toml").read_text()
    assert change[0] in text
    (tmp_path / "recipe.toml").write_text(text.replace(*change, 1))
    done = run(tmp_path, "prepare")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_weights_that_the_recipe_does_not_name_are_refused(recipe_dir):
    done = run_process("--recipe", str(recipe_dir / "recipe.toml"), "train", "theirs")
    assert "no weights 'theirs'" in done.stderr
    assert done.returncode == 1


def test_help_names_every_step():
    done = run_process("--help")
    for step in ("prepare", "train", "leave-one-out", "calibrate", "export", "evaluate", "card"):
        assert step in done.stdout
    assert pathlib.Path(ROOT / "training/README.md").is_file()
