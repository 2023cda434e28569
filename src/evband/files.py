"""Writing a file whole or not at all: under a temporary name beside it, then renamed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evband.errors import EvbandError, SettingsError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and is removed when it does not."""
    path = Path(path)
    if os.path.isdir(path):
        raise SettingsError(f"{path}: this is a directory; give the name of a file to write.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise _write_error(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise _write_error(path, error) from error
    except Exception as error:
        if "No space left" in str(error):  # libraries wrap a full disk in errors of their own (polars for Parquet)
            raise _write_error(path, OSError(errno.ENOSPC, str(error))) from error
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_error(path: Path, error: OSError) -> EvbandError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
        return SettingsError(f"{path}: the disk is full, so nothing was written; free some space or write elsewhere.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return SettingsError(f"{path}: no permission to write there; choose another place.")
    if error.errno == errno.ENOENT:
        return SettingsError(f"{path}: its directory does not exist; make it first.")
    return SettingsError(f"{path}: it could not be written ({error.strerror or error}); choose another place.")
