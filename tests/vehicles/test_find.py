"""The catalogue and how vehicles are found in it."""

import math

import numpy as np
import pytest

from evband.errors import VehicleError
from evband.vehicles import Sheet, catalogue, find, read_sheets, search
from evband.vehicles.sharpening import epa_kwh_100km, wltp_kwh_100km


def test_the_catalogue_is_large_and_each_number_has_a_source():
    sheets = catalogue()
    assert len(sheets) >= 90
    assert {"car", "suv", "van", "bus", "truck"} == {sheet.body for sheet in sheets}
    assert len({(sheet.name, sheet.years) for sheet in sheets}) == len(sheets)
    for sheet in sheets:
        assert sheet.battery_kwh
        assert all(entry["source"] != "user" for entry in sheet.to_dict().values() if isinstance(entry, dict)), sheet.name  # fmt: skip
        assert Sheet.from_dict(sheet.to_dict()).to_dict() == sheet.to_dict()


@pytest.mark.parametrize(("figure", "model"), [("epa_kwh_100km", epa_kwh_100km), ("wltp_kwh_100km", wltp_kwh_100km)])
def test_labels_agree_with_physics_over_the_catalogue(figure, model):
    """The two constants of each label in `sharpening` come from here."""
    off = [
        math.log(getattr(s, figure) / model(s.kerb_kg + 136, s.cda_m2, s.crr))
        for s in catalogue()
        if getattr(s, figure) and s.source_of(figure) != "estimate"
    ]
    assert len(off) > 60
    assert abs(np.mean(off)) < 0.02
    assert np.std(off) < 0.12


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("BMW i3 60 Ah", "BMW i3 60 Ah"),
        ("bmw I3 60ah", "BMW i3 60 Ah"),
        ("i3 60", "BMW i3 60 Ah"),
        ("Peugeot e208 50", "Peugeot e-208 50 kWh"),
        ("leaf 62", "Nissan Leaf e+ 62 kWh"),
        ("RAV4 EV 2002", None),
        ("rav4 ev first", "Toyota RAV4 EV (first generation)"),
        ("rav4 ev 2012", "Toyota RAV4 EV (second generation)"),
        ("model 3 performance", "Tesla Model 3 Performance"),
        ("VW ID.3 58", "Volkswagen ID.3 Pro 58 kWh"),
        ("eactros 600", "Mercedes-Benz eActros 600 (tractor and semitrailer)"),
    ],
)
def test_names_as_people_write_them(name, found):
    if found is None:
        with pytest.raises(VehicleError):
            find(name)
    else:
        assert find(name).name == found


def test_a_model_without_its_variant_is_as_wide_as_its_variants():
    any_model_3 = find("Tesla Model 3")
    variants = search("Tesla Model 3")
    assert any_model_3.name == "Tesla Model 3 (any variant)"
    assert min(s.kerb_kg for s in variants) < any_model_3.kerb_kg < max(s.kerb_kg for s in variants)
    for number in ("kerb_kg", "cda_m2", "crr", "battery_kwh"):
        assert any_model_3.uncertainty(number) > min(s.uncertainty(number) for s in variants)
    assert any_model_3.uncertainty("battery_kwh") > 0.1
    assert "Long Range AWD" in any_model_3.note


def test_ambiguous_and_unknown_names():
    with pytest.raises(VehicleError, match=r"'volvo' is \d+ vehicles: Volvo XC40 .*write which one"):
        find("volvo")
    with pytest.raises(VehicleError, match="no vehicle 'renualt zo' in the catalogue; the nearest are Renault Zoe"):
        find("renualt zo")
    for odd in ("", "   ", "🚗" * 1000, "x" * 100_000):
        with pytest.raises(VehicleError):
            find(odd)


def test_the_base_of_a_sheet_may_be_named_as_any_vehicle(tmp_path):
    """Once the catalogue was searched twice, so that one vehicle seemed to be two."""
    path = tmp_path / "own.toml"
    path.write_text('name = "Ours"\nbase = "zoe 52"\n')
    own, base = read_sheets(path)[0], find("zoe 52")
    assert (own.kerb_kg, own.cd, own.area_m2) == (base.kerb_kg, base.cd, base.area_m2)
    assert own.sharpened().crr == base.sharpened().crr  # by its label


def test_sheets_of_the_users_own(tmp_path):
    path = tmp_path / "sheet.toml"
    path.write_text('name = "Our van"\nbase = "eSprinter"\nload_kg = 900\ncrr = [0.0085, "coast-down", 0.05]\n')
    (own,) = read_sheets(path)
    assert own.mass_kg == find("eSprinter").kerb_kg + 900
    assert own.uncertainty("crr") == 0.05
    assert find("our van", [own]) is own
    path.write_text('[[vehicle]]\nname = "A"\nkerb_kg = 1500\ncda_m2 = 0.6\ncrr = 0.009\n[[vehicle]]\nname = "B"\nbase = "A"\n')  # fmt: skip
    with pytest.raises(VehicleError, match="no vehicle 'A'"):
        read_sheets(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not valid TOML"),
        ('name = "A"\nkerb_kg = 0\ncda_m2 = 0.6\ncrr = 0.009\n', "kerb_kg is 0 kg"),
        ('name = "A"\n[[vehicle]]\nname = "B"\n', "stands beside"),
        ("vehicle = 3\n", r"\[\[vehicle\]\]"),
        ('base = 3\nname = "A"\n', "base is 3"),
    ],
)
def test_bad_files(tmp_path, text, says):
    path = tmp_path / "sheet.toml"
    path.write_text(text)
    with pytest.raises(VehicleError, match=says):
        read_sheets(path)
    with pytest.raises(VehicleError, match="no such file"):
        read_sheets(tmp_path / "nowhere.toml")
