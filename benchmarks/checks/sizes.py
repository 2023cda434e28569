"""What hostile sizes cost: seconds of processor time and resident memory of `evband inspect` (or the command named) on each.

    python -m benchmarks.checks.sizes

Every input is made here, given to a fresh process, and must end in one sentence or be read, in under 1 GB of resident memory. Writes
`benchmarks/results/sizes.csv`; the exit status is 1 where one takes more or ends in a traceback (100 MB of JSON take 1.3 GB). A process counts
the memory that this one had when it was forked, so small figures are upper bounds.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl

from benchmarks.common.results_file import RESULTS, show, write

MOST_MB = 1000
MIB = 1 << 20
ROW = b'{"utc": 1700000000, "speed": 50.5, "power": 8.25, "elevation": 512, "soc": 61, "ext_temp": 5}'


def gzip_bomb() -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as file:
        for _ in range(1024):
            file.write(bytes(MIB))
    return out.getvalue()


def columns() -> bytes:
    return b"time_s,speed_kmh," + ",".join(f"c{i}" for i in range(1_000_000)).encode() + b"\n1,2\n"


def json_lines() -> bytes:
    return b"\n".join(ROW.replace(b"1700000000", b"%d" % (1_700_000_000 + i)) for i in range(100 * MIB // len(ROW)))


def json_list() -> bytes:
    return b"[" + json_lines().replace(b"\n", b",") + b"]"


def workbook(honest: bool) -> bytes:
    """A sheet of 1 GiB of blanks; not honest: its directory states 100 bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        with book.open("xl/workbook.xml", "w", force_zip64=True) as file:
            for _ in range(1024):
                file.write(b" " * MIB)
    data = out.getvalue()
    return data if honest else data.replace((1 << 30).to_bytes(4, "little"), (100).to_bytes(4, "little"))


def parquet() -> bytes:
    out = io.BytesIO()
    pl.DataFrame({"speed_kmh": pl.repeat(1, (1 << 27) + 1, dtype=pl.UInt8, eager=True)}).write_parquet(out)
    return out.getvalue()


def mf4(packed: bool) -> bytes:
    """One record that states a gigabyte, or a packed block that unpacks to one."""
    import numpy as np
    from asammdf import MDF, Signal

    file = MDF(version="4.10")
    file.append([Signal(np.arange(60.0), np.arange(60.0), unit="km/h", name="VehicleSpeed")])
    with tempfile.TemporaryDirectory() as folder:
        data = bytearray(Path(file.save(Path(folder) / "x.mf4", compression=1 if packed else 0)).read_bytes())
    file.close()
    if not packed:
        at = data.index(b"##CG") + 24 + 48 + 16 + 8 + 4  # after links, id, cycles, flags: bytes of invalidation
        data[at : at + 4] = (1 << 30).to_bytes(4, "little")
        return bytes(data)
    bomb = _deflated_zeros(1024)
    at = data.index(b"##DZ")
    data[at + 40 : at + 48] = len(bomb).to_bytes(8, "little")
    data[at + 8 : at + 16] = (48 + len(bomb)).to_bytes(8, "little")
    moved = bytes(data[at : at + 48]) + bomb
    place = (len(data) + 7) // 8 * 8
    old = at.to_bytes(8, "little")
    return bytes(data).replace(old, place.to_bytes(8, "little")).ljust(place, b"\0") + moved


def _deflated_zeros(mib: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(mib)) + packer.flush()


CASES: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "1 MB of gzip that unpacks to 1 GiB": (gzip_bomb, ("inspect",)),
    "a header of 1,000,000 columns": (columns, ("inspect",)),
    "100 MB of JSON lines": (json_lines, ("inspect",)),
    "100 MB of one JSON list": (json_list, ("inspect",)),
    "1 MB of workbook that unpacks to 1 GiB": (lambda: workbook(True), ("inspect",)),
    "the same with a directory that states 100 bytes": (lambda: workbook(False), ("inspect",)),
    "Parquet of 134,217,729 equal rows": (parquet, ("inspect",)),
    "MF4 whose record states 1 GiB": (lambda: mf4(False), ("inspect",)),
    "MF4 whose block unpacks to 1 GiB": (lambda: mf4(True), ("inspect",)),
    "a model of 64 MB of zeros": (lambda: bytes(64 * MIB), ("info",)),
    "a model whose header states 2^60 bytes": (lambda: (1 << 60).to_bytes(8, "little") + bytes(1000), ("info",)),
}


def measure(data: bytes, words: tuple[str, ...], folder: Path) -> dict[str, object]:
    path = folder / "input.dat"
    path.write_bytes(data)
    child = subprocess.Popen(
        [sys.executable, "-m", "evband", *words, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    said = child.stdout.read().decode("utf-8", "replace")
    _, status, used = os.wait4(child.pid, 0)
    child.returncode, code = 0, os.waitstatus_to_exitcode(status)
    answer = said.strip().splitlines()[-1].replace(str(path), "FILE")[:150] if code else "read"
    fine = code in (0, 2) and "Traceback" not in said
    return {"seconds": round(used.ru_utime + used.ru_stime, 1), "memory_mb": used.ru_maxrss // 1024, "bytes": len(data), "ended": answer if fine else f"status {code}: {answer}"}  # fmt: skip


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, words) in CASES.items():
            rows.append({"input": name, **measure(make(), words, Path(folder))})
            print(rows[-1], flush=True)
    show("Hostile sizes", rows)
    write(RESULTS / "sizes.csv", rows)
    sys.exit(
        1 if any(int(str(row["memory_mb"])) > MOST_MB or str(row["ended"]).startswith("status") for row in rows) else 0
    )


if __name__ == "__main__":
    main()
