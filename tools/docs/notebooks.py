"""Run the notebooks of docs/notebooks from top to bottom and keep what they show.

    python -m tools.docs.notebooks [NOTEBOOK...]          # --check: compare nothing, write nothing, fail where a cell does

A cell's last expression is shown as Jupyter would show it: as HTML where it has a table of its own, a figure as a
picture, else as text. No kernel is needed.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


def shown(value: object) -> dict[str, Any] | None:
    """The output of a cell's last expression; None where there is nothing to show."""
    if value is None or isinstance(value, mpl.axes.Axes | mpl.figure.Figure):
        return None  # figures are taken after the cell
    data = {"text/plain": _lines(repr(value))}
    html = getattr(value, "_repr_html_", None)
    if html is not None:
        data["text/html"] = _lines(str(html()))
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}


def figures() -> list[dict[str, Any]]:
    """All open figures as pictures, then closed."""
    found = []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=80, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a figure"]}
        found.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return found


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell, run in `names`."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    outputs: list[dict[str, Any]] = []
    if said.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())})
    result = shown(value)
    return [*outputs, *([result] if result else []), *figures()]


def run(path: Path) -> dict[str, Any]:
    """The notebook with fresh outputs; its cells run in an empty folder."""
    book: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    before, count = Path.cwd(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in book["cells"]:
                if cell["cell_type"] == "code":
                    count += 1
                    cell["outputs"] = run_cell("".join(cell["source"]), names)
                    cell["execution_count"] = count
                    for output in cell["outputs"]:
                        if output["output_type"] == "execute_result":
                            output["execution_count"] = count
        finally:
            os.chdir(before)
    return book


def markdown(path: Path) -> str:
    """The notebook as a page of the site: cells, outputs, pictures inside."""
    book = json.loads(path.read_text(encoding="utf-8"))
    parts = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f'<img alt="What the cell above draws" src="data:image/png;base64,{data["image/png"]}">')
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append("```text\n" + "".join(output.get("text", data.get("text/plain", []))).rstrip() + "\n```")
    parts.append(f"[Download this notebook]({path.name})")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Their places under docs/ and their texts."""
    return {f"notebooks/{path.stem}.md": markdown(path) for path in sorted(FOLDER.glob("*.ipynb"))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(words: list[str]) -> None:
    check = "--check" in words
    chosen = [Path(word).resolve() for word in words if word != "--check"] or sorted(FOLDER.glob("*.ipynb"))
    for path in chosen:
        book = run(path)
        if not check:
            path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(
            f"docs/notebooks/{path.name}: {sum(c['cell_type'] == 'code' for c in book['cells'])} cells, all run",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
