"""The Makefile runs scripts that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_scripts_exist():
    named = re.findall(r"\bpython (\S+\.py)", (ROOT / "Makefile").read_text())
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
