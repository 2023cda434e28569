"""Which cars there are, and each one's model: those of the configuration, and all of a fleet's folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evband.errors import ArtifactError, SettingsError
from evband.live.config import Car, Config
from evband.live.config import Fleet as Settings
from evband.live.parts import Parts

if TYPE_CHECKING:
    from evband.adaptation.bulk import Fleet
    from evband.model import PowerModel


@dataclass
class Roster:
    """Cars with their models; cars that share one share an engine, also those that are parts of a fleet's base."""

    cars: list[Car]
    models: list[PowerModel]
    fleet: Fleet | None = None
    rows: dict[int, int] = field(default_factory=dict)  # car -> its row in the fleet's arrays
    problems: list[str] = field(default_factory=list)  # cars that are left out, and why

    @property
    def middle(self) -> int:
        """The row of the car whose model stands for all parts: that of median mass."""
        assert self.fleet is not None
        return int(np.argsort(self.fleet.wheels[:, 0], kind="stable")[len(self.fleet) // 2])

    def battery_kwh(self, car: int) -> float:
        """Of the data sheet that a model started with; NaN where it tells nothing."""
        known = self.models[car].adaptation_
        battery = None if known is None or car in self.rows else known.sheet.get("battery_kwh")
        return float("nan") if battery is None else float(battery["value"])

    def parts(self, cars: Sequence[int]) -> Parts | None:
        """What a fleet learned of these cars, where they are parts."""
        if self.fleet is None or cars[0] not in self.rows:
            return None
        return Parts(self.fleet, np.array([self.rows[car] for car in cars]), self.middle)


def roster(config: Config) -> Roster:
    """Load every model once."""
    known: dict[Path, PowerModel] = {}
    found = Roster([_resolved(car, config) for car in config.cars], [])
    for car in config.cars:
        path = config.path(car.model).resolve()
        if path not in known:
            known[path] = _load(path)
        found.models.append(known[path])
    if config.fleet is not None:
        _add_fleet(found, config)
    ids = [car.id for car in found.cars]
    if len(set(ids)) < len(ids):
        double = next(name for name in ids if ids.count(name) > 1)
        raise SettingsError(f"The car {double} is in the configuration and in the fleet's folder; give one another id.")
    if len(ids) > config.server.max_cars:
        raise SettingsError(f"There are {len(ids)} cars, and [server] max_cars is {config.server.max_cars}; raise it.")
    return found


def _load(path: Path) -> PowerModel:
    from evband.model import load

    model = load(path)
    if "speed_kmh" not in model.feature_map_.channels:
        raise SettingsError(
            f"{path}: this model does not use speed_kmh, which every live feed is built on; fit one that does."
        )
    return model


def _resolved(car: Car, config: Config) -> Car:
    """Paths as they are from anywhere."""

    def whole(name: str | None) -> str | None:
        return None if name is None else str(config.path(name))

    return replace(car, file=whole(car.file), pids=whole(car.pids), route=whole(car.route))


def _add_fleet(found: Roster, config: Config) -> None:
    """All cars of a fleet's folder: parts of one base together, whole models each by itself, damaged ones not at all."""
    from evband.adaptation.bulk import read_parts
    from evband.adaptation.starting import energy_of
    from evband.errors import EvbandError

    fleet = config.fleet
    assert fleet is not None
    folder = config.path(fleet.dir) / "cars"
    first, step = config.part
    files = sorted(folder.glob("*.evband"))[first - 1 :: step]
    if not files:
        raise SettingsError(f"{folder}: there is no car in this fleet's folder; make one with evband fleet fit.")
    whole = files
    with suppress(ArtifactError):  # no part among them
        found.fleet = read_parts(files)
        whole = [file for file, _ in found.fleet.bad]
        if len(found.fleet):
            shared = _load(found.fleet.files[found.middle])
            # what its own trips show of its errors does not hold for other cars
            shared.energy_ = energy_of(found.fleet.base, float(found.fleet.wheels[found.middle, 0]))
            for row, file in enumerate(found.fleet.files):
                found.rows[len(found.cars)] = row
                _add_car(found, file, fleet, shared)
    for file in whole:
        try:
            _add_car(found, file, fleet, _load(file))
        except EvbandError as problem:
            found.problems.append(str(problem))
    if not found.cars:
        raise SettingsError(f"{folder}: no car of this fleet can be read; the first: {found.problems[0]}")


def _add_car(found: Roster, file: Path, fleet: Settings, model: PowerModel) -> None:
    topic = None if fleet.topic is None else fleet.topic.replace("{id}", file.stem)
    car = Car(
        id=file.stem, model=str(file), source=fleet.source, capacity_kwh=fleet.capacity_kwh,
        reserve_soc=fleet.reserve_soc, topic=topic,
    )  # fmt: skip
    found.cars.append(car)
    found.models.append(model)
