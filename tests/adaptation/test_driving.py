"""A started model learns while its car drives, as it would from the log afterwards."""

import json

import numpy as np
import pytest

import evband
from evband.adaptation import driving
from evband.adaptation.driving import Learner
from evband.adaptation.trip_errors import OWN, PRIOR_TRIPS
from evband.errors import SettingsError
from evband.streaming import LineStream
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


@pytest.fixture(scope="module")
def started() -> evband.PowerModel:
    return evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)


def lines(drive: Trip, since: float = 0.0) -> list[str]:
    names = ("time_s", "speed_kmh", "power_kw")
    return [json.dumps({"utc": t + since, "speed": v, "power": p}) for t, v, p in drive.table.select(names).iter_rows()]


def test_a_drive_teaches_what_its_log_would(started: evband.PowerModel) -> None:
    drive = trip(1).on_grid(1.0)
    stream = started.stream(adapt=True)
    for row in drive.table.drop("time_s", "segment").to_dicts():
        stream.tick(**row)
    assert 4.0 < stream.model.adaptation_.minutes < 10.0  # it has learned on the way
    stream.reset()
    theirs = evband.adapt(started, Trips([drive]))
    np.testing.assert_allclose(stream.model.theta_, theirs.theta_, atol=1e-4)
    np.testing.assert_allclose(stream.model.adaptation_.precision, theirs.adaptation_.precision, rtol=1e-3, atol=1e-2)
    assert stream.model.adaptation_.trips == theirs.adaptation_.trips == 1
    assert Trips([drive]).among(stream.model.fingerprints_)  # `evband adapt` will not count it again


def test_bands_come_closer_while_driving_than_with_an_offset_alone(started: evband.PowerModel) -> None:
    heavy = [trip(n, mass=1.3 * KG, seconds=500) for n in (2, 3)]
    errors = {}
    for learns in (True, False):
        stream, off = LineStream(started, adapt=True), []
        stream._stream.learner = stream._stream.learner if learns else None
        for n, drive in enumerate(heavy):
            answers = [json.loads(stream.line(line)) for line in lines(drive, 10_000.0 * n)]
            power = drive.table["power_kw"].to_numpy()
            off = [abs(a["mean_kw"] - p) for a, p in zip(answers, power, strict=True)]
        errors[learns] = float(np.mean(off[120:]))
    assert errors[True] < 0.8 * errors[False], errors


def test_a_killed_stream_goes_on_where_it_was(started: evband.PowerModel) -> None:
    sent = lines(trip(4, seconds=250)) + lines(trip(5, seconds=150), 10_000.0)
    whole, parts = LineStream(started, adapt=True), LineStream(started, adapt=True)
    for i, line in enumerate(sent):
        if i in (100, 700, 1100, 1300):
            saved = json.loads(json.dumps(parts.to_dict()))
            parts = LineStream(started, adapt=True)
            parts.restore(saved)
        ours, expected = json.loads(parts.line(line)), json.loads(whole.line(line))
        assert ours["mean_kw"] == pytest.approx(expected["mean_kw"], abs=1e-4)
        assert ours["upper_kw"] == pytest.approx(expected["upper_kw"], abs=1e-4)
    assert parts.model.adaptation_.trips == whole.model.adaptation_.trips == 2


def test_a_long_drive_is_kept_in_pieces(started: evband.PowerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "MOST_S", 150.0)
    stream = LineStream(started, adapt=True)
    for line in lines(trip(6, seconds=600)):
        stream.line(line)
    learner = stream._stream.learner
    assert learner is not None
    assert len(learner.rows) < 150
    assert learner.before.adaptation_.minutes == pytest.approx(8.0, abs=2.0)
    assert learner.before.adaptation_.trips == 1
    assert learner.before.energy_[OWN][1] == PRIOR_TRIPS + 1


@pytest.mark.parametrize(
    ("drive", "words"), [(trip(7, sign=-1.0), "sign is reversed"), (trip(8, mass=9000.0), "another car's")]
)
def test_a_drive_that_cannot_be_this_cars_teaches_nothing(started: evband.PowerModel, drive: Trip, words: str) -> None:
    stream = LineStream(started, adapt=True)
    for line in lines(drive):
        stream.line(line)
    stream.line('{"utc": 90000, "speed": 0}')
    assert stream.model is started
    (note,) = stream.notes()
    assert words in note
    assert not stream.notes()


def test_the_same_drive_twice_counts_once(started: evband.PowerModel) -> None:
    stream = LineStream(started, adapt=True)
    for k in range(2):
        for line in lines(trip(9, seconds=200), 10_000.0 * k):
            stream.line(line)
    stream.line('{"utc": 90000, "speed": 0}')
    assert stream.model.adaptation_.trips == 1
    assert "already" in stream.notes()[0]


def test_charging_and_parking_teach_nothing(started: evband.PowerModel) -> None:
    stream = LineStream(started, adapt=True)
    for second in range(400):
        stream.line(json.dumps({"utc": second, "speed": 0.0, "power": -7.0}))
    assert stream.model is started


@pytest.mark.parametrize("change", [{"rows": "x"}, {"rows": "AAAA"}, {"learned": 9}, {"kept": "AAAA"}, {"stood": -1}])
def test_a_damaged_state_is_one_sentence(started: evband.PowerModel, change: dict) -> None:
    learner = Learner(started)
    with pytest.raises(SettingsError, match=r"damaged .*start without it"):
        learner.restore(learner.to_dict() | change)


def test_only_a_started_model_learns() -> None:
    from drives import small_model

    with pytest.raises(SettingsError, match="evband start"):
        Learner(small_model())
