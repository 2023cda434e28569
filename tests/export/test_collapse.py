"""One network for the ensemble: what it keeps, and what averaging loses. Full-size figures: benchmarks/measured/collapse.py."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import evband
from evband.calibration import Calibration
from evband.errors import SettingsError
from evband.export.collapse import average, cost, distill
from evband.model import PowerModel
from evband.network.tick import engine_of
from evband.trips import Trips
from tiny_car import TINY, drives


@pytest.fixture(scope="module")
def teacher():
    return PowerModel(**{**TINY, "members": 5, "epochs": 10}).fit(drives(9, seconds=150))


@pytest.fixture(scope="module")
def student(teacher):
    return distill(teacher, drives(9, seconds=150), steps=300, hidden=16)


@pytest.fixture(scope="module")
def unseen():
    return drives(4, seconds=150, seed=9)


def test_a_student_says_what_its_teacher_says(teacher, student, unseen):
    before, after = teacher.predict(unseen), student.predict(unseen)
    assert student.theta_.shape[0] == 1
    price = cost(before, after)
    assert price.crps_kw[1] < 1.1 * price.crps_kw[0]
    assert spearmanr(before.epistemic, after.epistemic).statistic > 0.6
    assert after.aleatoric.mean() == pytest.approx(before.aleatoric.mean(), rel=0.15)
    assert after.epistemic.mean() == pytest.approx(before.epistemic.mean(), rel=0.3)
    assert "CRPS" in str(price)


def test_a_student_lives_in_a_file_and_ticks(student, unseen, tmp_path):
    student.save(tmp_path / "one.evband")
    back = evband.load(tmp_path / "one.evband")
    bands = back.predict(unseen[:1])
    np.testing.assert_array_equal(bands.mean, student.predict(unseen[:1]).mean)
    engine = engine_of(back)
    rows = back.feature_map_.transform(unseen[0])
    ticks = np.array([engine.tick(x, r).copy() for x, r in zip(rows.x, rows.r, strict=True)])
    lower, upper = bands.interval(0.9)
    for k, expected in enumerate((bands.mean, lower, upper, bands.aleatoric, bands.epistemic)):
        np.testing.assert_allclose(ticks[:, k], expected, atol=2e-3)


def test_a_student_is_taught_calibrated_bands(teacher, unseen):
    wide = PowerModel(method="t-anchor")
    wide.__dict__.update(teacher.__dict__)
    wide.calibration_ = Calibration(3.0, 0.6)
    student = distill(wide, drives(9, seconds=150), steps=100, hidden=16)
    assert (student.calibration_.moving, student.calibration_.standing) == (1.0, pytest.approx(0.2))
    ours, theirs = student.predict(unseen), wide.predict(unseen)
    assert theirs.standing.any()
    for rows in (theirs.standing, ~theirs.standing):
        assert ours.aleatoric[rows].mean() == pytest.approx(theirs.aleatoric[rows].mean(), rel=0.15)


def test_far_from_every_lesson_the_students_doubt_stays_behind(teacher, student):
    """The limit that the documentation states: an ensemble's doubt grows with distance, a regression's need not."""
    near, far = drives(1, seconds=200, seed=3), drives(1, seconds=200, seed=3)
    table = far[0].table
    far = Trips([type(far[0])("far", table.with_columns(table["speed_kmh"] * 4, table["acceleration_ms2"] * 4), 1.0)])
    growth = {name: m.predict(far).epistemic.mean() / m.predict(near).epistemic.mean() for name, m in (("teacher", teacher), ("student", student))}  # fmt: skip
    assert growth["teacher"] > 2
    assert growth["student"] < growth["teacher"]


def test_averaging_keeps_one_network_and_its_cost_is_measured(teacher, unseen):
    one = average(teacher)
    assert one.theta_.shape[0] == 1
    bands = one.predict(unseen)
    assert (bands.epistemic == 0).all()
    price = cost(teacher.predict(unseen), bands)
    assert price.crps_kw[1] > price.crps_kw[0]
    assert np.isnan(price.epistemic_rank)


def test_trips_without_power_can_teach_but_not_score(teacher, student):
    bare = Trips(type(t)(t.trip_id, t.table.drop("power_kw"), 1.0) for t in drives(2, seconds=100))
    assert np.isfinite(distill(teacher, bare, steps=2, hidden=16).theta_).all()
    price = cost(teacher.predict(bare), student.predict(bare))
    assert price.crps_kw is None
    assert "no measured power" in str(price)


def test_what_cannot_be_collapsed(student):
    with pytest.raises(SettingsError, match="distilled already"):
        distill(student, drives(1))
    with pytest.raises(SettingsError, match="nothing to average"):
        average(student)
    with pytest.raises(SettingsError, match="not fitted"):
        PowerModel(method="distilled").fit(drives(2))


@pytest.mark.parametrize("method", ["gaussian-anchor", "quantile-anchor", "t-dropout"])
def test_every_method_can_teach(method, unseen):
    trips = drives(3, seconds=150)
    teacher = PowerModel(method=method, **{**TINY, "epochs": 2}).fit(trips)
    student = distill(teacher, trips, steps=4, hidden=16)
    assert np.isfinite(student.predict(unseen).quantile(0.95)).all()
