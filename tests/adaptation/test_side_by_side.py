"""Cars adapted side by side with torch are what each is alone: here on the CPU, as on a GPU."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation import members
from evband.adaptation.asks import States, Update, done_together, one_by_one
from evband.adaptation.trip_errors import OWN
from evband.adaptation.update import evidence, evidence_of, features_of
from evband.errors import ArtifactError
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, KG, trip

torch = pytest.importorskip("torch")

from evband.adaptation import side_by_side  # noqa: E402
from evband.adaptation.side_by_side import SideBySide  # noqa: E402


def parked(seconds: int) -> Trip:
    zero = np.zeros(seconds)
    return Trip(
        "parked", pl.DataFrame({"time_s": np.arange(float(seconds)), "speed_kmh": zero, "power_kw": zero + 0.4})
    )


def cars() -> list[tuple[evband.PowerModel, Trips]]:
    """Three trips, one; few rows; trips of several lengths and one without rows on the move; holes in measured power."""
    holes = trip(8).table.with_columns(power_kw=pl.when(pl.col("time_s") % 97 < 20).then(None).otherwise("power_kw"))
    logs = [
        [trip(1), trip(2), trip(3)],
        [trip(4)],
        [trip(5, seconds=120), trip(6, seconds=90)],
        [trip(7, seconds=450), parked(80), trip(9, seconds=200)],
        [Trip("holes", holes)],
    ]
    masses = (KG, 1.1 * KG, 0.8 * KG, 2.0 * KG, 1.5 * KG)
    models = [evband.start(mass_kg=mass, cda_m2=CDA, seed=k) for k, mass in enumerate(masses)]
    return [(model, Trips(list(log)).on_grid(1.0)) for model, log in zip(models, logs, strict=True)]


def asked(some: list[tuple[evband.PowerModel, Trips]], answer) -> list[evband.PowerModel]:
    """Each car after its trips."""

    def steps(model, trips, seed):
        x, r, start, *rest = features_of(model, trips)
        rows = evidence_of(model, x, r, start, *rest, (yield States(model, x, start)))
        return (yield Update(model, rows, len(trips), trips.fingerprints, seed))

    return done_together([steps(*car, seed) for seed, car in enumerate(some)], answer)


def assert_alike(ours: evband.PowerModel, theirs: evband.PowerModel) -> None:
    a, b = (bands_of(model) for model in (ours, theirs))
    np.testing.assert_allclose(a, b, atol=1e-3)  # kW
    np.testing.assert_allclose(ours.theta_, theirs.theta_, rtol=1e-4, atol=1e-5)
    one, two = ours.adaptation_, theirs.adaptation_
    np.testing.assert_allclose(one.precision, two.precision, rtol=1e-4, atol=1e-6 * np.abs(two.precision).max())
    assert one.scale == pytest.approx(two.scale, abs=1e-5)
    assert (one.trips, one.minutes, one.readings) == (two.trips, two.minutes, two.readings)
    assert ours.fingerprints_ == theirs.fingerprints_


def bands_of(model: evband.PowerModel) -> np.ndarray:
    bands = model.predict(Trips([trip(20, seconds=300)]))
    return np.stack([bands.mean, *bands.interval(0.9)])


@pytest.fixture
def in_doubles(monkeypatch) -> None:
    """Thinned rows in double precision on the CPU, as they are side by side."""
    monkeypatch.setattr(members, "THINNED", np.float64)


@pytest.fixture
def never_alone(monkeypatch) -> None:
    """What fails side by side would be answered alone, and right."""

    def alone(ask):
        raise AssertionError(f"{type(ask).__name__} failed side by side")

    monkeypatch.setattr(side_by_side, "alone", alone)


@pytest.mark.usefixtures("in_doubles", "never_alone")
def test_cars_side_by_side_learn_what_each_learns_alone() -> None:
    some = cars()
    ours, theirs = (asked(some, answer) for answer in (SideBySide("cpu"), one_by_one))
    for pair in zip(ours, theirs, strict=True):
        assert_alike(*pair)
    again = [(model, Trips([trip(30 + k)]).on_grid(1.0)) for k, model in enumerate(ours[:2])]
    for pair in zip(*(asked(again, answer) for answer in (SideBySide("cpu"), one_by_one)), strict=True):
        assert_alike(*pair)
        assert pair[0].adaptation_.trips > 1


def test_single_precision_of_thinned_rows_moves_bands_by_hundredths_of_a_kilowatt() -> None:
    some = cars()[:2]
    for ours, theirs in zip(*(asked(some, answer) for answer in (SideBySide("cpu"), one_by_one)), strict=True):
        np.testing.assert_allclose(bands_of(ours), bands_of(theirs), atol=0.02)


@pytest.mark.usefixtures("in_doubles")
def test_what_does_not_fit_together_is_done_in_turns_or_alone(monkeypatch) -> None:
    some = cars()[:4]
    whole = asked(some, SideBySide("cpu"))
    monkeypatch.setattr(side_by_side, "TABLE_BYTES", 30 * 58 * 8 * 1300)  # of two trips
    for ours, theirs in zip(asked(some, SideBySide("cpu")), whole, strict=True):
        assert_alike(ours, theirs)


@pytest.mark.usefixtures("in_doubles")
def test_another_network_beside_the_others_is_run_alone() -> None:
    (model, trips), (other, log) = cars()[:2]
    other.theta_ = 0.9 * other.theta_
    both = [(model, trips), (other, log)]
    for pair in zip(*(asked(both, answer) for answer in (SideBySide("cpu"), one_by_one)), strict=True):
        assert_alike(*pair)


@pytest.mark.usefixtures("in_doubles")
def test_a_car_whose_matrices_cannot_be_factored_does_not_touch_the_others() -> None:
    (good, trips), (bad, log) = cars()[:2]
    bad.adaptation_ = replace(bad.adaptation_, precision=-1e9 * np.ones_like(bad.adaptation_.precision))
    with pytest.raises(np.linalg.LinAlgError):
        asked([(bad, log)], SideBySide("cpu"))

    def steps(model, some):
        try:
            rows = evidence(model, some)
            return (yield Update(model, rows, len(some), [], 0))
        except np.linalg.LinAlgError:
            return None

    cases = [(bad, log), (good, trips)]
    alone, beside = (done_together([steps(*car) for car in cases], way) for way in (one_by_one, SideBySide("cpu")))
    assert alone[0] is beside[0] is None
    assert_alike(beside[1], alone[1])


@pytest.mark.usefixtures("in_doubles")
def test_a_car_whose_file_is_damaged_does_not_touch_the_others() -> None:
    (good, trips), (bad, log) = cars()[:2]
    bad.energy_ = bad.energy_ | {OWN: "x"}

    def steps(model, some):
        try:
            return (yield Update(model, evidence(model, some), len(some), [], 0))
        except ArtifactError as problem:
            return str(problem)

    cases = [(bad, log), (good, trips)]
    alone, beside = (done_together([steps(*car) for car in cases], way) for way in (one_by_one, SideBySide("cpu")))
    assert alone[0] == beside[0]
    assert "own trips is damaged" in beside[0]
    assert_alike(beside[1], alone[1])


def test_what_fails_side_by_side_is_done_alone_and_rows_that_a_gpu_cannot_copy_on_the_host(monkeypatch) -> None:
    class Full(np.ndarray):
        def __getitem__(self, rows):
            raise torch.cuda.OutOfMemoryError

        def cpu(self):
            return np.asarray(self)

    some = cars()[4:]  # with holes in measured power
    (alone,) = asked(some, one_by_one)

    def fails(asks, device):
        raise RuntimeError("no memory")

    def full(ask):
        return ask.alone().view(Full) if isinstance(ask, States) else ask.alone()

    monkeypatch.setattr(side_by_side, "updated_of", fails)
    monkeypatch.setattr(side_by_side, "hidden_states_of", lambda asks, device: [full(ask) for ask in asks])
    (found,) = asked(some, SideBySide("cpu"))
    assert_alike(found, alone)
