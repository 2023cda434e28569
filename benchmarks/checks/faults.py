"""Machines that die: commands killed, and disks that fill up, at random moments.

    python -m benchmarks.checks.faults [--strikes 100] [--seed 0]

convert, predict, stream, adapt, fleet, fit and serve work on small made-up drives in a small file system of their own (tmpfs in a private mount
namespace, so this needs root). A command is forked from a process that has imported all it needs, and struck: by SIGKILL or SIGTERM, once it
has worked for a time drawn evenly from what it works in all; or by a disk on which a number of pages drawn evenly from what it writes is left.
Then every file that has its final name must be whole, the old one or the new one; a full disk must have been one sentence (`serve` must
go on answering); and the same command again (`fit --resume`, `stream` with the lines that its state has not seen) must end as it does when
nothing happens (numbers of a state to ten digits). Checkpoints of `fit` are kept after every epoch and states of `stream` after every
line, so that there is more to break.
A command that was done before its moment came is not counted and tried again. Writes `benchmarks/results/faults.csv`; the exit status
is 1 if anything was lost or ended differently.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.common.results_file import RESULTS, show, write

ROOT = Path(__file__).parents[2]
SHARES = {"convert": 18, "predict": 18, "stream": 18, "adapt": 16, "fleet": 12, "fit": 12, "serve": 6}  # of 100 strikes
SPACE = 16 << 20
PAGE = 4096
TICK = os.sysconf("SC_CLK_TCK")
BEFORE = b"what was there before"
Files = dict[str, bytes]


class Lost(Exception):
    """Something finished is gone or not whole."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strikes", type=int, default=100, help="kills, and as many full disks")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not os.environ.get("EVBAND_OWN_MOUNTS"):
        os.environ["EVBAND_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "benchmarks.checks.faults", *sys.argv[1:]])
    sys.path.insert(0, str(ROOT / "tests"))
    import_all()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        disk = Path(folder) / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "none", str(disk)], check=True)
        inputs = made_inputs(Path(folder))
        try:
            for name, share in SHARES.items():
                wanted = max(1, round(share * options.strikes / 100))
                rng = random.Random(f"{name} {options.seed}")
                strikes = (Served if name == "serve" else Struck)(name, inputs, disk, rng)
                for kind in ("kill", "full disk"):
                    rows.append(strikes.row(kind, wanted))
                    print(rows[-1], flush=True)
                    write(RESULTS / "faults.csv", rows)
        finally:
            subprocess.run(["umount", str(disk)], check=False)
    show("Kills and full disks", rows)
    sys.exit(1 if any(row["lost"] or row["differing"] or row["faults"] for row in rows) else 0)


def import_all() -> None:
    """What commands import, so that what is struck is their work. Nothing is computed: threads do not survive a fork."""
    for name in ("cli", "model", "logs.reading", "logs.writing", "streaming.pump", "adaptation.update", "fleet.fitting", "training.plan", "bands"):  # fmt: skip
        importlib.import_module(f"evband.{name}")


