"""Reading a file of a bounded size, and writing one whole or not at all: under a temporary name beside it, then renamed."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from evband.errors import ArtifactError, EvbandError, FullDiskError, SettingsError

STDOUT = Path("-")  # standard output, where a file may be named
MOST_HEADER = 16 << 20  # bytes of a safetensors file's
LITTLE = 1 << 16  # bytes: a disk with less left is full
PATIENCE_S = 10.0  # for somebody to write to a named pipe


def read_bounded(path: str | Path, most: int, error: type[EvbandError], what: str = "file") -> bytes:
    """A file's bytes, if there are at most `most`; else, or where it cannot be read, one sentence as an `error`.

    Read from the open file, not by its stated size: a pipe or a growing log states none.
    """
    try:
        with _opened(path) as file:
            stated = os.fstat(file.fileno()).st_size
            data = file.read(min(stated or most, most) + 1)
            if len(data) > stated > 0 and len(data) <= most:  # it grows
                data += file.read(most + 1 - len(data))
    except FileNotFoundError:
        raise error(f"{path}: there is no such file; check the path.") from None
    except PermissionError:
        raise error(f"{path}: no permission to read it; change its permissions or copy it.") from None
    except (OSError, ValueError) as problem:  # a name with a null byte is a ValueError
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise error(f"{path}: the {what} cannot be read ({reason}); check the path.") from None
    if len(data) > most:
        raise error(f"{path}: the {what} has more than {size(most)}, the most that is read; split it.")
    return data


def header_json(data: bytes, key: str, what: str) -> dict[str, Any]:
    """What the header of a safetensors file keeps under `key`, as JSON text; its own length is checked first."""
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(MOST_HEADER, len(data) - 8):
        raise ArtifactError(f"this is not {what}, or it was cut short; make or copy it again.")

    def refuse(constant: str) -> None:
        raise ArtifactError(f"it holds {constant} where a number belongs; make it again.")

    text = json.loads(data[8 : 8 + length], parse_constant=refuse)["__metadata__"][key]
    return dict(json.loads(text, parse_constant=refuse))


def _opened(path: str | Path) -> IO[bytes]:
    """The file to read from; not a device, which need not end, nor a named pipe that nobody writes to."""
    kind = os.stat(path).st_mode
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise OSError(errno.EINVAL, "it is a device, not a file")
    if not stat.S_ISFIFO(kind):
        return Path(path).open("rb")
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(Path(path).open, "rb")
        try:
            return cast("IO[bytes]", opening.result(PATIENCE_S))
        except TimeoutError:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # lets the one that waits go
            opening.result().close()
            raise OSError(errno.ETIMEDOUT, f"nothing has been written to this pipe for {PATIENCE_S:.0f} s") from None


def read_toml(path: str | Path, error: type[EvbandError], what: str, most: int = 1 << 20) -> dict[str, Any]:
    """A TOML file of at most `most` bytes; whatever else it is, is one sentence as an `error`."""
    data = read_bounded(path, most, error, what)
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise error(f"{path}: the {what} is nested too deeply; correct it.") from None
    except ValueError as problem:  # not UTF-8, not TOML, or a number of thousands of digits
        raise error(f"{path}: the {what} is not valid TOML ({problem}); correct it.") from None


def json_value(text: str | bytes) -> Any:
    """JSON from anybody: whole numbers of any length fit in a float, and nesting too deep is a ValueError like other damage.

    >>> json_value('[12, 1%s]' % ("0" * 5000))
    [12, inf]
    """
    try:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 18 else float(digits))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def size(count: int) -> str:
    """A count of bytes as people write it.

    >>> size(1 << 29), size(1 << 20), size(65536)
    ('512 MiB', '1 MiB', '64 KiB')
    """
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and is removed when it does not."""
    path = Path(path)
    try:
        path = Path(os.path.realpath(path))  # what a link names is written, and the link stays
        there = os.stat(path).st_mode if os.path.lexists(path) else stat.S_IFREG
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: this cannot be the name of a file ({error}); choose another.") from None
    if stat.S_ISDIR(there):
        raise SettingsError(f"{path}: this is a directory; give the name of a file to write.")
    if not stat.S_ISREG(there):  # as root, a device would be replaced by a file
        raise SettingsError(f"{path}: this is a device or a pipe, not a file; give the name of a file to write.")
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
    except Exception as error:  # of any library that writes: polars hides the system's error in one of its own
        if code := _wrapped_code(str(error), path):
            raise _write_error(path, OSError(code, os.strerror(code))) from error
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _wrapped_code(message: str, path: Path) -> int | None:
    """The system's error inside what a library says, as polars does of Parquet; its "transport error" hides which one it was."""
    if number := re.search(r"\(os error (\d+)\)", message):
        return int(number.group(1))
    if "No space left" in message:
        return errno.ENOSPC
    if "transport error" in message:
        return errno.ENOSPC if shutil.disk_usage(path.parent).free < LITTLE else errno.EIO
    return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_error(path: Path, error: OSError) -> EvbandError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error):
        return FullDiskError(f"{path}: the disk is full, so nothing was written; free some space or write elsewhere.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return SettingsError(f"{path}: no permission to write there; choose another place.")
    if error.errno == errno.ENOENT:
        return SettingsError(f"{path}: its directory does not exist; make it first.")
    return SettingsError(f"{path}: it could not be written ({error.strerror or error}); choose another place.")
