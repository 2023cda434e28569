"""What hostile sizes cost: seconds of processor time and resident memory of `evband inspect` (or the command named) on each.

    python -m benchmarks.checks.sizes

Every input is made here, given to a fresh process, and must end in one sentence or be read, in under 1 GB of resident memory. Writes
`benchmarks/results/sizes.csv`; the exit status is 1 where one takes more or ends in a traceback. Processes that a
command starts count, each by itself.
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


def many_trips() -> bytes:
    """Drives of two readings each."""
    return b"trip_id,time_s,speed_kmh\n" + b"".join(b"t%d,0,30\nt%d,1,31\n" % (i, i) for i in range(100_000))


def long_drive() -> bytes:
    """7 million readings of five channels, 10 in a second."""
    import numpy as np

    time = np.arange(7_000_000) / 10.0
    kw = 8.0 + 6.0 * np.cos(time / 20.0)
    out = io.BytesIO()
    pl.DataFrame({
        "time_s": time, "speed_kmh": (60.0 + 30.0 * np.sin(time / 50.0)).round(3), "battery_current_a": (2.7 * kw).round(3),
        "battery_voltage_v": (380.0 - kw).round(2), "elevation_m": (300.0 + 50.0 * np.sin(time / 900.0)).round(2),
    }).write_csv(out)  # fmt: skip
    return out.getvalue()


def wide() -> bytes:
    """4000 columns that all might be a channel."""
    head = ["time_s", "speed_kmh", *(f"Battery power {i} (kW)" for i in range(2000))]
    return "\n".join(",".join(row) for row in (head, *([str(i)] * len(head) for i in range(300)))).encode()


def spiky() -> bytes:
    """A million readings, every other one a spike."""
    rows = (f"{i},{50 + i % 3},{-400 if i % 2 else 8},380" for i in range(1_000_000))
    return "\n".join(("time_s,speed_kmh,battery_current_a,battery_voltage_v", *rows)).encode()


PIPES = {"a pipe that does not end": "cat /dev/zero", "a pipe that nobody writes to": ""}
CASES: dict[str, tuple[Callable[[], bytes] | str, tuple[str, ...]]] = {
    "1 MB of gzip that unpacks to 1 GiB": (gzip_bomb, ("inspect",)),
    "a header of 1,000,000 columns": (columns, ("inspect",)),
    "100 MB of JSON lines": (json_lines, ("inspect",)),
    "100 MB of one JSON list": (json_list, ("inspect",)),
    "1 MB of workbook that unpacks to 1 GiB": (lambda: workbook(True), ("inspect",)),
    "the same with a directory that states 100 bytes": (lambda: workbook(False), ("inspect",)),
    "Parquet of 134,217,729 equal rows": (parquet, ("inspect",)),
    "MF4 whose record states 1 GiB": (lambda: mf4(False), ("inspect",)),
    "MF4 whose block unpacks to 1 GiB": (lambda: mf4(True), ("inspect",)),
    "100,000 trips in one file": (many_trips, ("inspect",)),
    "250 MB of CSV, 7 million readings": (long_drive, ("inspect",)),
    "a table of 2002 columns, 2000 of them power": (wide, ("inspect",)),
    "a million readings, half of them spikes": (spiky, ("inspect",)),
    "/dev/zero": ("/dev/zero", ("inspect",)),
    "a pipe that does not end": (bytes, ("inspect",)),
    "a pipe that nobody writes to": (bytes, ("inspect",)),
    "512 MiB of zeros": (lambda: bytes(512 * MIB), ("inspect",)),
    "a model of 512 MiB of zeros": (lambda: bytes(512 * MIB), ("info",)),
    "a model of 64 MB of zeros": (lambda: bytes(64 * MIB), ("info",)),
    "a model whose header states 2^60 bytes": (lambda: (1 << 60).to_bytes(8, "little") + bytes(1000), ("info",)),
}


def measure(name: str, folder: Path) -> dict[str, object]:
    """Make the input in another process, whose memory does not count, and give it to the command."""
    make, words = CASES[name]
    path = Path(make) if isinstance(make, str) else folder / "input.dat"
    if not isinstance(make, str):
        path.unlink(missing_ok=True)
    feeder = None
    if name in PIPES:
        os.mkfifo(path)
        feeder = subprocess.Popen(["sh", "-c", f"{PIPES[name]} > {path} 2> /dev/null"]) if PIPES[name] else None
    elif not isinstance(make, str):
        subprocess.run([sys.executable, "-m", "benchmarks.checks.sizes", "--make", name, str(path)], check=True)
    child = subprocess.Popen(
        [sys.executable, "-m", "evband", *words, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    said = child.stdout.read().decode("utf-8", "replace")
    _, status, used = os.wait4(child.pid, 0)
    if feeder is not None:
        feeder.kill()
        feeder.wait()
    child.returncode, code = 0, os.waitstatus_to_exitcode(status)
    answer = said.strip().splitlines()[-1].replace(str(path), "FILE")[:150] if code else "read"
    fine = code in (0, 2) and "Traceback" not in said
    count = path.stat().st_size if path.is_file() else 0
    return {"seconds": round(used.ru_utime + used.ru_stime, 1), "memory_mb": used.ru_maxrss // 1024, "bytes": count, "ended": answer if fine else f"status {code}: {answer}"}  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        make = CASES[sys.argv[2]][0]
        assert not isinstance(make, str)
        Path(sys.argv[3]).write_bytes(make())
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            rows.append({"input": name, **measure(name, Path(folder))})
            print(rows[-1], flush=True)
    show("Hostile sizes", rows)
    write(RESULTS / "sizes.csv", rows)
    sys.exit(
        1 if any(int(str(row["memory_mb"])) > MOST_MB or str(row["ended"]).startswith("status") for row in rows) else 0
    )


if __name__ == "__main__":
    main()