def made_inputs(folder: Path) -> Path:
    """Logs and models, made by another process: this one must not have computed anything when it forks."""
    code = f"""
import json, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import polars as pl
import evband
from drives import made_up_trip, made_up_trips, small_model
small_model().save("car.evband")
evband.start("Nissan Leaf 40 kWh").save("leaf.evband")
made_up_trips(4, 200).to_polars().write_parquet("trips.parquet")
import os
os.mkdir("lake")
for n, car in enumerate("abc"):
    drives = [made_up_trip(f"{{car}}{{i}}", 300, 10 * n + i).table.with_columns(trip_id=pl.lit(f"{{car}}{{i}}")) for i in range(2)]
    pl.concat(drives).with_columns(vehicle_id=pl.lit(car)).write_parquet(f"lake/{{car}}.parquet")
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return folder


LINES = [json.dumps({"utc": 1.7e9 + i, "speed": 30 + i % 40, "elevation": 200 + i % 9, "power": 8}) for i in range(300)]


class Struck:
    """One command, struck again and again on the small disk."""

    def __init__(self, name: str, inputs: Path, disk: Path, rng: random.Random) -> None:
        self.name, self.inputs, self.disk, self.rng = name, inputs, disk, rng
        self.words = {
            "convert": ["convert", f"{inputs}/trips.parquet", "-o", "out.csv", "--hz", "1"],
            "predict": ["predict", f"{inputs}/car.evband", f"{inputs}/trips.parquet", "-o", "out.parquet"],
            "stream": ["stream", f"{inputs}/car.evband", "--state", "state.json"],
            "adapt": ["adapt", f"{inputs}/leaf.evband", f"{inputs}/lake/a.parquet", "-o", "out.evband"],
            "fleet": ["fleet", "fit", f"{inputs}/lake", "--mass-kg", "1600", "--cda-m2", "0.65", "-o", "out"],
            "fit": ["fit", f"{inputs}/trips.parquet", "-o", "out.evband", "--members", "2", "--epochs", "12", "--device", "cpu", "--no-calibrate"],
        }.get(name, [])  # fmt: skip
        self.wanted: Files = {}
        self.works_s = self.writes = 0.0

    def row(self, kind: str, wanted: int) -> dict[str, Any]:
        row: dict[str, Any] = {"command": self.name, "kind": kind, "struck": 0, "tried": 0, "lost": 0, "differing": 0, "faults": 0}  # fmt: skip
        self.unbroken()
        while row["struck"] < wanted and row["tried"] < 4 * wanted:
            row["tried"] += 1
            self.clear()
            try:
                if not (self.kill if kind == "kill" else self.fill)():
                    continue
                row["struck"] += 1
                self.check_finished()
                if self.again() != self.wanted:
                    row["differing"] += 1
                    print(f"{self.name}, {kind}: ended differently", file=sys.stderr, flush=True)
            except Lost as problem:
                row["lost"] += 1
                print(f"{self.name}, {kind}: {problem}", file=sys.stderr, flush=True)
            except AssertionError as problem:
                row["faults"] += 1
                print(f"{self.name}, {kind}: {problem}", file=sys.stderr, flush=True)
        return row

    def unbroken(self) -> None:
        """What it leaves, how long it works and what it writes when nothing happens; the second run, when all is compiled."""
        for _ in range(1 if self.wanted else 2):
            self.clear()
            child = self.begin(self.words)
            _, status, used = os.wait4(child, 0)
            assert status == 0, self.said()
            self.works_s = used.ru_utime + used.ru_stime
            found = self.files()
            assert not self.wanted or found == self.wanted, "two runs differ"
            self.wanted = found
            self.writes = float(sum(p.stat().st_size for p in self.disk.rglob("*") if p.is_file()))

    def clear(self) -> None:
        subprocess.run(["find", str(self.disk), "-mindepth", "1", "-delete"], check=True)
        if self.name in ("convert", "predict", "adapt"):
            (self.disk / self.words[-1 if self.name != "convert" else 3]).write_bytes(BEFORE)

    def begin(self, words: list[str]) -> int:
        """The process of a command, forked."""
        lines = LINES[self.seen() :] if self.name == "stream" else []
        (self.inputs / "lines").write_text("".join(line + "\n" for line in lines))
        if child := os.fork():
            return child
        status = 70
        try:
            os.chdir(self.disk)
            for number, name in ((0, "lines"), (1, "answers"), (2, "said")):
                mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                os.dup2(os.open(self.inputs / name, mode), number)
            from evband.cli import run
            from evband.streaming import pump

            pump.KEEP_EVERY_S = -1.0
            if self.name == "fit":
                from evband.training import checkpoint

                checkpoint.Checkpoint.__init__.__defaults__ = (0.0,)
            try:
                status = run(words)
            except SystemExit as end:
                status = int(end.code or 0)
            sys.stdout.flush()
        except BaseException as problem:
            os.write(2, f"Traceback: {type(problem).__name__}: {problem}".encode())
        os._exit(status)

    def said(self) -> str:
        return (self.inputs / "said").read_text(errors="replace")

    def seen(self) -> int:
        """Lines that the state on the disk has seen."""
        path = self.disk / "state.json"
        try:
            return int(json.loads(path.read_text())["lines"]) if path.exists() else 0
        except (ValueError, KeyError) as problem:
            raise Lost(f"the state is not whole ({problem})") from None

    def kill(self) -> bool:
        """Whether it was still at work when its moment came."""
        moment, number = self.rng.uniform(0.0, self.works_s), self.rng.choice((signal.SIGKILL, signal.SIGTERM))
        child = self.begin(self.words)
        while worked(child) < moment:
            time.sleep(0.002)
        os.kill(child, number)
        _, status, _ = os.wait4(child, 0)
        assert "Traceback" not in self.said(), self.said()[-300:]
        return os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 128 + number

    def fill(self) -> bool:
        """Whether the disk was too small; the command must say so in one sentence and leave nothing half-written."""
        fill = self.disk.parent / "disk" / "filler"
        left = self.rng.randrange(int(self.writes / PAGE) + 1) * PAGE
        room = os.statvfs(self.disk).f_bavail * PAGE
        with fill.open("wb") as file:
            file.write(bytes(max(room - left, 0)))
        _, status, _ = os.wait4(self.begin(self.words), 0)
        fill.unlink()
        errors = [line for line in self.said().splitlines() if line.startswith("evband: error: ")]
        if os.waitstatus_to_exitcode(status) == 0:
            return False
        assert os.waitstatus_to_exitcode(status) == 2, self.said()[-300:]
        assert len(errors) == 1, self.said()[-300:]
        assert "Traceback" not in self.said(), self.said()[-300:]
        hidden = [p.name for p in self.disk.rglob(".*") if p.is_file()]
        assert not hidden, f"left behind: {hidden}"
        return True

    def check_finished(self) -> None:
        """Every file of the result that is there is whole."""
        for name, data in self.files().items():
            if self.name == "stream":
                self.seen()
            elif data not in (BEFORE, self.wanted.get(name)):
                raise Lost(f"{name} is neither the old one nor the new one")

    def again(self) -> Files:
        words = [*self.words, "--resume"] if self.name == "fit" else self.words
        _, status, _ = os.wait4(self.begin(words), 0)
        assert status == 0, self.said()[-300:]
        return self.files()

    def files(self) -> Files:
        """The result: files by their names, models as their weights and settings."""
        found = {}
        for path in sorted(self.disk.rglob("*")):
            name = str(path.relative_to(self.disk))
            if path.is_file() and not path.name.startswith(".") and path.suffix != ".checkpoint" and name != "out/report.html":  # fmt: skip
                data = path.read_bytes()
                if data != BEFORE:
                    data = (
                        comparable(data)
                        if name == "out.evband"
                        else in_ten_digits(data)
                        if name == "state.json"
                        else data
                    )
                found[name] = data
        return found


def comparable(data: bytes) -> bytes:
    """A model without how long its training took."""
    length = int.from_bytes(data[:8], "little")
    try:
        facts = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["evband"])
    except (ValueError, KeyError):
        return data
    facts["summary"] = {k: v for k, v in (facts["summary"] or {}).items() if "second" not in k and not k.endswith("_s")}
    return json.dumps(facts, sort_keys=True).encode() + data[8 + length :]


def in_ten_digits(data: bytes) -> bytes:
    """A state without its last digits: after a pause the search for a band's ends begins elsewhere and ends within 1e-14."""
    try:
        return json.dumps(json.loads(data, parse_float=lambda digits: f"{float(digits):.10g}")).encode()
    except ValueError:
        return data


