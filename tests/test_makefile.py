"""The Makefile runs scripts that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_scripts_exist():
    text = (ROOT / "Makefile").read_text()
    named = re.findall(r"\bpython (\S+\.py)", text)
    named += [
        f"{module.replace('.', '/')}.py" for module in re.findall(r"\bpython -m ((?:benchmarks|tools)\.\S+)", text)
    ]
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
