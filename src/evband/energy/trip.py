"""Trip energy: the distribution of the integral of power over a trip, or any stretch of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evband.bands import check_level
from evband.channels import KM_PER_MILE
from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel
from evband.energy.so_far import SoFar
from evband.energy.student import stdtr, stdtrit
from evband.errors import SettingsError, TripsError

LEAST_MEASURED = 0.95  # share of rows with measured power below which a trip's energy counts as not measured


@dataclass(frozen=True)
class EnergyBand:
    """Energy over one stretch: mean + scale times a Student-t with `dof` degrees of freedom, in kWh.

    `energy_kwh` is what was measured, None where less than 95 % of the rows were; rows without count at their predicted mean.
    """

    trip_id: str
    distance_km: float
    duration_s: float
    mean_kwh: float
    scale_kwh: float
    dof: float
    energy_kwh: float | None = None

    def quantile(self, p: float) -> float:
        return float(self.mean_kwh + self.scale_kwh * stdtrit(self.dof, p))

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central band."""
        check_level(level)
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def cdf(self, kwh: float) -> float:
        """P(energy <= kwh)."""
        return float(stdtr(self.dof, (kwh - self.mean_kwh) / self.scale_kwh))

    def per_100km(self, kwh: float) -> float:
        """kWh/100 km of an energy over this distance."""
        return 100.0 * kwh / self.distance_km if self.distance_km > 0 else float("nan")

    def miles_per_kwh(self, kwh: float) -> float:
        """mi/kWh of an energy over this distance; not a number where none was used."""
        return self.distance_km / KM_PER_MILE / kwh if kwh > 0 else float("nan")

    def to_dict(self, level: float = 0.9) -> dict[str, Any]:
        """As `evband energy --json` writes it."""
        lower, upper = self.interval(level)
        return {
            "trip_id": self.trip_id,
            "distance_km": self.distance_km,
            "energy_kwh": self.energy_kwh,
            "mean_kwh": self.mean_kwh,
            "lower_kwh": lower,
            "upper_kwh": upper,
            "level": level,
        }


class Energies(Sequence[EnergyBand]):
    """Energy bands of several trips, with the level they are shown at."""

    def __init__(self, bands: Sequence[EnergyBand], level: float = 0.9) -> None:
        check_level(level)
        self._bands, self.level = tuple(bands), level

    def __len__(self) -> int:
        return len(self._bands)

    def __getitem__(self, index: Any) -> Any:
        return Energies(self._bands[index], self.level) if isinstance(index, slice) else self._bands[index]

    def __repr__(self) -> str:
        lines = []
        for band in self._bands:
            lower, upper = band.interval(self.level)
            known = "" if band.energy_kwh is None else f", measured {band.energy_kwh:.2f}"
            lines.append(
                f"{band.trip_id}: {band.mean_kwh:.2f} kWh, {self.level:.0%} in {lower:.2f}..{upper:.2f}{known}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from evband.energy.picture import energies_table

        return energies_table(self)

    def plot(self, axes: Any = None) -> Any:
        """The band of each trip with its mean and what was measured; gives matplotlib's axes."""
        from evband.energy.picture import draw_energies

        return draw_energies(self, axes)

    @property
    def coverage(self) -> float | None:
        """Share of measured trips inside their band; None where nothing was measured."""
        inside = [
            lower <= band.energy_kwh <= upper
            for band in self._bands
            if band.energy_kwh is not None
            for lower, upper in [band.interval(self.level)]
        ]
        return float(np.mean(inside)) if inside else None

    def to_dicts(self) -> list[dict[str, Any]]:
        return [band.to_dict(self.level) for band in self._bands]


def trip_energy(
    drives: Sequence[Drive],
    errors: ErrorModel,
    level: float = 0.9,
    from_km: float = 0.0,
    to_km: float | None = None,
    so_far: bool = False,
) -> Energies:
    """Energy of each trip from `from_km` to `to_km`; with `so_far`, the power measured before `from_km` is taken into account."""
    if not (np.isfinite(from_km) and from_km >= 0 and (to_km is None or to_km > from_km)):
        raise SettingsError(f"The stretch from {from_km} to {to_km} km is empty; give 0 <= from_km < to_km.")
    found = []
    for drive in drives:
        which = slice(0, len(drive)) if from_km == 0 and to_km is None else drive.between_km(from_km, to_km or np.inf)
        if which.start >= which.stop:
            raise TripsError(
                f"Trip {drive.trip_id} is {drive.distance_km[-1]:.1f} km long and has no stretch from {from_km:g} km on; "
                "choose one inside the trip."
            )
        found.append(stretch_energy(drive, which, errors, so_far))
    return Energies(found, level)


def stretch_energy(drive: Drive, which: slice, errors: ErrorModel, so_far: bool = False) -> EnergyBand:
    """Energy over some rows of a whole drive: Var E = T^2 (EU + variance of the mean error over T)."""
    drive, errors = errors.on_its_way(drive)
    past = SoFar(errors)
    if so_far:
        past.drive(drive.rows(slice(0, which.start)))
    part = drive.rows(which)
    shift, variance = past.ahead(part.seconds, float(errors.sizes(part).mean()))
    spread = float(errors.epistemic(part.members.mean(axis=1)))
    known = np.isfinite(part.power_kw)
    measured = float(np.where(known, part.power_kw, part.mean).mean()) * part.hours
    return EnergyBand(
        trip_id=drive.trip_id,
        distance_km=float(part.distance_km[-1]),
        duration_s=part.seconds,
        mean_kwh=(float(part.mean.mean()) + float(shift)) * part.hours,
        scale_kwh=float(np.sqrt(float(variance) + spread)) * part.hours,
        dof=float(errors.dof),
        energy_kwh=measured if known.mean() >= LEAST_MEASURED else None,
    )
