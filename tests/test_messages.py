"""Messages are sentences of plain English: errors end with a full stop, and words that read as translated stay out."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src" / "evband").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])
ERRORS = re.compile(r"^(Evband|Log|Channel|Trips|Settings|Artifact|Vehicle)Error$")
ENDS = (".", "?", ".)")
TRANSLATED = {
    r"\b(rows?|readings?|lines|ticks?|times|samples?|windows?) an? (second|minute|hour|step|row|trip|tick|member|cycle|layer)\b": "per",
    r"\bone (\w+ )?an? (trip|member|row|second|fold|channel|file|line)\b": "one per",
    r"\bturn(s|ed)? the sign\b": "invert",
    r"\bpasses over the data at most\b": "maximum epochs",
    r"\bis no (channel|number|setting|input|log|model|JSON|TOML|feature|unit|answer)\b": "is not a",
    r"\bare no (channels|numbers|settings|inputs|logs)\b": "are not",
    r"\bvoices?\b": "mixture components",
}


def last_text(node: ast.expr) -> str | None:
    """How a message ends, where that is written and not computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[-1], ast.Constant):
        return str(node.values[-1].value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return last_text(node.right)
    return None


def messages(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            name = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
            text = last_text(node.exc.args[0])
            if ERRORS.match(name) and text is not None:
                yield node.lineno, text


def test_errors_end_with_a_full_stop():
    found = [(p, line, text) for p in FILES for line, text in messages(p)]
    assert len(found) > 150
    wrong = [f"{p.relative_to(ROOT)}:{line} ...{text[-30:]}" for p, line, text in found if not text.endswith(ENDS)]
    assert wrong == []


@pytest.mark.parametrize("pattern", TRANSLATED, ids=TRANSLATED.get)
def test_plain_english(pattern):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in (*FILES, *PAGES)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in re.finditer(pattern, line, flags=re.IGNORECASE)
    ]
    assert found == [], f"write {TRANSLATED[pattern]}"
