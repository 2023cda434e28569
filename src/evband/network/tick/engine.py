"""The tick engine: a fitted ensemble run one time step at a time, for one vehicle or many, without torch or allocation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.errors import SettingsError
from evband.network.tick.cell import network_step
from evband.network.tick.compiling import compiled
from evband.network.tick.mixture import member_quantiles, mixture_row, quantile_row, tail_cubics
from evband.network.tick.packing import Params, Sizes, aligned, pack
from evband.network.tick.simd import LANES, TILE

Precision = Literal["float32", "reduced"]
Floats = Sequence[float] | NDArray[np.floating]
COLUMNS = ("mean", "lower", "upper", "aleatoric", "epistemic")
LEVELS = np.arange(1, 20) / 20  # of a quantile head, 0.05 .. 0.95
GROUP = 8 * TILE  # vehicles that pass through a member together: its weights are read once for all of them


@compiled()
def take(row: NDArray[np.float32], into: NDArray[np.float32]) -> bool:
    """Copy a row; whether all of it is finite."""
    sane = True
    for j in range(len(row)):
        into[j] = row[j]
        sane &= math.isfinite(row[j])
    return sane


@compiled()
def advance(
    sizes: tuple[int, int, int, int, int, int],  # features, hidden, padded, layers, outputs, members
    network: tuple[NDArray, NDArray, NDArray, NDArray, NDArray],  # weights, biases, head weights, head bias, road
    x: NDArray[np.float32],  # [count, features]
    r: NDArray[np.float32],  # [count, road]
    who: NDArray[np.int64],  # [count] vehicles
    arena: NDArray[np.float32],  # flat [vehicles, members, layers, (h, c), padded], vehicles `pitch` apart
    pitch: int,
    work: tuple[NDArray, NDArray, NDArray, NDArray, NDArray, NDArray, NDArray],  # scratch, see Engine._allocate
    band: tuple[NDArray, NDArray, NDArray, NDArray, NDArray],  # target, inflation, standard quantiles, cubics, levels
    location: NDArray[np.float64],  # [vehicles, members]
    scale: NDArray[np.float64],  # [vehicles, members]
    spare: NDArray[np.float64],  # [max(members, outputs)]
    warm: NDArray[np.float64],  # [vehicles, 2]
    out: NDArray[np.float64],  # [count, 5]
) -> None:
    """One tick of the vehicles ``who``: states move on in the arena, bands go to ``out``.

    A vehicle with an input that is not a number gets a band of NaN and keeps its state.
    """
    weights, bias, head, head_bias, road = network
    hiddens, sums, raw, inputs, roads, rows, slots = work
    target, inflation, standard, cubics, levels = band
    members, outputs = head_bias.shape
    speed, limit = int(target[5]), target[6]
    flat_raw, flat_inputs = raw.reshape(-1), inputs.reshape(-1)
    done = 0
    while done < len(who):
        count = 0
        while done < len(who) and count < len(rows):
            if take(x[done], inputs[count]) and take(r[done], roads[count]):
                rows[count], slots[count] = who[done] * pitch, done
                count += 1
            else:
                for j in range(5):
                    out[done, j] = np.nan
            done += 1
        network_step(sizes, weights, bias, head, flat_inputs, arena, rows, count, hiddens, sums, flat_raw)
        for v in range(count):
            slot = slots[v]
            mu, s = location[who[slot]], scale[who[slot]]
            stretch = target[4] if speed >= 0 and inputs[v, speed] < limit else target[2]
            for m in range(members):
                mu[m] = 0.0
            for k in range(road.shape[0]):
                for m in range(members):
                    mu[m] += roads[v, k] * road[k, m]
            if len(levels):
                for m in range(members):
                    for j in range(outputs):
                        raw[v, m, j] += head_bias[m, j] + mu[m]
                quantile_row(target, stretch, raw[v], levels, spare, mu, out[slot])
            else:
                for m in range(members):
                    mu[m] += raw[v, m, 0] + head_bias[m, 0]
                    s[m] = raw[v, m, 1] + head_bias[m, 1]
                mixture_row(target, stretch, mu, s, spare, inflation, standard, cubics, warm[who[slot]], out[slot])


class Engine:
    """An ensemble with the state of ``vehicles`` vehicles.

    ``params`` are a model's arrays (``w_ih.0 .. head_w, head_b, nu_raw, road_w``); bands come out in kW, stretched about
    the mean by ``stretch``, where the vehicle stands by that of ``standing``. ``precision="reduced"`` keeps LSTM weights in float16 (biases, head, state and sums stay
    float32): half the memory traffic; means move by about 1e-4 and band ends by up to 5e-4 of the target's standard
    deviation, the RMSE by under 0.01 % (benchmarks/results/tick.csv; a test holds it under 0.1 %).
    """

    def __init__(
        self,
        params: Params,
        *,
        head: str = "t",
        y_mean: float = 0.0,
        y_std: float = 1.0,
        nu_min: float = 3.0,
        nu: float | None = None,  # fixed degrees of freedom; None = learned
        levels: ArrayLike = LEVELS,
        stretch: float = 1.0,
        standing: tuple[int, float, float] | None = None,  # column of the speed, value under which it stands, stretch
        level: float = 0.9,
        vehicles: int = 1,
        precision: Precision = "float32",
    ) -> None:
        if head not in ("t", "gaussian", "quantile"):
            raise SettingsError(f"The head {head!r} is not one of t, gaussian, quantile.")
        if precision not in ("float32", "reduced"):
            raise SettingsError(f"The precision {precision!r} is not one of float32, reduced.")
        if vehicles < 1:
            raise SettingsError(f"An engine needs at least one vehicle, not {vehicles}.")
        self.sizes = sizes = Sizes.of(params)
        self.vehicles = vehicles
        self._levels = np.asarray(levels, np.float64) if head == "quantile" else np.empty(0)
        if sizes.outputs != (len(self._levels) if head == "quantile" else 2):
            raise SettingsError(
                f"A {head} head does not have {sizes.outputs} outputs; give the model's own head and levels."
            )
        weights, bias, head_w = pack(params, sizes, np.float16 if precision == "reduced" else np.float32)
        if precision == "reduced":
            weights = weights.view(np.uint16)  # Numba has no float16 on the CPU: the kernel widens the bits itself
        road = params["road_w"] if sizes.road else np.empty((sizes.members, 0))
        self._network = (
            weights,
            bias,
            head_w,
            np.ascontiguousarray(params["head_b"], np.float32),
            np.ascontiguousarray(road.T, np.float32),
        )
        self._nu = degrees_of_freedom(params, head, nu_min, nu, sizes.members)
        self._inflation = np.where(np.isinf(self._nu), 1.0, 1.0 / (1.0 - 2.0 / self._nu))
        self._cubics = tail_cubics(self._nu)
        speed, limit, at_rest = standing or (-1, 0.0, stretch)
        if not (0 < stretch < math.inf and 0 < at_rest < math.inf):
            raise SettingsError(f"A stretch must be a positive number, not {stretch} and {at_rest}.")
        self._target = np.array([y_mean, y_std, stretch, 0.0, at_rest, speed, limit])
        self.level = level
        self._allocate()

    def _allocate(self) -> None:
        s, group = self.sizes, min(GROUP, self.vehicles)
        self._shape = (s.features, s.hidden, s.padded, s.layers, s.outputs, s.members)
        self._arena = aligned(self.vehicles * s.pitch, np.float32)
        rows = self._arena.reshape(self.vehicles, s.pitch)[:, : s.state]
        self._states = rows.reshape(self.vehicles, s.members, s.layers, 2, s.padded)  # a view
        self._work = (
            aligned(3 * max(group, s.members) * s.padded, np.float32).reshape(3, -1),
            aligned(TILE * 4 * LANES, np.float32),
            np.zeros((group, s.members, s.outputs), np.float32),
            np.zeros((group, s.features), np.float32),
            np.zeros((group, s.road), np.float32),
            np.zeros(group, np.int64),
            np.zeros(group, np.int64),
        )  # hidden states, gate sums, head outputs; of each vehicle x, r, place in the arena and in the batch
        self._everyone = np.arange(self.vehicles)
        self._warm = np.zeros((self.vehicles, 2))
        self._spare = np.zeros(max(s.members, s.outputs))
        self.location = np.zeros((self.vehicles, s.members))  # kW, of each vehicle's last tick, before the stretch
        self.scale = np.zeros((self.vehicles, s.members))  # kW, likewise; zero for a quantile head
        self.bands = np.zeros((self.vehicles, len(COLUMNS)))  # what tick writes
        self._x, self._r = np.zeros((1, s.features), np.float32), np.zeros((1, s.road), np.float32)

    @property
    def level(self) -> float:
        """Probability inside the band."""
        return 1.0 - 2.0 * float(self._target[3])

    @level.setter
    def level(self, level: float) -> None:
        if not 0 < level < 1:
            raise SettingsError(f"A band's level must lie between 0 and 1, such as 0.9, not {level}.")
        self._target[3] = 0.5 - level / 2
        self._standard = member_quantiles(self._nu, level)
        self._band = (self._target, self._inflation, self._standard, self._cubics, self._levels)

    def tick(self, x: Floats, r: Floats = (), vehicle: int = 0) -> NDArray[np.float64]:
        """One step of one vehicle: mean, lower, upper, aleatoric, epistemic in kW, a view that its next tick overwrites.

        ``r`` is ignored where the model has no road-load path.
        """
        if len(x) != self.sizes.features or (self.sizes.road and len(r) != self.sizes.road):
            raise SettingsError(f"A tick needs {self.sizes.features} inputs and {self.sizes.road} road-load features.")
        if not 0 <= vehicle < self.vehicles:
            raise SettingsError(f"Vehicles are numbered 0 to {self.vehicles - 1}.")
        self._x[0] = x
        if self.sizes.road:
            self._r[0] = r
        here = slice(vehicle, vehicle + 1)
        self._advance(self._x, self._r, self._everyone[here], self.bands[here])
        return np.asarray(self.bands[vehicle])

    def tick_many(
        self,
        x: ArrayLike,  # [count, features]
        r: ArrayLike | None = None,  # [count, road]
        out: NDArray[np.float64] | None = None,  # [count, 5]
        vehicles: Sequence[int] | NDArray[np.int64] | None = None,  # which, each once; all of them by default
    ) -> NDArray[np.float64]:
        """One step of many vehicles, in ``out`` (by default a view that the next tick overwrites)."""
        who = self._everyone if vehicles is None else self._chosen(np.asarray(vehicles, np.int64))
        x = np.ascontiguousarray(x, np.float32)
        r = np.ascontiguousarray(np.empty((len(who), 0)) if r is None or not self.sizes.road else r, np.float32)
        out = self.bands[: len(who)] if out is None else out
        if x.shape != (len(who), self.sizes.features) or r.shape != (len(who), self.sizes.road):
            raise SettingsError(
                f"{len(who)} vehicles need x [{len(who)}, {self.sizes.features}] and r [{len(who)}, {self.sizes.road}], "
                f"not {x.shape} and {r.shape}."
            )
        if out.shape != (len(who), len(COLUMNS)) or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise SettingsError(f"out must be a contiguous float64 array [{len(who)}, {len(COLUMNS)}].")
        self._advance(x, r, who, out)
        return out

    def _advance(self, x: NDArray, r: NDArray, who: NDArray, out: NDArray) -> None:
        advance(
            self._shape, self._network, x, r, who, self._arena, self.sizes.pitch, self._work, self._band,
            self.location, self.scale, self._spare, self._warm, out,
        )  # fmt: skip

    def _chosen(self, vehicles: NDArray[np.int64]) -> NDArray[np.int64]:
        if vehicles.ndim != 1 or len(np.unique(vehicles)) != len(vehicles):
            raise SettingsError("The vehicles of one tick must be a list in which each appears once.")
        if len(vehicles) and not (vehicles.min() >= 0 and vehicles.max() < self.vehicles):
            raise SettingsError(f"Vehicles are numbered 0 to {self.vehicles - 1}.")
        return vehicles

    def reset(self, vehicle: int) -> None:
        """Back to the state with which a drive begins."""
        self._states[vehicle] = 0.0
        self._warm[vehicle] = 0.0

    def state(self, vehicle: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of h and c, [layers, members, hidden]: all that is needed to go on later."""
        held = self._states[vehicle, ..., : self.sizes.hidden]  # [members, layers, 2, hidden]
        return held[:, :, 0].swapaxes(0, 1).copy(), held[:, :, 1].swapaxes(0, 1).copy()

    def set_state(self, vehicle: int, h: NDArray, c: NDArray) -> None:
        """Go on from what ``state`` gave."""
        s = self.sizes
        if h.shape != (s.layers, s.members, s.hidden) or c.shape != h.shape:
            raise SettingsError(
                f"A state is h and c of shape {(s.layers, s.members, s.hidden)}, not {h.shape}, {c.shape}."
            )
        self._states[vehicle, :, :, 0, : s.hidden] = h.swapaxes(0, 1)
        self._states[vehicle, :, :, 1, : s.hidden] = c.swapaxes(0, 1)
        self._warm[vehicle] = 0.0


def degrees_of_freedom(params: Params, head: str, nu_min: float, nu: float | None, members: int) -> NDArray[np.float64]:
    """[members]: nu_min + softplus(nu_raw), or the fixed value; infinite for a Gaussian."""
    if head != "t":
        return np.full(members, np.inf)
    if nu is not None:
        return np.full(members, float(nu))
    return nu_min + np.logaddexp(0.0, np.asarray(params["nu_raw"], np.float64).reshape(members))
