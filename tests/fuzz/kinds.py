"""One function per kind of input: it takes hostile bytes and raises nothing but an EvbandError that was foreseen.

Each also checks what comes out: numbers that are finite, messages of one line, and (by `within`) no hang.
"""

from __future__ import annotations

import json
import math
import random
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evband.errors import LONGEST, EvbandError, UnforeseenError
from evband.trips import Trip
from fuzz import command_line, containers, mutate, seeds, serving

LONGEST_S = 5.0  # of this process's own time: on a busy or halted machine the clock on the wall tells nothing
LONGEST_WALL_S = 900.0  # for what waits without working; a machine may be halted for minutes
FOLDER = Path(tempfile.mkdtemp(prefix="evband-fuzz-"))


@contextmanager
def within(seconds: float, on_the_wall: float) -> Iterator[None]:
    """A TimeoutError for whatever works or waits longer (where signals can be used), also where a reader takes it for damage."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    hangs: list[str] = []

    def late(number: int, _: object) -> None:
        hangs.append(f"over {seconds} s of work" if number == signal.SIGPROF else f"over {on_the_wall} s")
        raise TimeoutError(hangs[0])

    before = [signal.signal(number, late) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, on_the_wall, on_the_wall)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])
        if hangs:
            raise TimeoutError(hangs[0])


def attack(kind: str, data: bytes) -> bool:
    """Whether the input was taken; an AssertionError (or what else was raised) where it broke something."""
    warm(kind)
    refusal = ""
    with within(LONGEST_S, LONGEST_WALL_S):
        try:
            KINDS[kind].takes(data)
        except UnforeseenError:
            raise
        except EvbandError as problem:
            refusal = str(problem) or "without a word"
    assert refusal.isprintable()
    assert len(refusal) <= LONGEST
    return not refusal


def read_log(data: bytes) -> None:
    from evband.logs.reading import read_trips

    path = FOLDER / "log.csv"
    path.write_bytes(data)
    for trip in read_trips(path):
        assert trip.trip_id.isprintable()
        finite(trip)
        assert math.isfinite(trip.distance_km)
        if len(trip) < 5000:
            finite(trip.on_grid(1.0))


def finite(trip: Trip) -> None:
    for name in trip.channels:
        assert np.isfinite(trip.series(name)).all(), name


def read_map(data: bytes) -> None:
    from evband.logs.reading import read_trips

    (FOLDER / "map.toml").write_bytes(data)
    (FOLDER / "mapped.csv").write_bytes(seeds.logs()["tidy"])
    for trip in read_trips(FOLDER / "mapped.csv", map=FOLDER / "map.toml"):
        finite(trip)


def guess_map(data: bytes) -> None:
    import tomllib

    from evband.logs.guess import guess_map

    (FOLDER / "guess.csv").write_bytes(data)
    tomllib.loads(guess_map(FOLDER / "guess.csv"))


def load_state(data: bytes) -> None:
    from evband.streaming import LineStream
    from evband.streaming.pump import resume

    (FOLDER / "state.json").write_bytes(data)
    stream = LineStream(seeds.model(), adapt=True)
    resume(stream, FOLDER / "state.json")
    for after in (1.0, 2.0, 30.0):
        _finite(
            stream.line(json.dumps({"utc": (stream.time or 0.0) + after, "speed": 50, "power": 8, "elevation": 200}))
        )


def take_lines(data: bytes) -> None:
    from evband.streaming import LineStream

    stream = _STREAM.setdefault("one", LineStream(seeds.model(), adapt=True))
    for line in data.split(b"\n"):
        _finite(stream.line(line.decode("utf-8", "replace")))


_STREAM: dict = {}


def _finite(answer: str) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in an answer")

    assert "\n" not in answer
    json.loads(answer, parse_constant=refuse)


def load_model(data: bytes) -> None:
    from evband.model import load

    (FOLDER / "car.evband").write_bytes(data)
    model = load(FOLDER / "car.evband")
    band = model.stream().tick(speed_kmh=50.0, acceleration_ms2=0.1, elevation_m=100.0, ambient_temp_c=5.0)
    assert all(math.isfinite(value) for value in (band.mean_kw, band.lower_kw, band.upper_kw, band.epistemic_kw))


def plan_route(data: bytes) -> None:
    from evband.routes import read_route

    (FOLDER / "route.csv").write_bytes(data)
    finite(read_route(FOLDER / "route.csv").on_grid(1.0))


def read_sheet(data: bytes) -> None:
    """A data sheet, as `start` uses it."""
    from evband.vehicles import read_sheets

    (FOLDER / "own.toml").write_bytes(data)
    for sheet in read_sheets(FOLDER / "own.toml"):
        sharp = sheet.sharpened()
        numbers = (sharp.mass_kg, sharp.cda_m2, sharp.crr, *map(sharp.uncertainty, ("mass_kg", "cda_m2", "crr")))
        assert all(math.isfinite(number) and number > 0 for number in numbers)


def read_energies(data: bytes) -> None:
    from evband.adaptation.energy_evidence import is_energy_table, read_energy

    (FOLDER / "energies.csv").write_bytes(data)
    is_energy_table(FOLDER / "energies.csv")
    for trip in read_energy(FOLDER / "energies.csv", seeds.started_model(FOLDER)):
        assert all(math.isfinite(number) for number in (trip.kw, trip.distance_km, trip.speed_kmh))


def artifact_bytes(rng: random.Random, whole: bytes | None = None, key: str = "evband") -> bytes:
    """A model with values changed in its header, the header's length put right, or with bytes changed."""
    whole = whole or seeds.artifact(FOLDER)
    if rng.random() < 0.4:
        return mutate.mutate(whole, rng)
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    inner = header["__metadata__"][key]
    header["__metadata__"][key] = mutate.mutate_json(inner.encode(), rng).decode("utf-8", "replace")
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + whole[8 + length :]


