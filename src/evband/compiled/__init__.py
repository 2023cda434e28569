# mypy: disable-error-code="no-untyped-call"
"""The one door to Numba: compiled once, kept on disk where that is possible, and compiled anew where it is not.

Numba keeps a function's machine code for as long as the function's own file is unchanged, although the code of the
functions that it calls is inlined there: here every file of the kernels counts. And a cache must never stand in the
way: without a folder to write to, with a full disk or with files that a crash has cut short, code is compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.runtime.nrt import rtsys

Stamp = tuple[tuple[float, int], ...]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` without Python's lock, and with a cache that fails without a word."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        try:
            dispatcher._cache = _Cache(function)
        except (RuntimeError, OSError):  # nowhere to write: neither the package's folder nor the user's cache
            return dispatcher
        return dispatcher

    return decorate


unchecked = compiled(error_model="numpy", boundscheck=False)


class _MadeReady(UserProvidedCacheLocator):
    """A NUMBA_CACHE_DIR that was filled before and is not ours to write to, as on a read-only root."""

    def ensure_cache_path(self) -> None:
        if not Path(self.get_cache_path()).is_dir():
            raise OSError("nothing was compiled there")


class _Where(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 (Numba's own)
        UserProvidedCacheLocator,
        _MadeReady,
        *(c for c in CompileResultCacheImpl._locator_classes if c is not UserProvidedCacheLocator),
    ]


class _Cache(FunctionCache):
    """Numba's cache, whose damage counts as emptiness."""

    _impl_class = _Where

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = (*_files(Path(function.__code__.co_filename).parent), *_kernel_files())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba does, without importing everything that compiling needs (a third of a second): a hit needs its runtime only."""
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # whatever unpickling half a file may raise
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # it reads the index first: whatever unpickling half a file may raise
            self._forget()

    def _forget(self) -> None:
        try:
            self.flush()
        except OSError:  # the disk is full, or not ours to write to
            self.disable()


@cache
def _kernel_files() -> Stamp:
    """Of all files whose functions are inlined into each other."""
    network = Path(__file__).parents[1] / "network"
    return (*_files(network / "kernels"), *_files(network / "tick"))


@cache
def _files(folder: Path) -> Stamp:
    """When each was changed, and its size."""
    stats = [file.stat() for file in sorted(folder.glob("*.py"))]
    return tuple((stat.st_mtime, stat.st_size) for stat in stats)
