"""Words of a command line: every option of every command with values that nobody would give.

The commands and their options are asked from the command line itself, so a new one is attacked from its first day. An input is a JSON list of
words, run in this process in a folder with a few small files. Work that may take long (training, serving, Ray) ends where it would begin.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from evband.errors import LONGEST, EvbandError
from fuzz import seeds

VALUES = (
    "", " ", "-", "--", ".", "..", "/", "0", "-0", "1", "2", "-1", "0.5", "1.5", "nan", "NaN", "inf", "-inf", "1e308", "-1e308", "1e-310", "1e18", "2147483648",
    "9223372036854775808", "9" * 400, "1_000", "1,5", "x", "x" * 5000, "\x1b[31m", "a\nb", "a\0b", "\udcff", "℃", "é" * 300, "[", "[/red]", "{}", "=", "a=b", ":", "1:2", "2:1",
    "power_kw=1:nan", "speed_kmh=0:inf", "speed_kmh=x", "0,0", "91,181", "48.1,11.5", "nan,nan", "1/2", "0/0", "3/2", "/nonexistent/x", "/dev/null", "/dev/zero", "../x.csv",
    "trips.csv", "car.evband", "leaf.evband", "route.csv", "sheet.toml", "serve.toml", "lake", "empty", "out.csv", "out.parquet", "out.evband", "out.html", "out.json", "-",
    "http://127.0.0.1:1", "http://", "file:///etc/passwd", "auto", "all", "none", "*", "**", "~", "$HOME", "%s%n", "CON", "None", "true",
)  # fmt: skip
BASES: dict[str, tuple[str, ...]] = {
    "demo": (),
    "inspect": ("trips.csv",),
    "convert": ("trips.csv", "-o", "out.csv"),
    "simulate": ("nobody", "-o", "out.csv"),
    "start": ("sheet.toml",),
    "adapt": ("leaf.evband", "trips.csv", "-o", "out.evband"),
    "prior": ("lake", "-o", "out.evband", "--mass-kg", "1500", "--cda-m2", "0.6"),
    "fit": ("trips.csv", "-o", "out.evband"),
    "predict": ("car.evband", "trips.csv", "-o", "out.csv"),
    "evaluate": ("car.evband", "trips.csv"),
    "calibrate": ("car.evband", "trips.csv", "-o", "out.evband"),
    "energy": ("car.evband", "trips.csv"),
    "range": (
        "car.evband",
        "--soc",
        "60",
        "--capacity-kwh",
        "40",
        "--distance-km",
        "20",
        "--speed-kmh",
        "50",
        "--ambient",
        "5",
    ),
    "route": ("route.csv",),
    "stream": ("car.evband",),
    "serve": ("serve.toml",),
    "collapse": ("car.evband", "trips.csv", "-o", "out.evband"),
    "export": ("car.evband", "-o", "out.onnx"),
    "info": ("car.evband",),
    "doctor": (),
    "vehicles": ("leaf",),
    "study compare": ("--logs", "a=trips.csv", "--out", "study", "--methods", "t-anchor"),
    "study ablation": ("--logs", "a=trips.csv", "--out", "study"),
    "study search": ("--logs", "a=trips.csv", "--out", "study"),
    "fleet fit": ("lake", "-o", "fleet", "--mass-kg", "1500", "--cda-m2", "0.6"),
    **{f"fleet {name}": ("lake", "-o", "fleet") for name in ("update", "predict", "energy", "evaluate")},
}
BEGINS = ("evband.training.loop.Trainer.epoch", "evband.live.run.serve", "evband.demo.chapter", "evband.fleet.engine._on_ray",
          "evband.export.collapse.distill", "evband.simulation.simulated_log", "evband.studies.cases.simulated", "evband.report.doctor.run_checks")  # fmt: skip


@cache
def commands() -> dict[str, Any]:
    """Every command by its words."""
    import typer

    from evband.cli import command_line

    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*words, name))
        if not getattr(command, "commands", None):
            found[" ".join(words)] = command

    walk(typer.main.get_command(command_line()), ())
    return found


def word_bytes(rng: random.Random) -> bytes:
    name = rng.choice(sorted(commands()))
    words = list(BASES.get(name, ()))
    if words and rng.random() < 0.2:
        words[rng.randrange(len(words))] = rng.choice(VALUES)
    for option in rng.choices([p for p in commands()[name].params if p.param_type_name == "option"] or [None], k=rng.choice((0, 1, 1, 2, 4))):  # fmt: skip
        if option is not None:
            words.append(rng.choice([*option.opts, *option.secondary_opts]))
            words += [] if option.is_flag else [rng.choice(VALUES)]
    if rng.random() < 0.1:
        words.insert(rng.randrange(len(words) + 1), rng.choice(VALUES))
    words = [word for word in words if word != "--help"]
    return json.dumps([*name.split(), *words]).encode()


def run_words(data: bytes, folder: Path) -> None:
    """Any words end with status 0, or with 2 and one line that says why."""
    _compile(folder)
    try:
        words = json.loads(data)
    except ValueError:
        words = []
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        _run(words, folder)


@cache
def _compile(folder: Path) -> None:
    """What a command compiles the first time is no hang of the next."""
    for name in ("stream", "range", "adapt", "fleet fit", "demo", "study search", "serve", "export"):
        with suppress(EvbandError):
            _run([*name.split(), *BASES[name]], folder)


def _run(words: list[str], folder: Path) -> None:
    from evband.cli import run

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO(b"\n".join(seeds.LINES)), encoding="utf-8")
    with _place(folder), _stubs(), mock.patch.object(sys, "stdin", stdin), redirect_stdout(out), redirect_stderr(err):
        try:
            status = run(words)
        except SystemExit as end:
            status = int(end.code or 0)
    said = (err.seek(0), err.read())[1]
    errors = [line for line in said.splitlines() if line.startswith("evband: error: ")]
    assert "Traceback" not in said
    assert status in (0, 1, 2), status
    if status == 2 and len(words) > 1:
        assert len(errors) == 1, said[-500:]
        assert len(errors[0]) <= LONGEST + len("evband: error: ")
        raise EvbandError(errors[0].removeprefix("evband: error: "))


@contextmanager
def _stubs() -> Iterator[None]:
    def begins(*_: object, **__: object) -> None:
        raise SystemExit(0)

    patches = [mock.patch(name, begins) for name in BEGINS]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


@contextmanager
def _place(folder: Path) -> Iterator[None]:
    """A fresh copy of the few files, as the working folder."""
    before, place = Path.cwd(), folder / "words" / "here"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(_files(folder), place)
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


@cache
def _files(folder: Path) -> Path:
    from drives import made_up_trip

    source = folder / "words-source"
    (source / "lake").mkdir(parents=True)
    (source / "empty").mkdir()
    made_up_trip("a", 300, 3).table.write_csv(source / "trips.csv")
    for car in "abc":
        made_up_trip(car, 120, 3).table.write_csv(source / "lake" / f"{car}.csv")
    (source / "car.evband").write_bytes(seeds.artifact(folder))
    seeds.started_model(folder).save(source / "leaf.evband")
    (source / "route.csv").write_bytes(seeds.ROUTES["legs"])
    (source / "sheet.toml").write_bytes(seeds.SHEET)
    (source / "serve.toml").write_text('[[car]]\nid = "a"\nmodel = "car.evband"\n')
    return source
