"""The plan of the house: imports point down only, and files, functions and loose modules stay small.

`ROOMS` is the order from the bottom to the top. A room (a package, or a loose module) may import rooms above it in this
list only, be it at the top of a file or inside a function; imports for type checkers alone do not count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "evband"
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = (
    "errors",
    "channels",
    "files",
    "compiled",
    "terrain",
    "trips",
    "logs",
    "vehicles",
    "routes",
    "simulation",
    "features",
    "network",
    "settings",
    "bands",
    "training",
    "calibration",
    "scores",
    "energy",
    "estimator",
    "preparing",
    "artifact",
    "card",
    "model",
    "adaptation",
    "rivals",
    "export",
    "report",
    "streaming",
    "studies",
    "demo",
    "fleet",
    "live",
    "cli",
)
LEAVES = ("fleet", "live")  # nothing but the command line imports them
# Upwards, inside a function, with the reason: methods by which a user reaches an upper room from an object of a lower one.
FACE = {
    ("model", "streaming"): "model.stream()",
    ("model", "adaptation"): "a fit starts from the base",
    ("model", "export"): "model.collapse() and model.export()",
    ("trips", "logs"): "Trips.from_frame()",
    ("artifact", "model"): "load() makes the class that save() wrote",
    ("card", "adaptation"): "the card of a started model",
    ("artifact", "adaptation"): "the same, for what a started model has learned",
}
LOOSE, LINES, FUNCTION = 10, 350, 60
LONGER = {  # file or file:function -> why it cannot be shorter
    "network/kernels/_triton_lstm.py:forward": "a Triton kernel is one function; its parts share registers",
    "network/kernels/_triton_lstm.py:backward": "a Triton kernel is one function; its parts share registers",
    "network/kernels/_triton_products.py:weight_gradient": "a Triton kernel is one function; its parts share registers",
}


# Beside the rooms of networks: a file of torch that others import inside a function only, once torch is found
WITH_TORCH = {"adaptation/side_by_side.py": "adapts many cars at once on a GPU"}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """(room imported, line, whether inside a function) of every import of the package that runs."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    inside = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write absolute imports"
            whole = node.module == "evband"
            names = [f"evband.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("evband.") and name != "evband.__version__":
                yield name.split(".")[1], node.lineno, id(node) in inside


def wrong(path: Path) -> Iterator[str]:
    here = room(path)
    for other, line, inside in imports(path):
        if other == here or here in ("__init__", "__main__"):
            continue
        up = other not in ROOMS or ROOMS.index(other) > ROOMS.index(here) or (other in LEAVES and here != "cli")
        if up and not (inside and (here, other) in FACE):
            yield f"{path.relative_to(SOURCE)}:{line} imports {other}"


def test_every_room_is_in_the_plan():
    found = {room(path) for path in FILES} - {"__init__", "__main__"}
    assert sorted(found - set(ROOMS)) == [], "add the room to ROOMS, at its height"


def test_imports_point_down():
    assert [text for path in FILES if room(path) in (*ROOMS, "__init__", "__main__") for text in wrong(path)] == []


@pytest.mark.parametrize("pair", [*FACE], ids="-".join)
def test_the_face_is_used(pair):
    used = {(room(path), other) for path in FILES for other, _, inside in imports(path) if inside}
    assert pair in used, "take it off the list"


def test_torch_stays_where_networks_are():
    """A base install has no torch: whatever it needs must be importable without."""
    loud = [
        path.relative_to(SOURCE)
        for path in FILES
        if room(path) not in ("network", "training") and str(path.relative_to(SOURCE)) not in WITH_TORCH
        for node in ast.parse(path.read_text()).body
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "torch" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch")
    ]
    assert [str(path) for path in loud] == []


@pytest.mark.parametrize("file", WITH_TORCH)
def test_a_file_of_torch_is_imported_inside_functions_only(file):
    name = Path(file).stem
    top = [node for path in FILES for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
    assert not [node for node in top if name in (node.module or "").split(".") + [each.name for each in node.names]]


def test_one_door_to_numba():
    """How code is compiled and kept is decided in one room; the check of the installation compiles on purpose."""
    others = [path for path in FILES if room(path) != "compiled" and path.name != "doctor.py"]
    assert [str(path.relative_to(SOURCE)) for path in others if "njit" in path.read_text()] == []


def test_loose_modules_are_few():
    loose = [path.name for path in FILES if path.parent == SOURCE and not path.name.startswith("__")]
    assert len(loose) <= LOOSE, loose


def test_files_and_functions_are_short():
    long = []
    for path in FILES:
        text, name = path.read_text(), str(path.relative_to(SOURCE))
        if len(text.splitlines()) > LINES and name not in LONGER:
            long.append(f"{name}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION and f"{name}:{node.name}" not in LONGER:
                    long.append(f"{name}:{node.lineno} {node.name}: {length} lines")
    assert long == []
