"""Presets, methods, and settings that are refused."""

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from evband.errors import SettingsError
from evband.model import PowerModel
from evband.settings import ABOUT, DEFAULTS, METHODS, PRESETS, Arguments, Settings, described, resolve


def test_the_papers_preset_is_what_the_paper_says():
    s = resolve("paper")
    assert (s.layers, s.hidden, s.members, s.epochs, s.rate, s.schedule) == (4, 32, 30, 300, 1e-3, "constant")
    assert (s.scaling, s.prior, s.prior_variance, s.prior_scale) == ("minmax", "paper", 0.01, "posterior")
    assert [s.road_load, s.hinges, s.calibrate, s.early_stop] == [False] * 4
    assert s.beta == 0
    assert s.trip_effect == 0
    assert s.architecture(2, 9).road == 0


def test_the_default_preset_has_the_road_load_path_and_calibration():
    s = resolve("default")
    assert s.road_load
    assert s.hinges
    assert s.calibrate
    assert s.early_stop
    assert (s.prior, s.schedule, s.nu_min, s.prior_scale) == ("fan_in", "one_cycle", 3.0, "posterior")
    assert s.architecture(2, 9).road == 9


@pytest.mark.parametrize("method", [m for m in METHODS if m != "distilled"])
@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_method_works_with_every_preset(method, preset):
    s = resolve(preset, method=method)
    assert s.architecture(3, 5).head == method.split("-")[0]
    assert s.dropout_rate == (0.1 if method.endswith("dropout") else 0.0)


def test_as_published_quantiles_are_an_option_and_never_the_default():
    assert len(resolve("paper", method="quantile-anchor").architecture(1, 0).levels) == 19
    assert resolve("paper", method="quantile-anchor", as_published=True).architecture(1, 0).levels == (0.1, 0.5, 0.9)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"method": "magic"}, "method"),
        ({"members": 0}, "members"),
        ({"members": 2.5}, "whole number"),
        ({"hz": 0.0}, "hz"),
        ({"hz": float("nan")}, "finite"),
        ({"epochs": 0}, "epochs"),
        ({"epochs": "many"}, "epochs"),
        ({"hinges": 1}, "hinges"),
        ({"hidden": 1000}, "hidden"),
        ({"layers": 9}, "layers"),
        ({"nu_min": 2.0}, "nu_min"),
        ({"burn_in": 500}, "burn_in"),
        ({"seed": -1}, "seed"),
        ({"prior": "flat"}, "prior"),
        ({"rate": 0.0}, "rate"),
        ({"temperature": -1.0}, "temperature"),
        ({"trip_effect": 1.0}, "trip_effect"),
        ({"trip_effect": -0.1}, "trip_effect"),
        ({"resample": "rows"}, "resample"),
    ],
)
def test_what_cannot_be_is_one_sentence(wrong, says):
    with pytest.raises(SettingsError, match=says):
        resolve("default", **wrong)


def test_an_unknown_preset_names_the_known():
    with pytest.raises(SettingsError, match="default, paper"):
        resolve("fancy")


# One definition for all


def test_type_checkers_know_the_settings_and_nothing_else():
    known = get_type_hints(Arguments, localns={"PowerModel": object})
    assert {*known, "method"} == set(DEFAULTS)
    for f in fields(Settings):
        wanted = "str | None" if f.name == "scaling" else str(f.type)
        if f.name not in ("prior", "method"):
            assert Arguments.__annotations__[f.name].__forward_arg__.removesuffix(" | None") == wanted.removesuffix(
                " | None"
            )


def test_every_setting_is_described():
    for name, about in ABOUT.items():
        assert about.what, name
        assert about.when, name
    assert set(ABOUT) == set(DEFAULTS) == set(inspect.signature(PowerModel).parameters)


def test_the_page_of_settings_is_what_they_are():
    """`python tools/write_settings.py` writes it."""
    text = (Path(__file__).parents[1] / "docs" / "reference" / "settings.md").read_text()
    assert text.splitlines()[-len(described()) :] == described()
    assert max(map(len, text.splitlines())) < 120


def test_settings_need_neither_torch_nor_numpy():
    code = "import evband.settings, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_an_argument_that_is_none_of_the_settings_is_refused():
    with pytest.raises(TypeError, match="magic"):
        PowerModel(magic=1)
    with pytest.raises(SettingsError, match="device"):
        PowerModel(device="gpu").check()