def part_bytes(rng: random.Random) -> bytes:
    """A car's part; also with other bits in its tensors, where float16 has infinities."""
    whole = artifact_bytes(rng, seeds.part(FOLDER), "evband_part")
    at = rng.randrange(len(whole) + 1)
    return (
        whole
        if rng.random() < 0.7
        else whole[:at] + rng.choice((b"\x00\x7c", b"\xff\x7b", b"\x00\x7e")) + whole[at + 2 :]
    )


def route_bytes(rng: random.Random) -> bytes:
    route = rng.choice(list(seeds.ROUTES.values()))
    return mutate.mutate_json(route, rng) if route.startswith(b"{") else mutate.mutate(route, rng)


def line_bytes(rng: random.Random) -> bytes:
    lines = [rng.choice(seeds.LINES) for _ in range(20)]
    return b"\n".join(
        mutate.mutate_json(line, rng) if rng.random() < 0.7 else mutate.mutate(line, rng) for line in lines
    )


def _some_log(rng: random.Random) -> bytes:
    return mutate.mutate(rng.choice(list(seeds.logs().values())), rng)


class Kind(NamedTuple):
    takes: Callable[[bytes], None]
    makes: Callable[[random.Random], bytes]
    round: int  # calls in one round of a long run
    each: int = 1  # inputs in one call


@cache
def warm(kind: str) -> None:
    """Make and take one input without a limit: what it loads and compiles is no hang of the next."""
    with suppress(EvbandError):
        KINDS[kind].takes(KINDS[kind].makes(random.Random(0)))


KINDS = {
    "log": Kind(read_log, _some_log, 60),
    "map": Kind(read_map, lambda rng: mutate.mutate(seeds.MAP, rng), 100),
    "guess": Kind(guess_map, _some_log, 60),
    "state": Kind(load_state, lambda rng: mutate.mutate_json(seeds.state(), rng), 100),
    "line": Kind(take_lines, line_bytes, 10, each=20),
    "artifact": Kind(load_model, artifact_bytes, 100),
    "route": Kind(plan_route, route_bytes, 100),
    "parquet": Kind(read_log, containers.parquet_bytes, 60),
    "excel": Kind(read_log, containers.excel_bytes, 30),
    "mf4": Kind(read_log, containers.mf4_bytes, 4),
    "json": Kind(read_log, containers.json_bytes, 60),
    "sheet": Kind(read_sheet, lambda rng: mutate.mutate(rng.choice((seeds.SHEET, seeds.SHEETS)), rng), 100),
    "energies": Kind(read_energies, lambda rng: mutate.mutate(seeds.ENERGIES, rng), 100),
    "part": Kind(load_model, part_bytes, 100),
    "words": Kind(partial(command_line.run_words, folder=FOLDER), command_line.word_bytes, 10),
    "request": Kind(partial(serving.request, folder=FOLDER), serving.request_bytes, 60),
    "packets": Kind(partial(serving.packets, folder=FOLDER), serving.packet_bytes, 5, each=20),
    "serve": Kind(partial(serving.configuration, folder=FOLDER), lambda rng: mutate.mutate(serving.CONFIG, rng), 100),
    "pids": Kind(partial(serving.pids, folder=FOLDER), lambda rng: mutate.mutate(serving.PIDS, rng), 100),
    "dongle": Kind(partial(serving.dongle, folder=FOLDER), lambda rng: mutate.mutate(serving.ANSWERS, rng), 100),
}
