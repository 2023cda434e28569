"""A hook of MkDocs: adds the pages that are made from the package (mkdocs.yml names it; `make site` builds)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.docs import notebooks, reference


def on_files(files: Any, config: Any) -> Any:
    """Add the made pages to those that are written by hand."""
    from mkdocs.structure.files import File

    for path, text in (reference.pages() | notebooks.pages()).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the theme's search dialog for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
