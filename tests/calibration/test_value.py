"""The value of a calibration: what it says, what it refuses, and that it survives a file."""

import copy

import numpy as np
import pytest

from drives import made_up_trip, small_model
from evband.calibration import Calibration, fit_calibration, fit_stretches
from evband.channels import EDGES
from evband.errors import ArtifactError
from evband.network.steps import Steps
from evband.trips import Trips
from forecasters import correlated_errors, gaussian_bands

FITTED = Calibration(1.25, 0.5, 0.9, "left out", 12, 30, "")


def test_it_says_what_it_rests_on():
    assert FITTED.describe() == (
        "stretched by 1.250 (0.500 at a standstill) on 12 trips, each predicted by members that never saw it"
    )
    assert Calibration(2.0, 2.0, how="given", trips=9).describe() == "stretched by 2.000 on 9 trips given for it"
    assert Calibration().describe() == "not asked for"
    assert Calibration().none
    assert not FITTED.none
    taught = FITTED.after("taught")
    assert (taught.moving, taught.standing) == (1.0, 0.4)
    assert taught.describe() == f"taught the ensemble's calibrated bands ({FITTED})"
    assert taught.after("averaged").of == FITTED


def test_it_survives_a_file():
    for value in (Calibration(), FITTED, FITTED.after("averaged")):
        assert Calibration.from_dict(value.to_dict()) == value


@pytest.mark.parametrize(
    "wrong",
    [{"moving": 1e300}, {"moving": float("nan")}, {"standing": 1e-9}, {"level": 0.0}, {"trips": -1}, {"how": "guessed"},
     {"moving": None}, {"of": {}}, {"of": 3}, {"more": 1}],
)  # fmt: skip
def test_damage_is_refused(wrong):
    with pytest.raises(ArtifactError, match="its calibration is damaged"):
        Calibration.from_dict({**FITTED.to_dict(), **wrong})


def test_fitting_gives_the_stretches_or_the_reason():
    rng = np.random.default_rng(0)
    lengths = np.full(12, 200)
    bands = gaussian_bands(correlated_errors(rng, lengths, trip_std=0.2), lengths, 0.5)
    found, own = fit_calibration(bands)
    assert (found.moving, found.standing) == fit_stretches(bands)
    assert set(own) == {found.moving}
    assert (found.how, found.trips) == ("given", 12)
    few = np.full(3, 200)
    none, own = fit_calibration(gaussian_bands(correlated_errors(rng, few, trip_std=0.2), few, 0.5), members=30)
    assert none.none
    assert "at least 9 trips" in none.describe()
    assert set(own) == {1.0}


class BySpeed(Calibration):
    """Three factors: slow, in town, faster."""

    @property
    def factors(self) -> tuple[float, ...]:
        return self.standing, self.moving, 1.5

    def steps(self, scaled_input):
        (column, slow), (_, fast) = (scaled_input("speed_kmh", limit) for limit in (30.0, 60.0))
        return Steps(self.factors, (slow, fast), column)


def test_another_calibration_is_followed_by_predict_and_stream():
    model = copy.copy(small_model())
    model.calibration_ = BySpeed(1.2, 0.5)
    bands = model.predict(trips := Trips([made_up_trip("new", 400, 8)]).on_grid(1.0))
    speed = bands.speed_kmh
    assert set(bands.stretch[speed < 29]) == {0.5}
    assert set(bands.stretch[(speed > 31) & (speed < 59)]) == {1.2}
    assert set(bands.stretch[speed > 61]) == {1.5}
    stream, names = model.stream(), ("speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", *EDGES)
    ticks = [stream.tick(**{name: row[name] for name in names}) for row in trips[0].table.iter_rows(named=True)]
    expected = np.stack(bands.interval(0.9), 1)
    np.testing.assert_allclose([(band.lower_kw, band.upper_kw) for band in ticks], expected, atol=1e-3)
