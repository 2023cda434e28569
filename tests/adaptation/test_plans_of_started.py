"""Plans of a car that nobody has driven yet."""

import polars as pl
import pytest

import evband
from evband.adaptation.plans import simulated_plans
from evband.energy import plan
from evband.energy.planned import Planned
from tools.started_plans import per_tonne

TOWN = pl.DataFrame({"distance_km": [0.0, 10], "speed_kmh": [40.0, 0], "elevation_m": [0.0, 0], "ambient_temp_c": [15.0, 15]})  # fmt: skip


def test_a_started_car_takes_more_than_its_plan_and_says_its_part():
    model = evband.start("Renault Zoe 52 kWh")
    found = plan(model, 80, None, TOWN)
    without = evband.start("Renault Zoe 52 kWh")
    without.energy_["planned"] = None
    assert 1.1 < found.energy_kwh(0.5) / plan(without, 80, None, TOWN).energy_kwh(0.5) < 1.6
    assert found.shares["plan"] > 0


def test_the_shipped_numbers_are_what_simulated_drivers_give():
    kept = Planned.from_dict(simulated_plans(1000.0))
    again = per_tonne("Renault Zoe 52 kWh", drives=24, seed=1)
    for km, kmh in ((10.0, 35.0), (20.0, 55.0)):
        (mean, _), (other, _) = (one.over(km, km * float(one.counted(kmh))) for one in (kept, again))
        assert float(mean) == pytest.approx(float(other), rel=0.35)