def worked(child: int) -> float:
    """Seconds of processor time of a process; endless once it is done."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / TICK


class Served(Struck):
    """`serve`, struck while a drive comes in; the drive before it must stay."""

    def unbroken(self) -> None:
        pass

    def clear(self) -> None:
        subprocess.run(["find", str(self.disk), "-mindepth", "1", "-delete"], check=True)

    def kill(self) -> bool:
        server = self._with_a_drive()
        self._send(server, self.rng.randrange(1, 60))
        time.sleep(self.rng.uniform(0.0, 2.0))
        server.end(self.rng.choice((signal.SIGKILL, signal.SIGTERM)))
        return True

    def fill(self) -> bool:
        server = self._with_a_drive()
        left = self.rng.randrange(8) * PAGE
        with (self.disk / "filler").open("wb") as file:
            file.write(bytes(max(os.statvfs(self.disk).f_bavail * PAGE - left, 0)))
        for _ in range(2):
            self._send(server, 60)
            time.sleep(1.5)
        assert server.get("/healthz"), "it does not answer"
        server.end(signal.SIGTERM)
        (self.disk / "filler").unlink()
        return True

    def _with_a_drive(self) -> Any:
        server = server_class()(self.inputs, self.disk)
        server.drive(0, 60)
        self.began = [trip["began"] for trip in server.wait(server.kept)]
        time.sleep(2.5)  # the store writes every second
        return server

    @staticmethod
    def _send(server: Any, count: int) -> None:
        now = time.time() - 2.0
        lines = [json.dumps({"utc": now - count + i, "speed": 40 + i % 9, "power": 8, "soc": 60}) for i in range(count)]
        server.get("/api/cars/a/in", "\n".join(lines).encode())

    def check_finished(self) -> None:
        import sqlite3

        with closing(sqlite3.connect(self.disk / "s.sqlite")) as store:
            if store.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise Lost("the store is damaged")

    def again(self) -> Files:
        server = server_class()(self.inputs, self.disk)
        kept = [trip["began"] for trip in server.wait(server.kept)]
        server.end(signal.SIGTERM)
        if not set(self.began) <= set(kept):
            raise Lost("a drive is gone")
        return self.wanted


def server_class() -> Callable[[Path, Path], Any]:
    from faults.serving import Server  # type: ignore[import-not-found, unused-ignore]

    found: Callable[[Path, Path], Any] = Server
    return found


if __name__ == "__main__":
    main()
