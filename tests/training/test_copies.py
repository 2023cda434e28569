"""What fits of slow feeds are trained on: the trips, copies of them with fewer readings, and epochs for both."""

import numpy as np
import polars as pl

from evband.model import PowerModel
from evband.preparing import COPIES, copies_of, prepare
from evband.settings import FROM_BASE, Settings, when_from_base
from evband.trips import Trip, Trips
from tiny_car import drives

SLOW = Settings(bridge_s=30.0)


def test_copies_stand_behind_the_trips_and_count_for_nothing_else():
    trips = Trips(drives(3))
    plain, job = (prepare(trips, s).job for s in (Settings(bridge_s=30.0, thinning=0.0), SLOW))
    assert plain.data.copy is None
    copy = job.data.copy
    assert np.unique(copy).tolist() == list(range(COPIES + 1))
    own = copy == 0
    assert own[: len(plain.data.y)].all()
    for name in ("x", "r", "y", "trip"):
        np.testing.assert_array_equal(getattr(job.data, name)[own], getattr(plain.data, name))
    assert job.data.own.sum() == plain.data.own.sum()
    np.testing.assert_array_equal(job.road_weights(0), plain.road_weights(0))
    firsts = [job.data.x[copy == number] for number in (1, 2)]
    assert not np.array_equal(*(rows[:200] for rows in firsts)), "each copy is thinned otherwise"


def test_a_job_with_copies_is_kept(tmp_path):
    job = prepare(Trips(drives(3)), SLOW).job
    job.save(tmp_path / "job.npz")
    np.testing.assert_array_equal(type(job).load(tmp_path / "job.npz").data.copy, job.data.copy)


def test_fits_from_the_base_take_twice_the_epochs_for_slow_feeds_alone():
    assert when_from_base(Settings()) == FROM_BASE
    assert when_from_base(Settings(bridge_s=30.0, thinning=0.0)) == FROM_BASE
    assert when_from_base(SLOW)["epochs"] == 2 * FROM_BASE["epochs"]


def test_copies_of_a_fit_are_of_the_readings_of_its_log(monkeypatch):
    """Read every 0.7 s: silences in the copies begin at readings, which hardly ever lie on a row."""
    import evband.preparing as preparing

    read = Trips(
        Trip(t.trip_id, t.table.drop("segment").with_columns(time_s=0.7 * pl.col("time_s"))) for t in drives(3)
    )
    made = []
    monkeypatch.setattr(preparing, "copies_of", lambda *given: made.append(copies_of(*given)) or made[0])
    PowerModel(members=2, hidden=8, epochs=1, bridge_s=30.0, calibrate=False, device="cpu").fit(read)
    ages = np.concatenate([trip.table["age_s"].to_numpy() for trip in made[0][0]])
    assert np.mean(ages[ages > 0] % 1.0 > 0.01) > 0.5
