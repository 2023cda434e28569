"""The value of a calibration: what it says, what it refuses, and that it survives a file."""

import numpy as np
import pytest

from evband.calibration import Calibration, fit_calibration, fit_stretches
from evband.errors import ArtifactError
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
    taught = FITTED.after("taught", FITTED.standing / FITTED.moving)
    assert (taught.moving, taught.standing) == (1.0, 0.4)
    assert taught.describe() == f"taught the ensemble's calibrated bands ({FITTED})"
    assert taught.after("averaged", 1.0).of == FITTED


def test_it_survives_a_file():
    for value in (Calibration(), FITTED, FITTED.after("averaged", 0.5, 1.25)):
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
    assert (found.moving, found.standing) == tuple(own) == fit_stretches(bands)
    assert (found.how, found.trips) == ("given", 12)
    few = np.full(3, 200)
    none, own = fit_calibration(gaussian_bands(correlated_errors(rng, few, trip_std=0.2), few, 0.5), members=30)
    assert none.none
    assert "at least 9 trips" in none.describe()
    assert own.tolist() == [1.0, 1.0]
