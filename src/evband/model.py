"""PowerModel: from trips to a calibrated predictive distribution of power, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from evband import settings as presets
from evband.calibration.value import LEVEL, Calibration
from evband.errors import SettingsError, TripsError, installed, require
from evband.estimator import Estimator, notebook_progress
from evband.network.streams import of_passes
from evband.settings import Arguments, Settings

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.energy import Energies, ErrorModel, Range
    from evband.features import Rows
    from evband.preparing import Prepared
    from evband.streaming import Stream
    from evband.training.checkpoint import Checkpoint
    from evband.training.loop import Progress
    from evband.trips import Trips


class PowerModel(Estimator):
    """An ensemble that predicts battery power from motion, with its uncertainty.

    Every argument left at None takes the preset's value; docs/reference/settings.md says what each is and when to touch it
    (`evband.settings.Settings` defines them). After `fit`:

    - ``settings_``: the resolved settings; ``feature_map_``: inputs and scalers; ``theta_ [networks, parameters]``;
    - ``calibration_``: factors on the move and at a standstill, what they rest on, or why there are none; ``summary_``: how
      the training went; ``fingerprints_``: traces of the trips it was trained or calibrated on.

    >>> PowerModel(members=5, seed=1)
    PowerModel(members=5, seed=1)
    """

    __signature__: ClassVar = presets.signature()
    method: str
    preset: str
    features: str | None
    prior: str | PowerModel | None
    tune: bool
    device: str
    adaptation_: Any = None  # of a started model: `evband.adaptation.state.Adaptation`

    def __init__(self, method: str = "t-anchor", **settings: Unpack[Arguments]):
        given = self.__signature__.bind(method, **settings)
        given.apply_defaults()
        vars(self).update(given.arguments)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """An unfitted model with these resolved settings."""
        usual = presets.PRESETS["default"].to_dict()
        return cls(**cast(Arguments, {k: v for k, v in settings.to_dict().items() if v != usual[k]}))

    def __sklearn_clone__(self) -> Self:
        """Unfitted, with the same settings; a prior is knowledge and stays the fitted model that it is."""
        return type(self)(**cast(Arguments, self.get_params(deep=False)))

    # Fitting --------------------------------------------------------------------------------------------------------

    def fit(
        self,
        trips: Any,
        y: None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        say: Callable[[str], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Train on trips (Trips, or a pandas, polars or pyarrow frame in evband's channels), then calibrate."""
        require("torch", "fitting")
        from evband.adaptation.transfer import from_base
        from evband.preparing import on_grid, prepare, prior_features
        from evband.training import plan as jobs
        from evband.trips import Trips

        settings, progress = self._resolve(), progress or notebook_progress()
        device = jobs.resolve_device(self.device)
        prior = self.prior if isinstance(self.prior, PowerModel) else None
        if isinstance(trips, Trips) and prior is None:
            trips.check_fine_enough()
        given = [name for name, value in self.get_params(deep=False).items() if value is not None]
        read = Trips.of(trips)
        trips, settings = on_grid(read, settings, prior is None and "bridge_s" not in given)
        features = prior_features(trips, settings, prior, self.features is not None)
        if self.tune and features is not None:
            raise SettingsError(
                "settings cannot be tuned and taken from a prior model at once; leave out one of the two."
            )
        prepared = prepare(trips, settings, features, read)
        tuning = []
        if self.tune:
            from evband.training.tuning import tune

            choice = tune(prepared.job, settings, device, say, progress)
            settings, tuning = choice.settings, choice.tried
        mean = None if prior is None else prior._weights(np.arange(len(prior.theta_)))
        settings, start = from_base(prepared, replace(settings, from_base=settings.from_base and prior is None), given)
        theta, summary = jobs.train(prepared.job, settings, device, mean, progress, checkpoint, start)
        return self.finish(prepared, settings, theta.cpu().numpy(), summary | {"tuning": tuning})

    def finish(
        self, prepared: Prepared, settings: Settings, theta: NDArray[np.float32], summary: dict[str, Any]
    ) -> Self:
        """Take trained weights (from here or from another machine), calibrate them, and be a fitted model."""
        self.settings_, self.theta_, self.feature_map_ = settings, theta, prepared.features
        trips, self.summary_ = prepared.trips, summary | prepared.account(settings)
        inherited: list[str] = self.prior.fingerprints_ if isinstance(self.prior, PowerModel) else []
        self.fingerprints_: list[str] = sorted({*trips.traces, *inherited})
        self.calibration_ = Calibration()
        self.energy_: dict[str, Any] | None = None
        if settings.calibrate:
            from evband.energy import find_contradictions

            self._calibrate(prepared)
            find_contradictions(self, self._car())
        return self

    def _car(self) -> dict[str, float]:
        """Figures of the car that the road-load path gives."""
        from evband.card import effective_terms

        return {term.name: term.mean for term in effective_terms(self)}

    def _calibrate(self, prepared: Prepared) -> None:
        """Stretch the mixture so that it holds on trips that its members never saw."""
        from evband.calibration import calibration_trips, fit_calibration, minimum_trips
        from evband.energy import energy_part

        bands = self.out_of_bag(prepared)
        self.energy_ = energy_part(self, prepared.trips, prepared.rows, bands, prepared.job)
        found = 0 if bands is None else calibration_trips(bands)
        if bands is None or found < minimum_trips(LEVEL):
            self.calibration_ = Calibration(
                why=f"not calibrated: {found} trips with power after warm-up were left out of training in turn, "
                f"{minimum_trips(LEVEL)} are needed for {LEVEL:.0%} bands"
            )
            return
        from evband.scores import score_rows, summarise

        bands = self._where_known(bands)
        self.calibration_, own = fit_calibration(bands, len(self._networks()))
        if self.calibration_.how == "none":
            return
        scores = summarise(score_rows(bands.stretched(own).rows(~bands.warmup), LEVEL), LEVEL)
        self.summary_["out_of_bag"] = {
            k: scores[k] for k in ("n", "rmse_kw", "mae_kw", "crps_kw", "coverage", "width_kw")
        }

    def _where_known(self, bands: Bands) -> Bands:
        """The bands without a standstill where no input tells of one, as then a stream cannot know."""
        return bands if "speed_kmh" in self.feature_map_.input_names else replace(bands, speed_kmh=None)

    def out_of_bag(self, prepared: Prepared) -> Bands | None:
        """Uncalibrated bands of the training trips, each by the members that left it out; None where no member did."""
        from evband.bands import Bands
        from evband.training import plan as jobs
        from evband.trips import Trips

        job, parts = prepared.job, []
        left_out = jobs.left_out(job, self.settings_)
        for fold in range(job.folds):
            held = np.flatnonzero(job.fold == fold)
            never_saw = [n for n, out in enumerate(left_out) if out == fold]
            if never_saw and len(held):
                trips = Trips(prepared.trips[int(t)] for t in held)
                parts.append(self.bands_of(trips, prepared.rows.of(held), self._networks(never_saw), calibrated=False))
        return Bands.concat(parts) if parts else None

    def recalibrate(self, trips: Any) -> Self:
        """Refit the stretches on trips that the model never saw (at least 9); whatever there were is forgotten."""
        from evband.calibration import fit_calibration
        from evband.energy import energy_part, find_contradictions

        trips = self.on_grid(trips)
        rows = self.feature_map_.transform_all(trips)
        bands = self.bands_of(trips, rows, calibrated=False)
        found, _ = fit_calibration(self._where_known(bands))
        if found.how == "none":
            raise TripsError(found.why.removeprefix("not calibrated: "))
        self.calibration_ = found
        self.energy_ = energy_part(self, trips, rows, bands)
        find_contradictions(self, self._car())
        self.fingerprints_ = sorted({*self.fingerprints_, *trips.traces})
        return self

    def check(self) -> None:
        """Raise a SettingsError if the settings cannot be fitted with, before any log is read."""
        from evband.training import plan as jobs
        from evband.vehicles import named_sheet

        require("torch", "fitting")
        settings = self._resolve()
        if settings.vehicle is not None:
            named_sheet(settings.vehicle)
        jobs.resolve_device(self.device)

    def _resolve(self) -> Settings:
        if self.method == "distilled":
            raise SettingsError("a distilled model is not fitted; fit another one and collapse it (evband collapse).")
        arguments = self.get_params(deep=False)
        presets.check_run(arguments)
        chosen = {name: value for name, value in arguments.items() if name not in presets.RUN}
        if isinstance(self.prior, PowerModel):
            del chosen["prior"]
        return presets.resolve(self.preset, **chosen)

    def predict(self, trips: Any) -> Bands:
        """The predictive distribution of every grid row of these trips."""
        trips = self.on_grid(trips)
        return self.bands_of(trips, self.feature_map_.transform_all(trips))

    def _networks(self, numbers: Sequence[int] | None = None) -> NDArray[np.int64]:
        """The trained networks that predict: all members, or with dropout the first, once for each pass."""
        dropout = self.settings_.kind == "dropout"
        which = np.asarray((range(1) if dropout else range(len(self.theta_))) if numbers is None else numbers)
        return np.repeat(which, -(-self.settings_.members // len(which))) if dropout else which

    def bands_of(
        self, trips: Trips, rows: Rows, networks: NDArray[np.int64] | None = None, calibrated: bool = True
    ) -> Bands:
        """Bands of gridded trips and their rows, by all that predict or by these networks."""
        from evband.bands.from_network import distribution, of_rows
        from evband.network.predict import predict

        features, rate = self.feature_map_, self.settings_.dropout_rate
        networks = self._networks() if networks is None else networks
        generators = of_passes(self.settings_.seed, len(networks)) if rate else None
        predicted = predict(self.architecture_, self._weights(networks), rows.x, rows.r, rows.start, rate, generators)
        members = distribution(predicted, self.architecture_.levels, features.y_mean, features.y_std)
        bands = of_rows(rows, members, trips, features)
        if not calibrated or self.calibration_.none:
            return bands
        return bands.stretched(self.calibration_.steps(features.scaled_input).of(rows.x))

    def _weights(self, networks: NDArray[np.int64]) -> Any:
        """[networks, parameters]: tensors where torch is installed, so that bands come from what training computes,
        to the last bit; arrays elsewhere, whose bands differ by float32's rounding (1e-5 kW and less)."""
        theta = self.theta_[networks]
        if not installed("torch"):
            return theta
        from torch import from_numpy

        return from_numpy(theta)

    @property
    def architecture_(self) -> Any:
        return self.settings_.architecture(len(self.feature_map_.input_names), len(self.feature_map_.road_names))

    @property
    def params_(self) -> dict[str, NDArray[np.float32]]:
        """Named weights ``[members, ...]`` of the members that predict; a distilled network as the two that it stands for."""
        weights = self.architecture_.unpack(self.theta_[self._networks()])
        return {k: np.ascontiguousarray(v) for k, v in self.architecture_.distribution.as_members(weights).items()}

    @property
    def errors_(self) -> ErrorModel:
        """How errors add up along a drive, from trips that their predictors never saw."""
        from evband.energy import ErrorModel

        if self.energy_ is None:
            raise SettingsError(
                "this model has no energy calibration; fit it on 3 trips or more, or calibrate it on new ones (evband calibrate)."
            )
        return ErrorModel.from_dict(self.energy_)

    @property
    def contradictions_(self) -> list[str]:
        """What it says against physics, as `fit` or `calibrate` found it."""
        saved = (self.energy_ or {}).get("contradictions")
        return [str(problem)[:300] for problem in saved][:10] if isinstance(saved, list) else []

    def energy(self, trips: Any, level: float = 0.9, **stretch: Any) -> Energies:
        """Energy of each trip as a distribution; `from_km`, `to_km`, `so_far`: see `evband.energy.trip_energy`."""
        from evband.energy import predicted_drives, trip_energy

        drives = predicted_drives(self, self.on_grid(trips))
        return trip_energy(drives, self.errors_, level, **stretch)

    def range(self, soc: float, capacity_kwh: float | None, route: Any, **options: Any) -> Range:
        """How far the battery (None: that of the data sheet) reaches along a route: see `evband.energy.plan`."""
        from evband.energy import plan

        return plan(self, soc, capacity_kwh, route, **options)

    def stream(self, level: float = 0.9, adapt: bool = False) -> Stream:
        """A band for every tick, one tick per grid step: `stream.tick(speed_kmh=88.0, acceleration_ms2=0.1)`.

        With `adapt` it learns from `power_kw` of its ticks; a started model becomes the car's own, `stream.model`.
        """
        from evband.streaming import Stream

        return Stream(self, level, adapt)

    def on_grid(self, trips: Any) -> Trips:
        """Trips, or a frame, on this model's grid."""
        from evband.trips import Trips

        return Trips.of(trips).on_grid(self.settings_.hz, bridge_s=self.settings_.bridge_s, lag=self.feature_map_.lag)

    # Files ----------------------------------------------------------------------------------------------------------

    def card(self) -> dict[str, Any]:
        """How it was made, on what, how well it did, and the car that can be read off it, as plain numbers and text."""
        from evband.card import card

        return card(self)

    def collapse(self, trips: Any = None, how: Literal["distill", "average"] = "distill", **options: Any) -> PowerModel:
        """One network in place of the ensemble: taught on these trips, or the average; see `evband.export.collapse`."""
        from evband.export.collapse import average, distill

        if how not in ("distill", "average"):
            raise SettingsError(f"how is {how!r}; collapse knows 'distill' and 'average'.")
        return average(self) if how == "average" else distill(self, self.on_grid(trips), **options)

    def export(self, path: str | Path) -> None:
        """Write an ONNX graph (docs/onnx.md)."""
        from evband.export.onnx import export_onnx, model_graph

        export_onnx(path, model_graph(self))

    def save(self, path: str | Path) -> None:
        """Write one .evband file."""
        from evband.artifact import save

        save(self, Path(path))


def load(path: str | Path) -> PowerModel:
    """Read a .evband file; a damaged or hostile one is an error.

    >>> from evband.live.run import DEMO
    >>> load(DEMO / "demo.evband").settings_.members
    6
    """
    from evband.artifact import load as load_artifact

    return load_artifact(Path(path))
