"""PowerModel: scikit-learn's habits, calibration on trips left out, every method, and bad input."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from evband.bands import LocationScale, QuantileSet
from evband.calibration import Calibration
from evband.errors import ChannelError, SettingsError, TripsError
from evband.logs.reading import read_trips
from evband.model import PowerModel
from evband.preparing import prepare
from evband.scores import evaluate
from evband.settings import resolve
from evband.trips import Trip, Trips
from tiny_car import TINY, drive, drives

TRIPS = drives(9, seconds=120)


@pytest.fixture(scope="module")
def fitted():
    return PowerModel(**{**TINY, "members": 5}).fit(TRIPS)


# scikit-learn's habits


def test_arguments_are_kept_and_clones_are_unfitted(fitted):
    assert fitted.get_params()["members"] == 5
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "theta_")
    assert copy.set_params(members=7, beta=1.0).get_params()["members"] == 7
    assert "members=5" in repr(fitted)


def test_fit_returns_self_and_repeats_to_the_bit(fitted):
    again = clone(fitted)
    assert again.fit(TRIPS) is again
    np.testing.assert_array_equal(again.theta_, fitted.theta_)
    assert again.calibration_.moving == fitted.calibration_.moving


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_taken(fitted, kind):
    frame = TRIPS[:2].to_polars().drop("segment")
    frame = {"pandas": frame.to_pandas, "polars": lambda: frame, "pyarrow": frame.to_arrow}[kind]()
    assert len(np.unique(fitted.predict(frame).trip_id)) == 2


# Prediction


def test_bands_tell_of_every_row(fitted):
    bands = fitted.predict(TRIPS[:2])
    assert len(bands) == 240
    assert isinstance(bands.members, LocationScale)
    assert bands.members.mu.shape == (5, 240)
    assert bands.warmup.sum() == 60  # 30 s of each trip
    np.testing.assert_array_equal(bands.power_kw[:120], TRIPS[0].table["power_kw"])
    lower, upper = bands.interval(0.9)
    assert (lower < bands.mean).all()
    assert (bands.mean < upper).all()
    standing = bands.speed_kmh < 1
    assert standing.any()
    np.testing.assert_array_equal(
        bands.stretch, np.where(standing, fitted.calibration_.standing, fitted.calibration_.moving)
    )


def test_inputs_beyond_the_training_range_are_flagged(fitted):
    table = TRIPS[0].table.with_columns(
        pl.when(pl.col("time_s") == 50).then(400.0).otherwise("speed_kmh").alias("speed_kmh")
    )
    bands = fitted.predict(Trips([Trip("fast", table, 1.0)]))
    assert bands.outside[49]
    assert bands.outside_channel[49] == "speed_kmh"
    assert bands.outside.mean() < 0.5


def test_one_member_is_its_own_mixture():
    one = PowerModel(**{**TINY, "members": 1}).fit(TRIPS[:3])
    bands = one.predict(TRIPS[3:5])
    assert (bands.epistemic == 0).all()
    np.testing.assert_allclose(bands.mean, bands.members.mu[0], rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 90.0, float("nan")])
def test_a_level_outside_0_and_1_is_refused(fitted, level):
    with pytest.raises(SettingsError, match="between 0 and 1"):
        fitted.predict(TRIPS[:1]).interval(level)


# Calibration


def test_out_of_bag_trips_are_predicted_by_members_that_never_saw_them(fitted):
    prepared = prepare(TRIPS, fitted.settings_)
    job, bands = prepared.job, fitted.out_of_bag(prepared)
    assert sorted(np.unique(bands.trip_id)) == sorted(TRIPS.ids)
    for t, trip in enumerate(TRIPS):
        own = fitted.predict(Trips([trip]))
        own = own.stretched(1 / own.stretch)
        fold = int(job.fold[t])
        alone = own.members.mu[[m for m in range(5) if m % job.folds == fold]].mean(0)
        np.testing.assert_allclose(bands.mean[bands.trip_id == trip.trip_id], alone, atol=2e-3)


def test_nine_trips_calibrate_and_fewer_say_that_they_cannot(fitted):
    assert fitted.calibration_.describe().startswith("stretched by")
    assert fitted.summary_["out_of_bag"]["coverage"] == pytest.approx(0.9, abs=0.04)
    few = PowerModel(**{**TINY, "epochs": 1}).fit(TRIPS[:5])
    assert few.calibration_.moving == 1.0
    assert "not calibrated" in few.calibration_.describe()
    assert "9 are needed" in few.calibration_.describe()
    without = PowerModel(**{**TINY, "epochs": 1}, calibrate=False).fit(TRIPS)
    assert (without.calibration_.none, without.calibration_.describe()) == (True, "not asked for")


def test_recalibrating_forgets_the_old_stretch(fitted):
    model = clone(fitted)
    model.__dict__.update(fitted.__dict__)
    fresh = drives(9, seconds=120, seed=4)
    first = model.recalibrate(fresh).calibration_.moving
    model.calibration_ = Calibration(50.0, 50.0)
    assert model.recalibrate(fresh).calibration_.moving == first
    assert "on 9 trips given for it" in model.calibration_.describe()
    with pytest.raises(TripsError, match="at least 9 trips"):
        model.recalibrate(fresh[:8])


# Methods


@pytest.mark.parametrize(
    "method", ["t-dropout", "quantile-anchor", "quantile-dropout", "t-ensemble", "gaussian-anchor"]
)
def test_every_method_from_fit_to_bands(method):
    model = PowerModel(method=method, **{**TINY, "members": 5}).fit(TRIPS)
    bands = model.predict(TRIPS[:2])
    assert model.calibration_.describe().startswith("stretched")
    lower, upper = bands.interval(0.8)
    assert (lower < upper).all()
    assert np.isfinite(bands.crps(bands.power_kw)).all()
    assert (bands.epistemic > 0).any()
    if method.startswith("quantile"):
        assert isinstance(bands.members, QuantileSet)


def test_dropout_passes_keep_their_masks_and_are_many():
    model = PowerModel(method="t-dropout", **{**TINY, "members": 8, "epochs": 1}).fit(TRIPS[:3])
    bands = model.predict(TRIPS[:1])
    assert bands.members.mu.shape[0] == 8
    np.testing.assert_array_equal(bands.mean, model.predict(TRIPS[:1]).mean)


def test_as_published_quantiles_are_three():
    model = PowerModel(method="quantile-anchor", as_published=True, **{**TINY, "epochs": 1}).fit(TRIPS[:3])
    assert model.architecture_.levels == (0.1, 0.5, 0.9)


# A trained prior


def test_a_prior_from_another_car_is_where_a_new_one_starts(fitted):
    heavy = drives(2, seconds=120, seed=2, power=lambda v, a: 0.5 + 0.15 * v + 0.0006 * v**3 + 2.4 * a * v)
    model = PowerModel(**{**TINY, "members": 5}, prior=fitted).fit(heavy)
    assert model.feature_map_.road_names == fitted.feature_map_.road_names
    np.testing.assert_array_equal(model.feature_map_.r_scale, fitted.feature_map_.r_scale)
    assert (model.feature_map_.high >= fitted.feature_map_.high).all()
    assert np.abs(model.theta_ - fitted.theta_).mean() < np.abs(fitted.theta_).mean()
    test = drives(3, seconds=120, seed=3, power=lambda v, a: 0.5 + 0.15 * v + 0.0006 * v**3 + 2.4 * a * v)

    def error(m):
        bands = m.predict(test)
        return float(np.sqrt(np.mean((bands.mean - bands.power_kw) ** 2)))

    assert error(model) < error(fitted)


@pytest.mark.parametrize(
    "other",
    [{"hidden": 16}, {"layers": 2}, {"method": "gaussian-anchor"}, {"road_load": False}, {"features": "speed_kmh"}],
)
def test_a_prior_of_another_architecture_is_refused(fitted, other):
    with pytest.raises(SettingsError, match="the prior model is 1x8"):
        PowerModel(**{**TINY, **other}, prior=fitted).fit(TRIPS[:2])


def test_a_prior_leaves_nothing_to_tune(fitted):
    with pytest.raises(SettingsError, match="cannot be tuned"):
        PowerModel(**TINY, prior=fitted, tune=True).fit(TRIPS[:2])


# Bad input


def test_electrical_channels_are_never_inputs():
    with pytest.raises(ChannelError, match=r"battery_current_a cannot be a feature.*the answer"):
        PowerModel(**TINY, features="speed_kmh,battery_current_a").fit(TRIPS)


def test_a_table_without_acceleration_is_predicted_from_its_speed(fitted):
    bare = Trips([Trip("bare", TRIPS[0].table.drop("acceleration_ms2"), 1.0)])
    whole, found = (fitted.predict(trips).mean for trips in (TRIPS[:1], bare))
    assert np.isfinite(found).all()
    assert np.corrcoef(whole, found)[0, 1] > 0.9


def test_too_few_rows_a_constant_target_and_no_power():
    with pytest.raises(TripsError, match="less than one window of 128"):
        PowerModel(**{**TINY, "window": 128}).fit(Trips([drive("short", seconds=60)]))
    flat = drive("flat", seconds=200, noise_kw=0.0, power=lambda v, a: 0 * v + 3.0)
    with pytest.raises(TripsError, match="power_kw"):
        PowerModel(**TINY).fit(Trips([flat]))
    silent = Trip("silent", TRIPS[0].table.drop("power_kw"), 1.0)
    with pytest.raises(TripsError, match="power"):
        PowerModel(**TINY).fit(Trips([silent]))


def test_cuda_asked_for_and_absent(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SettingsError, match="no CUDA GPU"):
        PowerModel(**{**TINY, "device": "cuda"}).fit(TRIPS)


def test_members_survive_any_order_of_settings():
    assert PowerModel(members=3)._resolve() == resolve("default", members=3)


def test_trips_without_power_do_not_count_for_calibration():
    """Ten trips, two of them without power: eight are left to calibrate on, so the fit says that it could not."""
    trips = [drive(f"drive {i}", seconds=120) for i in range(10)]
    trips[3:5] = [replace(t, table=t.table.with_columns(power_kw=pl.lit(None, pl.Float64))) for t in trips[3:5]]
    model = PowerModel(**{**TINY, "epochs": 1, "members": 5}).fit(Trips(trips))
    assert "not calibrated: 8 trips" in model.calibration_.describe()
    assert model.calibration_.moving == 1


def test_bands_predicted_without_power_are_scored_with_the_power_that_comes_later(fitted):
    silent = Trips([replace(trip, table=trip.table.drop("power_kw")) for trip in TRIPS[:3]])
    bands = fitted.predict(silent)
    with pytest.raises(TripsError, match="power"):
        evaluate(bands)
    assert evaluate(bands, TRIPS[:3])["crps_kw"] == pytest.approx(evaluate(fitted.predict(TRIPS[:3]))["crps_kw"])


@pytest.mark.parametrize("speed", [0.0, 50.0])
def test_logs_in_which_nothing_moves_are_refused_in_one_sentence(speed):
    rng = np.random.default_rng(0)
    frames = [
        pl.DataFrame(
            {"time_s": np.arange(300.0), "speed_kmh": speed, "power_kw": 5 + rng.normal(size=300), "trip_id": f"{i}"}
        )
        for i in range(4)
    ]
    with pytest.raises(TripsError, match="every input is constant"):
        PowerModel(**TINY).fit(pl.concat(frames))


def test_a_gridded_table_without_acceleration_can_be_fitted_and_predicted():
    frame = drives(3).to_polars().drop("acceleration_ms2")
    model = PowerModel(**TINY).fit(read_trips(frame))
    assert np.isfinite(model.predict(read_trips(frame)).mean).all()


# Its face


def test_card_collapse_and_export_are_methods(fitted, tmp_path):
    assert fitted.card()["members"] == 5
    one = fitted.collapse(TRIPS[:2], steps=20)
    assert one.settings_.method == "distilled"
    assert "taught the ensemble's calibrated bands" in one.calibration_.describe()
    assert len(fitted.collapse(how="average").theta_) == 1
    with pytest.raises(SettingsError, match="'distill' and 'average'"):
        fitted.collapse(TRIPS[:2], how="mean")
    fitted.export(tmp_path / "car.onnx")
    assert (tmp_path / "car.onnx").stat().st_size > 0
