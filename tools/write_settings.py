"""Write the list of settings in docs/reference/settings.md from their definition: `python tools/write_settings.py`."""

from __future__ import annotations

from pathlib import Path

from evband.settings import described

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
BEGIN = "<!-- from evband.settings, by tools/write_settings.py -->"


def page(text: str) -> str:
    """The page with its list made new; what stands before it is kept."""
    return "\n".join([text.partition(BEGIN)[0] + BEGIN, *described(), ""])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
