"""The wheel is the same byte for byte whenever it is built, and the lock file names nothing but packages and hashes."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import evband

ROOT = Path(__file__).parents[1]


def built(folder: Path, out: Path) -> Path:
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(out)!r}))"
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1767225600"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return out / done.stdout.split()[-1]


def test_two_builds_are_one_wheel(tmp_path):
    pytest.importorskip("hatchling")
    wheels = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / part, folder / part)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for number, path in enumerate(sorted(folder.rglob("*"))):
            os.utime(path, (1.6e9 + number * (1 if name == "one" else 7), 1.6e9 + number))
        (folder / "dist").mkdir()
        wheels.append(built(folder, folder / "dist"))
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert wheels[0].name.startswith(f"evband-{evband.__version__}-")
    assert f"\nversion: {evband.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert {"evband/logs/formats/aliases.toml", "evband/adaptation/base.safetensors"} <= set(names)
    assert not [name for name in names if name.startswith("tests") or name.endswith(".pyc")]


def test_the_lock_file_pins_as_the_constraints_do_and_names_no_host():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "index" not in text
    pins = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    plain = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    locked = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE)
    assert len(locked) > 10
    for name, version in locked:
        assert plain.get(re.sub(r"[-_.]+", "-", name).lower(), version) == version
    for block in re.split(r"\n(?=[A-Za-z0-9])", text)[1:]:
        assert "--hash=sha256:" in block, block[:60]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """An environment without a single package, whose dependencies alone come from this one."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    home = (
        folder
        / "env"
        / ("Lib/site-packages" if os.name == "nt" else f"lib/python3.{sys.version_info[1]}/site-packages")
    )
    (home / "dependencies.pth").write_text(
        f"{Path(np.__file__).parents[1]}\n"
    )  # plain paths: editable installs stay out
    return folder / "env" / ("Scripts" if os.name == "nt" else "bin")


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_what_is_built_installs_into_a_bare_environment_and_runs(kind, bare, tmp_path):
    """Without asking anybody: pip takes the file itself, and nothing else. benchmarks.speed.newcomer installs with all it asks for."""
    pytest.importorskip("hatchling")
    code = f"from hatchling.build import build_{kind}; print(build_{kind}({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    file = tmp_path / done.stdout.split()[-1]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    python = bare / ("python.exe" if os.name == "nt" else "python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--force-reinstall",
        "--disable-pip-version-check",
    ]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", "--no-build-isolation", file], check=True, capture_output=True, env=clean
    )
    place = subprocess.run(
        [python, "-c", "import evband; print(evband.__file__)"], capture_output=True, text=True, cwd=tmp_path, env=clean
    )
    assert Path(place.stdout.strip()).is_relative_to(bare.parent)
    run = [bare / "evband", "start", "Renault Zoe 52 kWh", "-o", "zoe.evband"]
    started = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=clean)
    assert started.returncode == 0, started.stderr
    assert (tmp_path / "zoe.evband").stat().st_size > 1e5
