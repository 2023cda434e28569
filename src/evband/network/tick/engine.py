"""The tick engine: a fitted ensemble run one time step at a time, for one vehicle or many, without torch or allocation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.compiled import compiled
from evband.errors import SettingsError
from evband.network.ensemble import Ensemble, ensemble_of
from evband.network.kernels.vector import LANES
from evband.network.quantiles import check_level
from evband.network.tick.cell import TILE, Network, Work, network_step
from evband.network.tick.mixture import Target, mixture_row, quantile_row, quantile_sums, tail_cubics
from evband.network.tick.packing import Layout, packed, zeros

if TYPE_CHECKING:
    from evband.model import PowerModel

Precision = Literal["float32", "reduced"]
Floats = Sequence[float] | NDArray[np.floating]
COLUMNS = ("mean", "lower", "upper", "aleatoric", "epistemic")
GROUP = 8 * TILE  # vehicles that pass through a member together: its weights are read once for all of them


@compiled()
def take(row: NDArray[np.float32], into: NDArray[np.float32]) -> bool:
    """Copy a row; whether all of it is finite."""
    sane = True
    for j in range(len(row)):
        into[j] = row[j]
        sane &= math.isfinite(row[j])
    return sane


class Band(NamedTuple):
    """What a band is made with."""

    inflation: NDArray[np.float64]  # [members] variances of the standard distributions
    standard: NDArray[np.float64]  # [2, members] standard quantiles of the band's ends
    cubics: NDArray[np.float64]  # [members, cells, 4] tails
    sums: NDArray[np.float64]  # [5, levels] of a quantile head, else empty


class Own(NamedTuple):
    """Heads of each vehicle's own on the shared recurrent weights; all empty where vehicles share the heads, too."""

    weights: NDArray[np.float32]  # [vehicles, members, road + hidden] of the location
    level: NDArray[np.float32]  # [vehicles, members] bias of the raw scale
    std: NDArray[np.float64]  # [vehicles] kW
    stretch: NDArray[np.float64]  # [vehicles, 2]: moving, standing


class Memory(NamedTuple):
    """What is kept of every vehicle from tick to tick."""

    arena: NDArray[np.float32]  # flat [vehicles, members, layers, (h, c), units], vehicles a pitch apart
    location: NDArray[np.float64]  # [vehicles, members]
    scale: NDArray[np.float64]  # [vehicles, members]
    warm: NDArray[np.float64]  # [vehicles, 2]: where the last band's ends were
    spare: NDArray[np.float64]  # [max(members, outputs)], scratch


@compiled()
def advance(
    network: tuple[Any, ...],  # Network
    work: tuple[Any, ...],  # Work
    target: tuple[Any, ...],  # Target
    band: tuple[Any, ...],  # Band
    memory: tuple[Any, ...],  # Memory
    heads: tuple[Any, ...],  # Own
    x: NDArray[np.float32],  # [count, features]
    r: NDArray[np.float32],  # [count, road]
    who: NDArray[np.int64],  # [count] vehicles
    out: NDArray[np.float64],  # [count, 5]
) -> None:
    """One tick of the vehicles ``who``: states move on in the arena, bands go to ``out``.

    A vehicle with an input that is not a number gets a band of NaN and keeps its state.
    """
    net, task, aim, how, kept = Network(*network), Work(*work), Target(*target), Band(*band), Memory(*memory)
    own, shared = Own(*heads), aim.std
    done = 0
    while done < len(who):
        count = 0
        while done < len(who) and count < len(task.rows):
            if take(x[done], task.x[count]) and take(r[done], task.r[count]):
                task.rows[count], task.slots[count] = who[done] * net.pitch, done
                count += 1
            else:
                for j in range(5):
                    out[done, j] = np.nan
            done += 1
        network_step(net, task, kept.arena, count)
        for v in range(count):
            slot = task.slots[v]
            vehicle = who[slot]
            step = reached(aim.steps, task.x[v, aim.column])
            stretch, mu, raw, std = aim.steps[step, 1], kept.location[vehicle], task.raw[v], shared
            if len(own.std):
                std, stretch = own.std[vehicle], own.stretch[vehicle, step]
                own_location(net, own.weights[vehicle], task.r[v], kept.arena, task.rows[v], mu)
            else:
                add_road(net, task.r[v], mu)
            if len(how.sums):
                for m in range(net.members):
                    for j in range(net.outputs):
                        raw[m, j] += net.head_bias[m, j] + mu[m]
                quantile_row(aim, stretch, raw, how.sums, kept.spare, mu, out[slot])
            else:
                s = kept.scale[vehicle]
                for m in range(net.members):
                    if len(own.std):
                        mu[m] += net.head_bias[m, 0]
                        s[m] = raw[m, 1] + own.level[vehicle, m]
                    else:
                        mu[m] += raw[m, 0] + net.head_bias[m, 0]
                        s[m] = raw[m, 1] + net.head_bias[m, 1]
                mixture_row(
                    aim.mean, std, aim.tail, stretch, mu, s, kept.spare, how.inflation, how.standard, how.cubics,
                    kept.warm[vehicle], out[slot],
                )  # fmt: skip


