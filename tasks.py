"""What the Makefile does, where there is no make (Windows): python tasks.py demo|test|test-docs|lint|site|wheel

Everything is installed into .venv, in the versions of constraints.txt; safe to repeat. `python tasks.py` lists the tasks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
TEST = "fit,sim,plots,study,rivals,onnx,mdf,excel,frames,live,test"
TASKS: dict[str, tuple[str, list[list[str]]]] = {  # task -> (extras, commands of the environment's Python)
    "demo": ("fit,sim,plots", [["-m", "evband", "demo", "--out", "demo/"]]),
    "test": (TEST, [["-m", "pytest", "-n", "2", "--dist", "worksteal"]]),
    "test-docs": (TEST, [["-m", "tools.docs.blocks"]]),
    "lint": (
        f"{TEST},lint",
        [
            ["-m", "ruff", "check", "."],
            ["-m", "ruff", "format", "--check", "."],
            ["-m", "mypy"],
            ["-m", "codespell_lib"],
        ],
    ),
    "site": (f"{TEST},docs", [["-m", "mkdocs", "build", "--quiet"]]),
    "wheel": ("test", [["-m", "hatchling", "build", "-d", "dist"]]),
}


def run(*command: str) -> None:
    """One command of the environment's Python; its failure is ours."""
    done = subprocess.run([str(PYTHON), *command], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def install(extras: str) -> None:
    """torch first, in the pinned version, then the package and what the task needs."""
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt"]
    run(*pip, "torch==2.13.0")
    run(*pip, "--editable", f".[{extras}]")


def main(names: list[str]) -> None:
    if not names or any(name not in TASKS for name in names):
        print(f"{__doc__}\ntasks: {', '.join(TASKS)}")
        sys.exit(2 if names else 0)
    for name in names:
        extras, commands = TASKS[name]
        install(extras)
        for command in commands:
            run(*command)


if __name__ == "__main__":
    main(sys.argv[1:])
