"""The car that can be read off the road-load path, and the rest of the card."""

import numpy as np
import pytest

from evband.card import AIR_DENSITY, card, degrees_of_freedom, effective_terms, on_the_floor
from evband.errors import ArtifactError
from evband.model import PowerModel
from tiny_car import AUX_KW, DRAG, MASS_T, ROLLING_KN, TINY, drives


@pytest.fixture(scope="module", params=[True, False], ids=["hinges", "no hinges"])
def model(request):
    """Anchored so firmly that the path stays at its least-squares solution."""
    how = {**TINY, "epochs": 2, "hinges": request.param, "temperature": 1e4, "calibrate": False, "early_stop": False}
    fitted = PowerModel(**how).fit(drives(12, seconds=400))
    road = fitted.architecture_.slices["road_w"]
    fitted.theta_[:, road] = fitted.feature_map_.least_squares() * np.array([[0.99], [1.0], [1.01]])
    return fitted


def test_the_car_is_recovered(model):
    found = {t.name: t for t in effective_terms(model)}
    assert found["effective mass"].mean == pytest.approx(1000 * MASS_T, rel=0.05)
    assert found["regained in braking"].mean == pytest.approx(1.0, rel=0.1)
    assert found["rolling resistance"].mean == pytest.approx(1000 * ROLLING_KN, rel=0.25)
    assert found["drag area"].mean == pytest.approx(2000 * DRAG / AIR_DENSITY, rel=0.25)
    assert found["auxiliary power"].mean == pytest.approx(AUX_KW, abs=0.3)


def test_spread_is_over_members(model):
    mass = next(t for t in effective_terms(model) if t.name == "effective mass")
    np.testing.assert_allclose(mass.members / mass.members[1], [0.99, 1.0, 1.01], rtol=1e-4)
    assert mass.spread == pytest.approx(0.01 * np.sqrt(2 / 3) * mass.members[1], rel=1e-3)


def test_with_torque_there_is_no_mass_to_read():
    def torque(rng, n):
        return {"motor_torque_nm": rng.normal(size=n), "ambient_temp_c": rng.uniform(0, 30, n)}

    fitted = PowerModel(**{**TINY, "epochs": 1}).fit(drives(3, seconds=100, extra=torque))
    names = [t.name for t in effective_terms(fitted)]
    assert names == ["auxiliary power", "heating below 18 C", "cooling above 22 C"]


def test_without_a_path_there_is_nothing_to_read():
    fitted = PowerModel(**{**TINY, "epochs": 1, "road_load": False}).fit(drives(3, seconds=100))
    assert effective_terms(fitted) == []
    assert card(fitted)["car"] == {}


def test_nu_on_its_floor_is_counted(model):
    where = model.architecture_.slices["nu_raw"]
    kept = model.theta_[:, where].copy()
    model.theta_[:, where] = [[-9.0], [-9.0], [1.0]]
    assert on_the_floor(model) == 2
    assert degrees_of_freedom(model)[2] > 4
    model.theta_[:, where] = kept


def test_the_card_tells_where_the_model_comes_from(model):
    told = card(model)
    assert told["trained_on"]["trips"] == 12
    assert told["trained_on"]["rows"] == 12 * 400
    assert told["calibration"] == "not asked for"
    assert set(told["ranges"]) == {"speed_kmh", "acceleration_ms2"}
    assert told["nu"]["low"] >= 3


def test_a_damaged_account_is_an_error_of_the_file(model, monkeypatch):
    monkeypatch.setattr(model, "summary_", {"held_out_log_score": "very good"})
    with pytest.raises(ArtifactError, match="damaged"):
        card(model)
