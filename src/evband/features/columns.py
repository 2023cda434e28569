"""Features row by row, with a small memory: of many vehicles as columns, or of one as a stream."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import AGE, EDGES, READINGS, SENSED
from evband.features import memory

if TYPE_CHECKING:
    from evband.features import FeatureMap

Array = NDArray[np.float64]
Cars = NDArray[np.int64]
ONE: Cars = np.zeros(1, np.int64)


class FeatureColumns:
    """Feature rows of any of `vehicles` vehicles, equal to `FeatureMap.transform` of their whole trips."""

    def __init__(self, features: FeatureMap, vehicles: int, own: Mapping[str, Array] | None = None) -> None:
        self._map, self.vehicles = features, vehicles
        self._own = own or {}  # signals that stay: numbers of each vehicle's data sheet (`wheel.OWN`)
        self.rule = memory.rule_of(features)
        self.names = (*features.channels, "speed_kmh", *EDGES)
        held = [f"held_{c}" if kind == memory.HOLDS else "" for c, kind in zip(features.channels, self.rule[0], strict=True)]  # fmt: skip
        self._fields = {name: i for i, name in enumerate((*memory.NAMES, *held)) if name}
        self.memory = np.full((vehicles, memory.LAST + len(held)), np.nan)
        self.reset(np.arange(vehicles))

    def reset(self, cars: Cars) -> None:
        """Begin a drive of these vehicles."""
        self.memory[cars, memory.LAST :] = np.nan
        self.memory[cars, memory.TICKS] = self.memory[cars, memory.SEEN] = 0.0
        self.gap(cars)

    def gap(self, cars: Cars) -> None:
        """Go on after a gap: the road in between was not seen, weather and time under way stay."""
        self.memory[cars, : memory.END] = 0.0
        self.memory[cars, memory.END] = np.nan

    def tick(
        self, cars: Cars, values: Mapping[str, Array]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """(x [n, F], r [n, K], outside [n]) of the next grid step of `cars`, each once; NaN or no column = unknown.

        Acceleration counts as measured where it is known, unless `acceleration_sensed` of the grid says that it is not.
        """
        rows = np.full((len(cars), len(self.names)), np.nan)
        for j, name in enumerate(self.names):
            if name in values:
                rows[:, j] = values[name]
        which = np.empty((len(cars), len(self._map.channels)), bool)
        sensed = values.get(SENSED, 1.0) * ~np.isnan(values.get("acceleration_ms2", np.full(len(cars), np.nan)))
        memory.advance(*self.rule, self.memory, cars, rows, which)
        age_s = np.nan_to_num(values.get(AGE, np.zeros(len(cars))))
        row, *edges = rows.T[-3:]
        made = self._map.made(row, edges, age_s, values.get(READINGS, np.ones(len(cars))), sensed)
        made |= {name: column[cars] for name, column in self._own.items()}
        x, r = self._map.filled(rows[:, :-3], made)
        return x, r, np.any(which, axis=1)

    def to_dict(self, car: int) -> dict[str, Any]:
        """One vehicle's memory, JSON-able (NaN as null)."""
        own = self.memory[car].tolist()
        return {name: None if own[i] != own[i] else own[i] for name, i in self._fields.items()}

    def restore(self, car: int, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave; raises where it does not fit."""
        values = {i: np.nan if saved[name] is None else float(saved[name]) for name, i in self._fields.items()}
        if np.isinf([*values.values()]).any():
            raise ValueError("what features remember is not finite")
        for i, value in values.items():
            self.memory[car, i] = value


class FeatureStream:
    """Feature rows of one vehicle, a tick at a time: a column of one, with numbers instead of arrays where that is faster."""

    def __init__(self, features: FeatureMap) -> None:
        self._map, self._columns = features, FeatureColumns(features, 1)
        self._row, self._which = np.empty((1, len(self._columns.names))), np.empty((1, len(features.channels)), bool)

    def reset(self) -> None:
        """Begin a trip."""
        self._columns.reset(ONE)

    def gap(self) -> None:
        """Go on after a gap: the road in between was not seen, weather and time under way stay."""
        self._columns.gap(ONE)

    def tick(self, values: Mapping[str, float | None]) -> tuple[np.ndarray, np.ndarray, bool]:
        """(x [F], r [K], outside) at the next grid step; acceleration, if not given, is the change of speed, else measured.

        `speed_start_kmh` and `speed_end_kmh` of the grid may be among the values; else the speed stands for them, as
        it does in a log whose readings fall on the grid.
        """
        columns = self._columns
        self._row[0] = [math.nan if (value := values.get(name)) is None else value for name in columns.names]
        memory.advance(*columns.rule, columns.memory, ONE, self._row, self._which)
        row = self._row[0].tolist()
        signals = dict(zip(self._map.channels, row, strict=False))
        readings, sensed, measured = (values.get(name) for name in (READINGS, SENSED, "acceleration_ms2"))
        given = measured is not None and measured == measured
        age_s = np.nan_to_num(values.get(AGE) or 0.0)
        told = age_s, 1.0 if readings is None else readings, given * (1.0 if sensed is None else sensed)
        made = self._map.made(row[-3], row[-2:], *told)
        signals |= {name: v for name, v in made.items() if v == v}
        x, r = self._map._rows(signals)
        return x.astype(np.float32), r.astype(np.float32), True in self._which[0].tolist()

    def to_dict(self) -> dict[str, Any]:
        """Its memory, JSON-able."""
        return self._columns.to_dict(0)

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave."""
        self._columns.restore(0, saved)
