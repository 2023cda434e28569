"""The Makefile and `make bench` run scripts that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_scripts_exist():
    named = re.findall(r"\bpython (\S+\.py)", (ROOT / "Makefile").read_text())
    bench = re.search(r"SCRIPTS = \((.*?)\)", (ROOT / "benchmarks" / "bench.py").read_text()).group(1)
    named += [f"benchmarks/{name}" for name in re.findall(r'"(.+?)"', bench)]
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
