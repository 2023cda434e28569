"""The object of a car that the API, MQTT and the page share (`GET /api/cars`), made from columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.range import LEVELS
from evband.features.rows import warming
from evband.live import states
from evband.live.assemble import SPEED, Assembler
from evband.live.engine import Group
from evband.live.power_check import PowerCheck
from evband.live.ranges import Ranges

Array = NDArray[np.float64]
Cars = NDArray[np.int64]

LEAST_KM = 0.5  # before that a consumption per 100 km means nothing
SLOW_S = 15.5  # speed that comes less often is too slow for power second by second
JUMPS = 3.0


def objects(
    group: Group, ranges: Ranges, assembler: Assembler, check: PowerCheck, cars: Cars, state: NDArray[np.int8],
    names: list[str], clock: Array,
) -> list[dict[str, Any]]:  # fmt: skip
    """One object each of these cars (numbers in the group); `state` and `clock` are columns of the group."""
    shown = np.isin(state[cars], states.UNDER_WAY)
    band = _lists(np.where(shown[:, None], group.band[cars], np.nan), 4)
    energy = group.tally.energy(cars)
    began = ~np.isnan(group.began[cars])
    nothing = np.full(len(cars), np.nan)
    kwh = np.where(began[:, None], np.stack(energy or (nothing,) * 3, -1), np.nan)
    km = group.tally["km"][cars]
    far = began & (km >= LEAST_KM) & (energy is not None)
    per_100 = np.where(far, 100.0 * ranges.used_kwh(cars) / np.maximum(km, LEAST_KM), np.nan)
    columns = zip(
        group.cars[cars].tolist(), _list(group.at[cars], 3), state[cars].tolist(), band, _lists(kwh, 4), _list(per_100, 2),
        _lists(ranges.km[cars], 2), _list(ranges.arrival[cars], 4), _list(ranges.arrival_empty[cars], 4),
        (group.outside[cars] & shown).tolist(), warming(group.since[cars] - 1.0, group.hz).tolist(), _list(np.where(shown, group.speed[cars], np.nan), 2),
        _list(ranges.soc(cars), 2), _list(np.where(began, km, np.nan), 3),
        _list(np.where(shown, group.power[cars], np.nan), 3), degraded(group, assembler, check, cars, state, clock),
        strict=True,
    )  # fmt: skip
    return [
        {
            "id": assembler.ids[number], "name": names[number], "at": at, "state": states.STATES[code],
            "mean_kw": b[0], "lower_kw": b[1], "upper_kw": b[2], "aleatoric_kw": b[3], "epistemic_kw": b[4],
            "energy_kwh": {"mean": e[0], "lower": e[1], "upper": e[2]}, "kwh_100km": per,
            "range_km": dict(zip(LEVELS, reach, strict=True)),
            "arrival_probability": arrives, "arrival_probability_empty": empty, "outside": out, "degraded": why,
            "warmup": warm, "speed_kmh": speed, "soc_pct": soc, "distance_km": driven, "power_kw": power,
        }
        for number, at, code, b, e, per, reach, arrives, empty, out, warm, speed, soc, driven, power, why in columns
    ]  # fmt: skip


def degraded(
    group: Group, assembler: Assembler, check: PowerCheck, cars: Cars, state: NDArray[np.int8], clock: Array
) -> list[str | None]:
    """Why a car's bands are worse than they could be; None where they are not."""
    known = group.cars[cars]
    with np.errstate(invalid="ignore"):
        driving = np.isin(state[cars], states.UNDER_WAY)
        silent = state[cars] == states.SILENT
        slow = driving & (assembler.speed_step[known] > SLOW_S)
        blind = driving[:, None] & group.unknown[cars]
        odd = assembler.jumps[known] > JUMPS
    noted = np.isin(known, [number for number, note in check.notes.items() if note])
    why: list[str | None] = [None] * len(cars)
    for i in np.flatnonzero(silent | slow | blind.any(axis=1) | odd | noted).tolist():
        number, parts = int(known[i]), []
        if silent[i]:
            parts.append(f"no speed for {clock[cars[i]] - assembler.last_t[number, SPEED]:.0f} s")
        if slow[i]:
            parts.append(f"speed comes only every {assembler.speed_step[number]:.0f} s")
        if blind[i].any():
            channels = group.model.feature_map_.channels
            parts.append(", ".join(c for c, gone in zip(channels, blind[i], strict=True) if gone) + " unknown")
        if odd[i]:
            parts.append("speed jumps as if two cars sent under this id")
        if noted[i]:
            parts.append(check.notes[number])
        why[i] = "; ".join(parts)
    return why


def _list(column: Array, digits: int) -> list[float | None]:
    return [None if v != v else v for v in np.round(column, digits).tolist()]


def _lists(columns: Array, digits: int) -> list[list[float | None]]:
    rounded: list[list[float]] = np.round(columns, digits).tolist()
    if not np.isnan(columns).any():
        return rounded  # type: ignore[return-value]
    return [[None if v != v else v for v in row] for row in rounded]
