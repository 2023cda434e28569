"""The benchmarks' index names every script and every result file; result files say which script wrote them."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
INDEX = (FOLDER / "README.md").read_text()
SCRIPTS = sorted(
    p
    for f in ("speed", "live", "measured", "simulated", "checks")
    for p in (FOLDER / f).glob("*.py")
    if p.stem != "__init__"
)
RESULTS = sorted((FOLDER / "results").glob("*.csv"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_every_script_is_in_the_index(script):
    assert f"`{script.parent.name}.{script.stem}`" in INDEX or f"`{script.parent.name}/{script.name}`" in INDEX


def test_the_index_names_no_script_that_is_not_there():
    named = re.findall(r"^\| `(\w+)\.(\w+)`", INDEX, flags=re.M)
    assert len(named) > 20
    assert [f"{folder}.{name}" for folder, name in named if not (FOLDER / folder / f"{name}.py").is_file()] == []


@pytest.mark.parametrize("result", RESULTS, ids=lambda p: p.stem)
def test_every_result_is_in_the_index_and_says_which_script_wrote_it(result):
    assert f"`{result.name}`" in INDEX
    if result.stem in ("gpu_step", "gpu_check"):  # written where there is a GPU; gpu_step.md says how
        return
    with result.open() as file:
        command = re.search(r"python -m benchmarks\.(\w+)\.(\w+)", file.readline())
    assert command, "the first line of a result file is the command"
    assert (FOLDER / command[1] / f"{command[2]}.py").is_file()


def test_scripts_call_no_private_functions_of_the_package():
    private = re.compile(r"from evband[\w.]* import .*\b_[a-z]|\b(features|trainer|model|trips)\._[a-z]")
    found = [
        f"{p.name}: {line.strip()}" for p in SCRIPTS for line in p.read_text().splitlines() if private.search(line)
    ]
    assert found == []
