"""How far a battery reaches where a car's energy is hardly known."""

import numpy as np
import pytest

from evband.energy import Ahead, ErrorModel, SoFar
from evband.energy.ahead import long_enough
from evband.energy.floor import LEAST
from evband.energy.student import stdtr


def way(tau_kw, climb_kwh=0.0, trips=8):
    """An hour at 50 km/h and 10 kW, flat or downhill first; errors last all along."""
    errors = ErrorModel(0.0, tau_kw**2, 0.0, 20.0, 0.0, 0.0, 1.0, 1.0, trips, tails=5.0)
    seconds = np.arange(1, 361) * 10.0
    mean = 10.0 * seconds / 3600.0
    mean = mean + climb_kwh * np.minimum(seconds / 600.0, 1.0)
    return Ahead(errors, seconds / 72.0, seconds, mean, np.stack([mean, mean]), seconds.copy())


def reach(ahead, kwh):
    past = SoFar(ahead.errors)
    return long_enough(ahead, ahead, kwh, past).reach(kwh, past)


def test_a_car_that_is_hardly_known_does_not_drive_for_ever():
    low, middle, high = reach(way(8.0), 20.0)
    assert middle == pytest.approx(100.0, rel=0.01)
    assert high == pytest.approx(middle / LEAST, rel=0.02)
    assert low < 0.5 * middle  # what it may take more stays as it was


def test_ordinary_bands_keep_their_sides():
    ahead = way(1.0)
    past = SoFar(ahead.errors)
    low, _, high = reach(ahead, 5.0)
    chances = ahead.chances(5.0, past)
    assert np.interp(low, ahead.km, chances) == pytest.approx(0.95, abs=0.01)
    assert np.interp(high, ahead.km, chances) == pytest.approx(0.05, abs=0.01)
    assert np.interp(high, ahead.km, ahead.quantiles(past, 0.05)) == pytest.approx(5.0, rel=0.01)


def test_a_way_that_begins_downhill_has_room_below_its_energy():
    ahead = way(3.0, climb_kwh=-2.0)
    chance = ahead.chances(-0.5, SoFar(ahead.errors))  # a battery that must be charged on the way down
    assert 0.0 < chance[30] < 1.0


def test_reach_charge_and_chance_are_of_one_distribution():
    ahead = way(8.0)
    past = SoFar(ahead.errors)
    energy = ahead.quantiles(past, 0.05)
    assert energy[-1] == pytest.approx(LEAST * ahead.mean_kwh[-1])
    assert ahead.chances(float(energy[-1]), past)[-1] == pytest.approx(0.05)


def test_many_cars_at_once_are_as_one_by_one():
    ahead = way(6.0)
    past = SoFar(ahead.errors)
    columns = SoFar(ahead.errors)
    columns.now = type(past.now)(*(np.full((3, 1), float(x)) for x in past.now))
    kwh = np.array([2.0, 5.0, 9.0])
    together = ahead.chances(kwh[:, None], columns)
    assert np.allclose(together, [ahead.chances(float(k), past) for k in kwh])


@pytest.mark.parametrize("p", [0.05, 0.25, 0.5, 0.75, 0.95])
def test_what_a_battery_must_hold_has_that_chance_to_be_enough(p):
    ahead = way(3.0, climb_kwh=-2.0)
    past = SoFar(ahead.errors)
    needed = ahead.needed(past, p, 0.8, 0.2)
    mean, low, high = ahead.sides(past)
    spread = np.sqrt(np.where(needed < mean, low, high) ** 2 + 0.8**2 + (0.2 * needed) ** 2)
    assert stdtr(ahead.errors.dof, (needed - mean) / spread) == pytest.approx(p)


def test_no_battery_is_enough_where_its_size_is_anybodys_guess():
    ahead = way(3.0)
    assert np.isinf(ahead.needed(SoFar(ahead.errors), 0.99, 0.0, 0.5)).all()


def test_a_way_of_some_metres_is_repeated_in_few_rounds():
    ahead = way(1.0)
    short = ahead.at(np.arange(2))
    rounds = []
    counted = type(
        "Counted", (Ahead,), {"chances": lambda self, *given: rounds.append(1) or Ahead.chances(self, *given)}
    )
    past = SoFar(ahead.errors)
    long = long_enough(counted(**vars(short)), short, 10.0, past)
    assert long.reach(10.0, past)[1] == pytest.approx(reach(ahead, 10.0)[1], rel=0.01)
    assert len(rounds) < 200