@compiled()
def reached(steps: NDArray[np.float64], value: float) -> int:
    """Which factor a row gets that has this value of the input (`evband.network.steps`)."""
    step = 0
    while step + 1 < len(steps) and value >= steps[step + 1, 0]:
        step += 1
    return step


@compiled(fastmath={"contract", "reassoc"})
def own_location(
    net: Network, weights: NDArray[np.float32], r: NDArray[np.float32], arena: NDArray[np.float32], at: int, mu: NDArray[np.float64]
) -> None:  # fmt: skip
    """mu [members] = weights . (r, h) of a vehicle whose state begins at `at` in the arena."""
    roads, last = len(r), 2 * net.units * (net.layers - 1)
    for m in range(net.members):
        total, h = 0.0, at + 2 * net.units * net.layers * m + last
        for k in range(roads):
            total += weights[m, k] * r[k]
        for k in range(net.hidden):
            total += weights[m, roads + k] * arena[h + k]
        mu[m] = total


@compiled()
def add_road(net: Network, r: NDArray[np.float32], mu: NDArray[np.float64]) -> None:
    """mu [members] = the road-load path of each member."""
    for m in range(net.members):
        mu[m] = 0.0
    for k in range(net.road.shape[0]):
        for m in range(net.members):
            mu[m] += r[k] * net.road[k, m]


