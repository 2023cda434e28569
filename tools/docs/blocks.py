"""Run the blocks of the tutorial and the guides, page by page, each page in a folder of its own.

    python -m tools.docs.blocks [PAGE...]

Blocks marked ``sh`` and ``python`` are run in order, Python blocks of a page in one namespace; a comment that begins
with ``<!-- setup`` holds shell lines that make what the page takes for granted; a block with ``title="FILE"`` is written to
that file. Other blocks are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^```(sh|python)\n(.*?)^```$|^<!-- (setup)\n(.*?)^-->$|^```\w+ title=\"([\w.]+)\"\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LONGEST_S = 900.0  # far more than any page takes: a hang ends


def blocks(text: str) -> list[tuple[str, str]]:
    """Language (or file name) and lines of everything that is to be run or written.

    >>> blocks("<!-- setup\\ntouch a\\n-->\\n```sh\\nls a\\n```\\n```toml\\nx = 1\\n```\\n")
    [('setup', 'touch a\\n'), ('sh', 'ls a\\n')]
    >>> blocks('```toml title="x.toml"\\nx = 1\\n```\\n')
    [('x.toml', 'x = 1\\n')]
    """
    return [(m[1] or m[3] or m[5], m[2] or m[4] or m[6]) for m in BLOCK.finditer(text)]


def pages() -> list[Path]:
    """The pages that show how to do something."""
    return [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def script(parts: list[tuple[str, str]]) -> str:
    """One Python program that runs the blocks in order and stops at the first that fails."""
    lines = ["import subprocess"]
    for language, text in parts:
        if language == "python":
            lines.append(f"exec(compile({text!r}, 'block', 'exec'), globals())")
        elif language not in ("sh", "setup"):
            lines.append(f"open({language!r}, 'w').write({text!r})")
        else:
            lines.append(f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {text!r}], check=True)")
    return "\n".join(lines)


def run(page: Path) -> str | None:
    """What went wrong with a page, or None."""
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PATH": paths, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", script(blocks(page.read_text()))],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"took over {LONGEST_S:.0f} s"
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]


def main(names: list[str]) -> int:
    wrong = 0
    for page in [Path(name).resolve() for name in names] or pages():
        count, begun = len(blocks(page.read_text())), time.monotonic()
        trouble = run(page) if count else None
        wrong += trouble is not None
        print(
            f"{page.relative_to(ROOT)}: {count} blocks, {time.monotonic() - begun:.0f} s, {trouble or 'all run'}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
