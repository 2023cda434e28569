"""The tick engine: a fitted ensemble run one time step at a time, for one vehicle or many, without torch or allocation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.compiled import compiled
from evband.errors import SettingsError
from evband.network.heads import HEADS
from evband.network.heads.quantile import LEVELS
from evband.network.inference import standard_of
from evband.network.kernels import pack
from evband.network.kernels.vector import LANES
from evband.network.steps import UNSTRETCHED, Steps
from evband.network.tick.cell import TILE, Network, Work, network_step
from evband.network.tick.mixture import Target, mixture_row, quantile_row, quantile_sums, tail_cubics
from evband.network.tick.packing import Params, Sizes, packed, zeros

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
    """An ensemble with the state of ``vehicles`` vehicles.

    ``params`` are a model's arrays (``w_ih.0 .. head_w, head_b, nu_raw, road_w``); bands come out in kW, stretched about
    the mean by ``steps``. ``precision="reduced"`` keeps LSTM weights in float16 (biases, head, state and sums stay float32): half the memory traffic; means move by about 1e-4 and band ends by up to 5e-4 of the target's standard
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
        steps: Steps = UNSTRETCHED,
        level: float = 0.9,
        vehicles: int = 1,
        precision: Precision = "float32",
    ) -> None:
        known = [name for name, kind in HEADS.items() if kind.runs_as == name]
        if head not in known:
            raise SettingsError(f"The head {head!r} is not one of {', '.join(known)}.")
        if precision not in ("float32", "reduced"):
            raise SettingsError(f"The precision {precision!r} is not one of float32, reduced.")
        if vehicles < 1:
            raise SettingsError(f"An engine needs at least one vehicle, not {vehicles}.")
        self.sizes = sizes = Sizes.of(params)
        self.vehicles = vehicles
        self._levels = np.empty(0) if HEADS[head].scaled else np.asarray(levels, np.float64)
        if sizes.outputs != HEADS[head].outputs(tuple(self._levels)):
            raise SettingsError(
                f"A {head} head does not have {sizes.outputs} outputs; give the model's own head and levels."
            )
        self._standard = standard_of(HEADS[head], params, nu_min, nu)
        self._network = _network(params, sizes, precision == "reduced")
        if not all(0 < factor < math.inf for factor in steps.factors):
            raise SettingsError(f"A stretch must be a positive number, not {min(steps.factors)}.")
        limits = [-math.inf, *np.array(steps.limits, np.float32).tolist()]
        table = np.array([limits, steps.factors], float).T.copy()
        self._target = Target(float(y_mean), float(y_std), 0.05, steps.column, table)
        empty = np.empty((2, sizes.members))
        self._band = Band(self._standard.variance, empty, tail_cubics(self._standard), np.empty((0, 0)))
        self._allocate()
        self.level = level

    def _allocate(self) -> None:
        s, group = self.sizes, min(GROUP, self.vehicles)
        self._arena = zeros(self.vehicles * s.pitch)
        rows = self._arena.reshape(self.vehicles, s.pitch)[:, : s.state]
        self._states = rows.reshape(self.vehicles, s.members, s.layers, 2, s.padded)  # a view
        self._work = Work(
            hiddens=zeros(3, max(group, s.members) * s.padded),
            sums=zeros(TILE * 4 * LANES),
            raw=np.zeros((group, s.members, s.outputs), np.float32),
            x=np.zeros((group, s.features), np.float32),
            r=np.zeros((group, s.road), np.float32),
            rows=np.zeros(group, np.int64),
            slots=np.zeros(group, np.int64),
        )
        self._everyone = np.arange(self.vehicles)
        self._warm = np.zeros((self.vehicles, 2))
        self.location = np.zeros((self.vehicles, s.members))  # kW, of each vehicle's last tick, before the stretch
        self.scale = np.zeros((self.vehicles, s.members))  # kW, likewise; zero for a quantile head
        self.bands = np.zeros((self.vehicles, len(COLUMNS)))  # what tick writes
        self._own = Own(np.zeros((0, 0, 0), np.float32), np.zeros((0, 0), np.float32), np.zeros(0), np.zeros((0, 2)))
        self._memory = Memory(self._arena, self.location, self.scale, self._warm, np.zeros(max(s.members, s.outputs)))
        self._x, self._r = np.zeros((1, s.features), np.float32), np.zeros((1, s.road), np.float32)

    @property
    def level(self) -> float:
        """Probability inside the band."""
        return 1.0 - 2.0 * self._target.tail

    @level.setter
    def level(self, level: float) -> None:
        if not 0 < level < 1:
            raise SettingsError(f"A band's level must lie between 0 and 1, such as 0.9, not {level}.")
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
        s = self.sizes
        shapes = ((s.members, s.road + s.hidden), (s.members,), (), (2,))
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


def _network(params: Params, sizes: Sizes, reduced: bool) -> Network:
    shape = pack.Shape.of(sizes.features, sizes.hidden, sizes.layers)
    weights, bias, head = packed(params, sizes, reduced)
    road = params["road_w"] if sizes.road else np.empty((sizes.members, 0))
    return Network(
        sizes.features, sizes.hidden, sizes.layers, shape.inputs, shape.units, shape.gates, sizes.members, sizes.outputs,
        sizes.pitch, shape.packed, weights, bias, head,
        np.ascontiguousarray(params["head_b"], np.float32), np.ascontiguousarray(road.T, np.float32),
    )  # fmt: skip