class Engine:
    """An ensemble with the state of ``vehicles`` vehicles; bands come out in kW.

    ``precision="reduced"`` keeps LSTM weights in float16 (biases, head, state and sums stay float32): half the memory traffic;
    means move by about 1e-4 and band ends by up to 5e-4 of the target's standard deviation, the RMSE by under 0.01 %
    (benchmarks/results/tick.csv; a test holds it under 0.1 %).
    """

    def __init__(
        self, ensemble: Ensemble, *, level: float = 0.9, vehicles: int = 1, precision: Precision = "float32"
    ) -> None:
        if precision not in ("float32", "reduced"):
            raise SettingsError(f"The precision {precision!r} is not one of float32, reduced.")
        if vehicles < 1:
            raise SettingsError(f"An engine needs at least one vehicle, not {vehicles}.")
        self.arch, self.members, self.vehicles = ensemble.arch, ensemble.members, vehicles
        self._levels = np.empty(0) if self.arch.distribution.scaled else np.array(self.arch.levels)
        self._standard, steps = ensemble.standard, ensemble.steps
        limits = [-math.inf, *np.array(steps.limits, np.float32).tolist()]
        table = np.array([limits, steps.factors], float).T.copy()
        self._target = Target(float(ensemble.y_mean), float(ensemble.y_std), 0.05, steps.column, table)
        empty = np.empty((2, self.members))
        self._band = Band(self._standard.variance, empty, tail_cubics(self._standard), np.empty((0, 0)))
        layout = Layout.of(self.arch, self.members)
        self._network = _network(ensemble, layout, precision == "reduced")
        self._allocate(layout)
        self.level = level

    def _allocate(self, layout: Layout) -> None:
        arch, members, units, group = self.arch, self.members, layout.shape.units, min(GROUP, self.vehicles)
        self._arena = zeros(self.vehicles * layout.pitch)
        rows = self._arena.reshape(self.vehicles, layout.pitch)[:, : layout.state]
        self._states = rows.reshape(self.vehicles, members, arch.layers, 2, units)  # a view
        self._work = Work(
            hiddens=zeros(3, max(group, members) * units),
            sums=zeros(TILE * 4 * LANES),
            raw=np.zeros((group, members, arch.outputs), np.float32),
            x=np.zeros((group, arch.inputs), np.float32),
            r=np.zeros((group, arch.road), np.float32),
            rows=np.zeros(group, np.int64),
            slots=np.zeros(group, np.int64),
        )
        self._everyone = np.arange(self.vehicles)
        self._warm = np.zeros((self.vehicles, 2))
        self.location = np.zeros((self.vehicles, members))  # kW, of each vehicle's last tick, before the stretch
        self.scale = np.zeros((self.vehicles, members))  # kW, likewise; zero for a quantile head
        self.bands = np.zeros((self.vehicles, len(COLUMNS)))  # what tick writes
        self._own = Own(np.zeros((0, 0, 0), np.float32), np.zeros((0, 0), np.float32), np.zeros(0), np.zeros((0, 2)))
        spare = np.zeros(max(members, arch.outputs))
        self._memory = Memory(self._arena, self.location, self.scale, self._warm, spare)
        self._x, self._r = np.zeros((1, arch.inputs), np.float32), np.zeros((1, arch.road), np.float32)

    @property
    def level(self) -> float:
        """Probability inside the band."""
        return 1.0 - 2.0 * self._target.tail

    @level.setter
    def level(self, level: float) -> None:
        check_level(level)
        self._target = self._target._replace(tail=0.5 - level / 2)
        ends = np.ascontiguousarray(self._standard.quantile([0.5 - level / 2, 0.5 + level / 2]).T)
        self._band = self._band._replace(standard=ends)
        if len(self._levels):
            self._band = self._band._replace(sums=quantile_sums(self._levels, level))
        self._arrange()

    def _arrange(self) -> None:
        parts = (self._network, self._work, self._target, self._band, self._memory, self._own)
        self._arguments = [tuple(part) for part in parts]

    def own_heads(self, weights: ArrayLike, level: ArrayLike, std: ArrayLike, stretch: ArrayLike) -> None:
        """Give each vehicle a location head, a level of its scale, a unit in kW and stretches (of `Steps`) of its own;
        what is recurrent stays shared. See `Own` for the shapes."""
        shapes = ((self.members, self.arch.road + self.arch.hidden), (self.members,), (), (2,))
        kinds = (np.float32, np.float32, np.float64, np.float64)
        found = [np.ascontiguousarray(a, kind) for a, kind in zip((weights, level, std, stretch), kinds, strict=True)]
        if len(self._levels) or [a.shape for a in found] != [(self.vehicles, *shape) for shape in shapes]:
            raise SettingsError("Own heads are for t and Gaussian heads, and must fit the shared network.")
        self._own = Own(*found)
        self._arrange()

    def tick(self, x: Floats, r: Floats = (), vehicle: int = 0) -> NDArray[np.float64]:
        """One step of one vehicle: mean, lower, upper, aleatoric, epistemic in kW, a view that its next tick overwrites.

        ``r`` is ignored where the model has no road-load path.
        """
        if len(x) != self.arch.inputs or (self.arch.road and len(r) != self.arch.road):
            raise SettingsError(f"A tick needs {self.arch.inputs} inputs and {self.arch.road} road-load features.")
        if not 0 <= vehicle < self.vehicles:
            raise SettingsError(f"Vehicles are numbered 0 to {self.vehicles - 1}.")
        self._x[0] = x
        if self.arch.road:
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
        r = np.ascontiguousarray(np.empty((len(who), 0)) if r is None or not self.arch.road else r, np.float32)
        out = self.bands[: len(who)] if out is None else out
        if x.shape != (len(who), self.arch.inputs) or r.shape != (len(who), self.arch.road):
            raise SettingsError(
                f"{len(who)} vehicles need x [{len(who)}, {self.arch.inputs}] and r [{len(who)}, {self.arch.road}], "
                f"not {x.shape} and {r.shape}."
            )
        if out.shape != (len(who), len(COLUMNS)) or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise SettingsError(f"out must be a contiguous float64 array [{len(who)}, {len(COLUMNS)}].")
        self._advance(x, r, who, out)
        return out

    def _advance(self, x: NDArray, r: NDArray, who: NDArray, out: NDArray) -> None:
        advance(*self._arguments, x, r, who, out)

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
        held = self._states[vehicle, ..., : self.arch.hidden]  # [members, layers, 2, hidden]
        return held[:, :, 0].swapaxes(0, 1).copy(), held[:, :, 1].swapaxes(0, 1).copy()

    def set_state(self, vehicle: int, h: NDArray, c: NDArray) -> None:
        """Go on from what ``state`` gave."""
        shape = (self.arch.layers, self.members, self.arch.hidden)
        if h.shape != shape or c.shape != shape:
            raise SettingsError(f"A state is h and c of shape {shape}, not {h.shape}, {c.shape}.")
        for part, values in enumerate((h, c)):
            self._states[vehicle, :, :, part, : self.arch.hidden] = values.swapaxes(0, 1)
        self._warm[vehicle] = 0.0


def _network(ensemble: Ensemble, layout: Layout, reduced: bool) -> Network:
    arch, shape, params = ensemble.arch, layout.shape, ensemble.params
    weights, bias, head = packed(ensemble, shape, reduced)
    road = params["road_w"] if arch.road else np.empty((ensemble.members, 0))
    return Network(
        arch.inputs, arch.hidden, arch.layers, shape.inputs, shape.units, shape.gates, ensemble.members, arch.outputs,
        layout.pitch, shape.packed, weights, bias, head,
        np.ascontiguousarray(params["head_b"], np.float32), np.ascontiguousarray(road.T, np.float32),
    )  # fmt: skip


def engine_of(model: PowerModel, level: float = 0.9, vehicles: int = 1, precision: Precision = "float32") -> Engine:
    """The tick engine of a fitted model, its calibration included."""
    return Engine(ensemble_of(model), level=level, vehicles=vehicles, precision=precision)
