"""Compiled once, kept on disk, and compiled anew when any file beside it changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` whose disk cache also looks at the other files of the function's package.

    Numba keeps a function's machine code for as long as the function's own file is unchanged, although the code of the
    functions that it calls is inlined there: an edit of one file would go on running the old code from another's cache.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(cache=True, nogil=True, **options)(function)
        index = getattr(dispatcher._cache, "_cache_file", None)  # None where nothing can be kept
        if index is not None:
            folder = Path(function.__code__.co_filename).parent
            stats = [file.stat() for file in sorted(folder.glob("*.py"))]
            index._source_stamp = tuple((stat.st_mtime, stat.st_size) for stat in stats)
        return dispatcher

    return decorate
