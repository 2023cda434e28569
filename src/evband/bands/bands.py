"""Bands: the predictive distribution of power on every row of some trips, and the bands, parts and tables read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.bands.mixtures import Array, Mixture, Stacked
from evband.channels import STANDING_KMH
from evband.errors import SettingsError, TripsError
from evband.network.quantiles import check_level

if TYPE_CHECKING:
    import polars as pl

Interval = Literal["mixture", "closed_form"]


def needed_stretch(y: Array, mean: Array, lower: Array, upper: Array) -> Array:
    """The smallest stretch at which each row's band covers y: (y - m)/(u - m) above the mean, (m - y)/(m - l) below.

    Exact, since quantiles of the stretched distribution are m + k (q - m); infinite where a band ends before the mean.
    """
    side = np.where(y >= mean, upper - mean, mean - lower)
    distance = np.abs(y - mean)
    needed = np.divide(distance, side, out=np.full(len(y), np.inf), where=side > 0)
    return np.where(distance == 0, 0.0, needed)


@dataclass(frozen=True, eq=False)
class Bands:
    """The predictive distribution of n grid rows, in kW; `members` already holds every stretch, `stretch` [n] only records it.

    `speed_kmh` and `acceleration_ms2` (for regimes), `outside_channel` (which input left the training range, "" for none),
    `power_kw` (as measured, NaN where unknown) and `hz` are optional.

    >>> import evband, polars as pl
    >>> drive = pl.DataFrame({"time_s": [float(t) for t in range(60)], "speed_kmh": [50.0 + t % 7 for t in range(60)]})
    >>> bands = evband.start("Renault Zoe 52 kWh").predict(drive)
    >>> lower, upper = bands.interval(0.9)
    >>> bool((lower < bands.mean).all() and (bands.mean < upper).all())
    True
    """

    trip_id: NDArray
    time_s: Array
    members: Mixture
    warmup: NDArray[np.bool_]
    outside: NDArray[np.bool_]
    power_kw: Array | None = None
    speed_kmh: Array | None = None
    acceleration_ms2: Array | None = None
    outside_channel: NDArray | None = None
    hz: float | None = None
    stretch: float | Array = 1.0  # of every row

    def __post_init__(self) -> None:
        stretch = np.asarray(self.stretch, np.float64)
        object.__setattr__(self, "stretch", np.full(len(self.members), stretch) if stretch.ndim == 0 else stretch)
        for name in (*_COLUMNS, *_OPTIONAL):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.members):
                raise SettingsError(
                    f"Bands need one {name} for each of the {len(self.members)} rows, not {len(values)}."
                )

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        trips = len(dict.fromkeys(self.trip_id.tolist()))
        return f"Bands({len(self)} rows, {trips} trips, {type(self.members).__name__})"

    def _repr_html_(self) -> str:
        from evband.bands.picture import summary

        return summary(self)

    def plot(self, trip_id: str | None = None, level: float = 0.9, axes: Any = None) -> Any:
        """Mean, band and measured power of a trip (the first unless named) over time; gives matplotlib's axes."""
        from evband.bands.picture import draw

        return draw(self, trip_id, level, axes)

    @property
    def mean(self) -> Array:
        """Mean of the distribution, the point estimate."""
        return self.members.mean

    @cached_property
    def aleatoric(self) -> Array:
        """Standard deviation of the data around the members: noise that more training trips would not remove."""
        return np.sqrt(self.members.aleatoric)

    @cached_property
    def epistemic(self) -> Array:
        """Standard deviation of the members around their mean: what the model does not know."""
        return np.sqrt(self.members.epistemic)

    @cached_property
    def total(self) -> Array:
        """sqrt(aleatoric^2 + epistemic^2)."""
        return np.sqrt(self.members.aleatoric + self.members.epistemic)

    def quantile(self, p: float) -> Array:
        """The p-quantile of every row."""
        if not 0 < p < 1:
            raise SettingsError(f"A quantile's probability must lie between 0 and 1, not {p}.")
        return self.members.quantile(p)

    def interval(self, level: float = 0.9, how: Interval = "mixture") -> tuple[Array, Array]:
        """The central band of `level`: exact quantiles of the mixture, or the closed form sqrt((t_nu s)^2 + z^2 EU) around the mean."""
        check_level(level)
        if how == "closed_form":
            half = self.members.closed_form(level)
            return self.mean - half, self.mean + half
        if how != "mixture":
            raise SettingsError(f"The band is 'mixture' or 'closed_form', not {how!r}.")
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def cdf(self, y: ArrayLike) -> Array:
        """P(power <= y): at the measured power, the probability integral transform (PIT)."""
        return self.members.tails(y)[0]

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density at y, in 1/kW (NaN for quantile methods)."""
        return self.members.logpdf(y)

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score at y, in kW."""
        return self.members.crps(y)

    @property
    def standing(self) -> NDArray[np.bool_]:
        """Where the car stands (under 1 km/h); nowhere if speed is unknown."""
        return np.zeros(len(self), bool) if self.speed_kmh is None else np.asarray(self.speed_kmh < STANDING_KMH)

    def stretched(self, k: float | Array) -> Bands:
        """The same bands with every distribution stretched about its mean by k, a number or one for each row."""
        k = np.asarray(k, np.float64)
        wrong = k[~(np.isfinite(k) & (k > 0))]
        if wrong.size:
            raise SettingsError(f"A stretch must be a positive number, not {wrong[0]}.")
        if k.ndim and len(k) != len(self):
            raise SettingsError(f"Bands need one stretch for each of the {len(self)} rows, not {len(k)}.")
        return replace(self, members=self.members.stretched(k), stretch=self.stretch * k)

    def needed_stretch(self, y: ArrayLike, level: float = 0.9) -> Array:
        """The smallest stretch at which each row's band of `level` covers y."""
        return needed_stretch(np.asarray(y, dtype=np.float64), self.mean, *self.interval(level))

    def rows(self, which: NDArray) -> Bands:
        """Some of the rows: a mask, or increasing indices."""
        known = ((name, getattr(self, name)) for name in (*_COLUMNS, *_OPTIONAL))
        picked = {name: values[which] for name, values in known if values is not None}
        return replace(self, members=self.members.rows(which), **picked)

    @staticmethod
    def concat(parts: Sequence[Bands]) -> Bands:
        """Bands of several models (folds) as one; a column that some part lacks is left out."""
        if not parts:
            raise TripsError("There are no bands to put together; predict at least one trip.")
        if len({part.hz for part in parts}) > 1:
            raise TripsError(
                f"Bands on different grids cannot be put together: {sorted({str(part.hz) for part in parts})} Hz."
            )

        def join(name: str) -> NDArray:
            return np.concatenate([getattr(part, name) for part in parts])

        shared = {name: join(name) for name in _OPTIONAL if all(getattr(part, name) is not None for part in parts)}
        return Bands(
            **{name: join(name) for name in _COLUMNS},
            **shared,
            members=Stacked([part.members for part in parts]),
            hz=parts[0].hz,
        )

    def to_frame(self, level: float = 0.9, interval: Interval = "mixture", members: bool = False) -> pl.DataFrame:
        """One row per grid row, as `evband predict` writes them; `members` adds each member's parameters in float64."""
        import polars as pl

        lower, upper = self.interval(level, interval)
        table: dict[str, NDArray] = {"trip_id": self.trip_id.astype(str), "time_s": self.time_s}
        table |= {"mean_kw": self.mean, "lower_kw": lower, "upper_kw": upper}
        table |= {
            "aleatoric_kw": self.aleatoric,
            "epistemic_kw": self.epistemic,
            "warmup": self.warmup,
            "outside": self.outside,
        }
        if self.power_kw is not None:
            table["power_kw"] = self.power_kw
        if members:
            if self.outside_channel is not None:
                table["outside_channel"] = self.outside_channel.astype(str)
            table |= self.members.columns()
        frame = pl.DataFrame(table)
        return frame.with_columns(pl.col("power_kw").fill_nan(None)) if self.power_kw is not None else frame


_COLUMNS = ("trip_id", "time_s", "warmup", "outside", "stretch")
_OPTIONAL = ("power_kw", "speed_kmh", "acceleration_ms2", "outside_channel")
