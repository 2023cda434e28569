"""Lines of code of the package, without docstrings, comments and blank lines, room by room, here and in another checkout.

    python -m tools.lines_of_code [PATH]

A line counts if a token other than a comment or a docstring lies on it.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parents[1]
NEW = {
    "adaptation",
    "fleet",
    "live",
    "terrain",
    "vehicles",
}  # concepts that release 0.1 had not, as loose modules neither
SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines(path: Path) -> int:
    text = path.read_text()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    coded = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(coded - docstrings)


def rooms(tree: Path) -> Counter[str]:
    source, found = tree / "src" / "evband", Counter[str]()
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).parts
        found[parts[0] if len(parts) > 1 else "loose modules"] += lines(path)
    return found


def main() -> None:
    trees = [*map(Path, sys.argv[1:2]), HERE]
    counts = [rooms(tree) for tree in trees]
    rooms_now = sorted(set().union(*counts))
    for room in rooms_now:
        print(f"{room:16}", *(f"{count[room]:7}" for count in counts))
    for name, of in (("rooms of 0.1", set(rooms_now) - NEW), ("new rooms", NEW), ("all", set(rooms_now))):
        print(f"{name:16}", *(f"{sum(count[room] for room in of):7}" for count in counts))


if __name__ == "__main__":
    main()
