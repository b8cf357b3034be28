"""The built package, installed in fresh environments of the Pythons on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .support.real_server import VOICES

if TYPE_CHECKING:
    from .support.real_server import RealServer

PROJECT = Path(__file__).parents[1]
OLDEST = (3, 9)

USE = """
import asyncio, sys, undertone_client
assert "site-packages" in undertone_client.__file__, undertone_client.__file__
assert not {"numpy", "pandas", "matplotlib"} & set(sys.modules)
with undertone_client.EmotionClient() as client:
    once = client.discrete.emotions(sys.argv[1])
    timeline = client.asynch.classify(sys.argv[1], interval=1000)
async def main():
    async with undertone_client.AsyncEmotionClient() as client:
        return await client.discrete.emotions(sys.argv[1])
assert asyncio.run(main()) == once
assert timeline._repr_html_().startswith("<svg")
try:
    undertone_client.prepare(sys.argv[1])
except undertone_client.MissingPackageError as error:
    assert "pip install numpy" in str(error)
print(once.main_emotion, timeline.emotions[0].t)
"""


def run(*command: object, **extra: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in command],
        env={**environment, **extra},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pythons() -> list[str]:
    """Return this Python, and the oldest and newest other supported ones on this machine."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], 20)]
    roots = [Path(path) for path in os.environ.get("PATH", "").split(os.pathsep)]
    roots += sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin"))
    found: dict[tuple[int, int], str] = {}
    for root in roots:
        for name in names:
            version = working_version(root / name) if os.access(root / name, os.X_OK) else None
            if version is not None and version not in found:
                found[version] = str(root / name)
    others = sorted(version for version in found if version != sys.version_info[:2])
    return [sys.executable, *(found[version] for version in {*others[:1], *others[-1:]})]


def working_version(python: Path) -> tuple[int, int] | None:
    """Return the version, or None for a shim without a Python behind it."""
    program = "import sys, venv; print(*sys.version_info[:2])"
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    return (int(done.stdout.split()[0]), int(done.stdout.split()[1])) if done.returncode == 0 else None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the sdist, so that files missing there are noticed."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, PROJECT)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_contains_only_the_package_and_its_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"undertone_client/__init__.py", "undertone_client/py.typed"} <= set(names)
    assert any(name.endswith("LICENSE") for name in names)
    assert all(name.startswith(("undertone_client/", "undertone_client-")) for name in names)
    metadata = next(name for name in names if name.endswith("METADATA"))
    lines = zipfile.ZipFile(wheel).read(metadata).decode().splitlines()
    needed = sorted(line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line)
    assert [line.split()[1].split("<")[0].split(">")[0] for line in needed] == ["httpx", "tqdm"]
    assert "Requires-Python: >=3.9" in lines


PYTHONS = pythons()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Install the wheel and its dependencies in a fresh environment per Python."""

    def install(python: str) -> Path:
        fresh = tmp_path_factory.mktemp("fresh")
        run(python, "-m", "venv", fresh)
        pip = [fresh / "bin/python", "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "--quiet", "--no-compile", wheel)
        return fresh / "bin/python"

    with ThreadPoolExecutor() as pool:
        return dict(zip(PYTHONS, pool.map(install, PYTHONS)))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_works_in_a_fresh_environment(python: str, installed: dict[str, Path], real: RealServer) -> None:
    fresh = installed[python]
    said = run(fresh, "-I", "-W", "error", "-c", USE, VOICES / "angry-1013.wav", **real.environment)
    assert said.split()[1] == "00:00"
    shutil.rmtree(fresh.parents[1])
