"""Run the blocks of the tutorial and the guides, page by page, each page in a folder of its own, and compare what they print.

    python -m tools.docs.blocks [--write] [PAGE...]

Blocks marked ``sh`` and ``python`` are run in order, Python blocks of a page in one namespace; a comment that begins
with ``<!-- setup`` holds shell lines that make what the page takes for granted; a block with ``title="FILE"`` is written to
that file. A ``text`` block under ``<!-- prints -->`` is what the block before it prints: words must be equal, numbers within
2 % or one of the last digit shown (under ``<!-- prints about -->``, of quick fits, any numbers); ``--write`` writes it anew. Other
blocks are not run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^```(sh|python)\n(.*?)^```$|^<!-- (setup)\n(.*?)^-->$|^```\w+ title=\"([\w.]+)\"\n(.*?)^```$"
    r"|^<!-- (prints(?: about)?) -->\n```text\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
LINE = re.compile("[━─]+")  # of a table, as long as its cells need
LONGEST_S = 900.0  # far more than any page takes: a hang ends
WIDE = 110  # columns of the terminal that a page shows
BEGIN = "--- block "


def blocks(text: str) -> list[tuple[str, str]]:
    """Language (or file name, or `prints`) and lines of everything that is to be run, written or compared.

    >>> blocks("<!-- setup\\ntouch a\\n-->\\n```sh\\nls a\\n```\\n<!-- prints -->\\n```text\\na\\n```\\n```toml\\nx = 1\\n```\\n")
    [('setup', 'touch a\\n'), ('sh', 'ls a\\n'), ('prints', 'a\\n')]
    >>> blocks('```toml title="x.toml"\\nx = 1\\n```\\n')
    [('x.toml', 'x = 1\\n')]
    """
    return [
        next((kind, m[i + 2]) for i, kind in enumerate(m.groups()) if i % 2 == 0 and kind) for m in BLOCK.finditer(text)
    ]


def same(shown: str, printed: str, about: bool = False) -> bool:
    """Whether two texts have the same words, and numbers that a reader would call the same (`about`: or other numbers).

    >>> same("reach 216 km", "reach 217 km"), same("reach 216 km", "reach 240 km"), same("a  b\\n", "a b")
    (True, False, True)
    """
    words = [LINE.sub("-", NUMBER.sub("#", text)).split() for text in (shown, printed)]
    if words[0] != words[1]:
        return False
    if about:
        return True
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= max(0.02 * abs(float(a)), 1.01 * 10.0 ** -len(a.partition(".")[2])) for a, b in pairs)  # fmt: skip


def pages() -> list[Path]:
    """The pages that show how to do something."""
    return [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def script(parts: list[tuple[str, str]]) -> str:
    """One Python program that runs the blocks in order, stops at the first that fails, and says where each begins to print."""
    lines = ["import subprocess"]
    for number, (language, text) in enumerate(parts):
        lines.append(f"print('\\n{BEGIN}{number}', flush=True)")
        if language == "python":
            lines.append(f"exec(compile({text!r}, 'block', 'exec'), globals())")
        elif language in ("sh", "setup"):
            lines.append(f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {text!r}], check=True)")
        elif not language.startswith("prints"):
            lines.append(f"open({language!r}, 'w').write({text!r})")
    return "\n".join(lines)


def run(parts: list[tuple[str, str]]) -> tuple[str | None, list[str]]:
    """What went wrong with a page's blocks, or None; what each printed to standard output."""
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "PATH": paths, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg", "COLUMNS": str(WIDE), "PYTHONUTF8": "1",
        }  # fmt: skip
        try:
            done = subprocess.run(
                [sys.executable, "-c", script(parts)],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"took over {LONGEST_S:.0f} s", []
    printed = re.split(rf"\n{BEGIN}\d+\n", "\n" + done.stdout)[1:]
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-3000:], printed


def differences(parts: list[tuple[str, str]], printed: list[str]) -> str | None:
    """The first block whose page shows another print than it has, or None."""
    for k, (language, shown) in enumerate(parts):
        if language.startswith("prints") and not same(shown, printed[k - 1], language == "prints about"):
            return f"the page shows\n{shown}\nwhere this is printed (python -m tools.docs.blocks --write):\n{printed[k - 1]}"
    return None


def rewritten(text: str, printed: list[str]) -> str:
    """The page with what its blocks print, where it shows that."""
    number = iter(range(len(printed)))

    def new(match: re.Match[str]) -> str:
        k = next(number)
        if match[7] is None:
            return match[0]
        lines = [line.rstrip() for line in printed[k - 1].strip("\n").splitlines()]
        return f"<!-- {match[7]} -->\n```text\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(new, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write what is printed into the pages")
    parser.add_argument("pages", nargs="*")
    given = parser.parse_args()
    wrong = 0
    for page in [Path(name).resolve() for name in given.pages] or pages():
        text = page.read_text()
        parts, begun = blocks(text), time.monotonic()
        trouble, printed = run(parts) if parts else (None, [])
        if trouble is None and given.write:
            page.write_text(rewritten(text, printed))
        elif trouble is None:
            trouble = differences(parts, printed)
        wrong += trouble is not None
        print(
            f"{page.relative_to(ROOT)}: {len(parts)} blocks, {time.monotonic() - begun:.0f} s, {trouble or 'all run'}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
