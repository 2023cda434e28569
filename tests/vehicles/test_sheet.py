"""Data sheets: what they hold, what cannot be, and how figures of a label or coast-down sharpen them."""

from dataclasses import replace

import pytest

from evband.errors import VehicleError
from evband.vehicles import Sheet
from evband.vehicles.sharpening import epa_kwh_100km, wltp_kwh_100km

PLAIN = {"name": "Car", "kerb_kg": 1500, "cd": [0.25, "maker"], "area_m2": [2.4, "estimate"], "crr": [0.009, "estimate", 0.2]}  # fmt: skip


def test_numbers_have_units_sources_and_uncertainty():
    sheet = Sheet.from_dict(PLAIN)
    assert sheet.mass_kg == 1600
    assert sheet.cda_m2 == pytest.approx(0.6)
    assert sheet.uncertainty("crr") == 0.2
    assert sheet.uncertainty("cda_m2") == pytest.approx(0.078, abs=1e-3)
    assert sheet.uncertainty("mass_kg") == pytest.approx(0.053, abs=1e-3)
    assert sheet.source_of("cda_m2") == "estimate"
    assert sheet.to_dict()["kerb_kg"] == {"value": 1500.0, "unit": "kg", "source": "user", "spread": 0.04}
    assert Sheet.from_dict(sheet.to_dict()).to_dict() == sheet.to_dict()


def test_numbers_of_the_users_own():
    sheet = Sheet.from_dict(PLAIN).with_numbers(mass_kg=1800.0, cda_m2=0.7, crr=None)
    assert (sheet.mass_kg, sheet.load_kg, sheet.cda_m2, sheet.crr) == (1800.0, 300.0, 0.7, 0.009)
    assert sheet.source_of("cda_m2") == "user"
    with pytest.raises(VehicleError, match="not above the kerb mass"):
        sheet.with_numbers(mass_kg=1000.0)
    with pytest.raises(VehicleError, match="wheels is not a number of a sheet"):
        sheet.with_numbers(wheels=4.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kerb_kg": 0}, "kerb_kg is 0 kg; a car has 300 to 3500"),
        ({"cda_m2": 9, "cd": None, "area_m2": None}, "cda_m2 is 9 m2; a car has 0.3 to 1.1"),
        ({"crr": 1}, "crr is 1; a car has 0.004 to 0.02"),
        ({"crr": float("nan")}, "crr is nan"),
        ({"cda_m2": 0.9}, "cd x area_m2 is 0.6"),
        ({"battery_kwh": 5000}, "battery_kwh is 5000 kWh"),
        ({"body": "boat"}, "body is 'boat'"),
        ({"crr": ["soft", "maker"]}, "crr is"),
        ({"crr": [0.01, "a friend"]}, "the source of crr is 'a friend'"),
        ({"crr": [0.01, "maker", 3.0]}, "the spread of crr is 3"),
        ({"kerb": 1500}, "the nearest is kerb_kg"),
        ({"kerb_kg": None}, "kerb_kg is missing"),
        ({"name": ""}, "no name"),
        ({"coast_down_n": [1, 2]}, "three numbers"),
        ({"coast_down_n": [-900, 0, 0.02]}, "not a road load"),
        ({"heat_pump": "yes"}, "write true or false"),
        ({"mass_kg": 1700}, "give kerb_kg and load_kg"),
    ],
)
def test_impossible_sheets(change, says):
    data = {key: value for key, value in {**PLAIN, **change}.items() if value is not None}
    with pytest.raises(VehicleError, match=says):
        Sheet.from_dict(data)


def test_coast_down_sharpens_drag_and_tyres():
    sheet = Sheet.from_dict(PLAIN)
    mass, cda, crr = 1636.0, 0.66, 0.0105
    curve = (crr * mass * 9.81, 0.0, 0.6 * cda / 3.6**2)
    after = replace(sheet, coast_down_n=curve).sharpened()
    assert abs(after.cda_m2 - cda) < 0.35 * abs(sheet.cda_m2 - cda)
    assert abs(after.crr - crr) < 0.35 * abs(sheet.crr - crr)
    assert after.uncertainty("cda_m2") < 0.6 * sheet.uncertainty("cda_m2")
    assert after.uncertainty("crr") < 0.6 * sheet.uncertainty("crr")
    assert after.mass_kg == sheet.mass_kg
    assert after.sharpened() is after  # the figures are used up: they count once


def test_the_two_forms_of_a_coast_down_agree():
    metric = Sheet.from_dict({**PLAIN, "coast_down_n": [150.0, 0.5, 0.03]})
    imperial = Sheet.from_dict({**PLAIN, "coast_down_lbf": [33.721, 0.18090, 0.017468]})
    assert imperial.coast_down_n == pytest.approx(metric.coast_down_n, rel=1e-3)


@pytest.mark.parametrize(("figure", "model"), [("epa_kwh_100km", epa_kwh_100km), ("wltp_kwh_100km", wltp_kwh_100km)])
def test_a_label_moves_drag_and_tyres_a_little(figure, model):
    sheet = Sheet.from_dict(PLAIN)
    usual = model(1636.0, sheet.cda_m2, sheet.crr)
    same = replace(sheet, **{figure: usual}).sharpened()
    assert (same.cda_m2, same.crr) == pytest.approx((sheet.cda_m2, sheet.crr), rel=1e-3)
    assert same.uncertainty("crr") < sheet.uncertainty("crr")
    thirsty = replace(sheet, **{figure: 1.15 * usual}).sharpened()
    assert thirsty.cda_m2 > sheet.cda_m2
    assert thirsty.crr > sheet.crr


@pytest.mark.parametrize(
    "figure", [{"epa_kwh_100km": 1000}, {"wltp_kwh_100km": 0.001}, {"coast_down_n": [15000, 0.5, 0.03]}]
)
def test_a_figure_that_no_drag_and_tyres_explain_is_named(figure):
    with pytest.raises(
        VehicleError, match=r"by its consumption figures or coast-down, CdA is .* correct these figures"
    ):
        Sheet.from_dict({**PLAIN, **figure}).sharpened()
