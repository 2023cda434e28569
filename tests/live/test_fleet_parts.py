"""Cars of a fleet's folder on one shared engine: each has the bands, energy and range of its own part."""

import numpy as np
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.part import save_part
from evband.errors import SettingsError
from evband.fleet.cars import consumption
from tests.adaptation.test_start_and_adapt import trip

MASSES = {"small": 1350.0, "middle": 1750.0, "van": 2600.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    cars = tmp_path_factory.mktemp("fleet") / "cars"
    cars.mkdir()
    for k, (name, mass) in enumerate(MASSES.items()):
        model = evband.adapt(evband.start(mass_kg=mass, cda_m2=0.62, seed=k), evband.Trips([trip(k, mass, 300)]))
        used = {"energy_kwh_100km": float(consumption(model).mean())}
        save_part(model, Base.load(), cars / f"{name}.evband", [], k, row=used)
    return cars.parent


def test_parts_on_one_engine_are_as_good_as_models_of_their_own(folder, stepped, drive):
    shared = stepped({}, fleet={"dir": str(folder), "capacity_kwh": 60.0})
    own = {name: {"model": str(folder / "cars" / f"{name}.evband"), "learn": False} for name in MASSES}
    single = stepped(own)
    assert (len(shared.service.groups), len(single.service.groups)) == (1, 3)
    for live in (shared, single):
        for k, row in enumerate(drive.slice(200, 90).iter_rows(named=True)):
            live.now += 1.0
            for j, name in enumerate(MASSES):
                power = 12.0 + j if k % 7 else None
                values = row | {"power_kw": power, "speed_kmh": row["speed_kmh"] * (0.8 + 0.1 * j)}
                live.put(name, live.now, **{c: v for c, v in values.items() if c != "time_s" and v is not None})
            live.service.step(live.now)
            live.service.pool.submit(int).result()
    for name in MASSES:
        ours, theirs = shared.car(name), single.car(name)
        for key in ("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw"):
            assert ours[key] == pytest.approx(theirs[key], abs=2e-3), key
        energies = (list(one["energy_kwh"].values()) for one in (ours, theirs))
        assert next(energies) == pytest.approx(next(energies), rel=0.02)  # theirs: with what their own trips erred by
        found, expected = (np.array(list(one["range_km"].values())) for one in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=0.25)  # likewise
    assert shared.car("van")["range_km"]["p50"] < 0.9 * shared.car("small")["range_km"]["p50"]


def test_what_one_car_s_trips_say_of_its_energy_errors_is_not_said_of_the_others(folder, stepped):
    (group,) = stepped({}, fleet={"dir": str(folder)}).service.groups
    middle = evband.load(folder / "cars" / "middle.evband")
    assert middle.errors_.bias != 0.0
    assert group.tally.errors == evband.start(mass_kg=MASSES["middle"], cda_m2=0.62).errors_


def test_a_damaged_part_is_named_and_the_others_are_served(folder, stepped, tmp_path):
    cars = tmp_path / "f" / "cars"
    cars.mkdir(parents=True)
    (cars / "good.evband").write_bytes((folder / "cars" / "van.evband").read_bytes())
    (cars / "cut.evband").write_bytes((folder / "cars" / "van.evband").read_bytes()[:5000])
    live = stepped({}, fleet={"dir": "f"})
    assert live.service.ids == ["good"]
    (problem,) = live.service.roster.problems
    assert "cut.evband" in problem
    (cars / "good.evband").unlink()
    with pytest.raises(SettingsError, match="no car of this fleet can be read"):
        stepped({}, fleet={"dir": "f"})
