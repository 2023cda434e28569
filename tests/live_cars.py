"""A service that is stepped by hand: the demo's model and drive, a clock of our own, no threads."""

from __future__ import annotations

import json

import polars as pl
import pytest

from evband.live.config import Config, parse_config
from evband.live.reading import Sample
from evband.live.run import DEMO
from evband.live.service import Service

START = 1_790_000_000.0


@pytest.fixture(scope="session")
def drive() -> pl.DataFrame:
    return pl.read_csv(DEMO / "drive.csv")


def config(tmp_path, cars, **sections) -> Config:
    """Cars by id, each with settings of its own, on the demo's model."""
    listed = [
        {"id": name, "model": str(DEMO / "demo.evband"), "capacity_kwh": 60.0} | more for name, more in cars.items()
    ]
    return parse_config({"car": listed} | sections, "test", tmp_path)


class Stepped:
    """A service and its clock."""

    def __init__(self, settings: Config) -> None:
        self.service, self.now = Service(settings), START

    def put(self, car, at=None, **values):
        self.service.assembler.put(Sample(car, values, at), arrived=self.now)

    def step(self, seconds=1.0):
        self.now += seconds
        return self.service.step(self.now)

    def car(self, name):
        return json.loads(self.service.latest[name])

    def drive(self, name, table, stamped=True, **more):
        """A message per second, stepped as it comes; the bands made."""
        found = []
        for row in table.iter_rows(named=True):
            self.now += 1.0
            values = {k: v for k, v in (row | more).items() if k != "time_s" and v is not None}
            self.put(name, self.now if stamped else None, **values)
            found += self.service.step(self.now)
        return found


@pytest.fixture
def stepped(tmp_path):
    made = []

    def make(cars, **sections):
        made.append(Stepped(config(tmp_path, cars, **sections)))
        return made[-1]

    yield make
    for one in made:
        one.service.stop()
