"""Which cars there are, and each one's model: those of the configuration, and all of a fleet's folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evband.errors import SettingsError
from evband.live.config import Car, Config
from evband.live.parts import Parts

if TYPE_CHECKING:
    from evband.model import PowerModel


@dataclass
class Roster:
    """Cars with their models; cars that share a file share the object, and with it an engine."""

    cars: list[Car]
    models: list[PowerModel]

    def give_part(self, number: int, parts: Parts, local: int) -> None:
        """What a fleet learned of this one car, on top of the shared model."""


def roster(config: Config) -> Roster:
    """Load every model once."""
    cars = list(config.cars)
    if config.fleet is not None:
        cars += _fleet_cars(config)
    ids = [car.id for car in cars]
    if len(set(ids)) < len(ids):
        double = next(name for name in ids if ids.count(name) > 1)
        raise SettingsError(f"The car {double} is in the configuration and in the fleet's folder; give one another id.")
    if len(cars) > config.server.max_cars:
        raise SettingsError(f"There are {len(cars)} cars, and [server] max_cars is {config.server.max_cars}; raise it.")
    known: dict[Path, PowerModel] = {}
    models = []
    for car in cars:
        path = config.path(car.model).resolve()
        if path not in known:
            known[path] = _load(path)
        models.append(known[path])
    return Roster([_resolved(car, config) for car in cars], models)


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


def _fleet_cars(config: Config) -> list[Car]:
    fleet = config.fleet
    assert fleet is not None
    folder = config.path(fleet.dir) / "cars"
    files = sorted(folder.glob("*.evband"))
    if not files:
        raise SettingsError(f"{folder}: there is no car in this fleet's folder; make one with evband fleet fit.")
    return [
        Car(
            id=file.stem, model=str(file), source=fleet.source, capacity_kwh=fleet.capacity_kwh, reserve_soc=fleet.reserve_soc,
            topic=None if fleet.topic is None else fleet.topic.replace("{id}", file.stem),
        )
        for file in files
    ]  # fmt: skip
