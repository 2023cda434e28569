"""What a notebook shows and what scikit-learn's tools find: pictures, tables, scores, and errors before fitting."""

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from evband import PowerModel, Trips
from evband.errors import NotFittedError
from tiny_car import drives

mpl.use("agg")
QUICK = {"members": 2, "epochs": 1, "hidden": 8, "window": 32, "burn_in": 8, "device": "cpu"}


@pytest.fixture(scope="module")
def fitted():
    return PowerModel(**QUICK).fit(drives(6, seconds=150))


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib.pyplot import close

    close("all")


def test_bands_are_drawn_trip_by_trip_and_summed_up(fitted):
    trips = drives(2, seconds=120)
    bands = fitted.predict(trips)
    axes = bands.plot(trips[1].trip_id)
    assert axes.get_title() == trips[1].trip_id
    assert [line.get_label() for line in axes.lines] == ["mean", "measured"]
    assert np.array_equal(axes.lines[0].get_ydata(), bands.mean[bands.trip_id == trips[1].trip_id])
    html = bands._repr_html_()
    assert html.count("<tr>") == 3
    assert bands.plot(axes=axes) is axes
    with pytest.raises(Exception, match="no trip 'other' in these bands"):
        bands.plot("other")


def test_energy_is_drawn_and_tabulated(fitted):
    energies = fitted.energy(drives(3, seconds=120))
    axes = energies.plot()
    assert axes.lines[0].get_ydata().tolist() == [band.mean_kwh for band in energies]
    assert energies._repr_html_().count("<tr>") == 4


def test_range_is_drawn_and_tabulated():
    from evband import start
    from evband.routes import route_source

    plan = start("Renault Zoe 52 kWh").range(80, 52, route_source([], None, 20.0, 40.0, None))
    axes = plan.plot()
    assert axes.lines[0].get_ydata()[0] == 80
    assert "arrives at all" in plan._repr_html_()
    assert repr(plan).startswith("Range(20 km from 80 %: reaches ")


def test_model_shows_its_settings_and_whether_it_is_fitted(fitted):
    assert "PowerModel, not fitted" in PowerModel(members=3)._repr_html_()
    html = fitted._repr_html_()
    assert "PowerModel, fitted" in html
    assert "not calibrated" in html


def test_an_unfitted_model_says_so():
    model = PowerModel()
    for ask in (lambda: model.predict(drives(1)), lambda: model.energy(drives(1)), lambda: model.score(drives(1))):
        with pytest.raises(
            NotFittedError, match=r"This PowerModel is not fitted .*; call fit, or load a fitted model\."
        ):
            ask()
    assert not hasattr(model, "theta_")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing


def test_score_is_minus_crps_and_cross_validates(fitted):
    from sklearn.model_selection import cross_val_score

    from evband import evaluate

    trips = drives(6, seconds=150)
    assert fitted.score(trips) == -evaluate(fitted.predict(trips))["crps_kw"]
    scores = cross_val_score(PowerModel(**QUICK), Trips(trips), cv=3)
    assert scores.shape == (3,)
    assert (scores < 0).all()


def test_settings_are_searched_over_whole_trips():
    from sklearn.model_selection import GridSearchCV

    trips = drives(4, seconds=120)
    search = GridSearchCV(PowerModel(**QUICK), {"hidden": [8, 16]}, cv=2).fit(trips)
    assert search.best_params_["hidden"] in (8, 16)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.summary_["trips"] == 4


def test_a_fit_in_a_notebook_shows_a_bar_under_its_cell(monkeypatch):
    shown = []
    shell = type("ZMQInteractiveShell", (), {})()
    handle = SimpleNamespace(update=shown.append)
    page = SimpleNamespace(HTML=str, display=lambda what, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=page))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    PowerModel(**{**QUICK, "epochs": 2}).fit(drives(2, seconds=120))
    assert '<progress value="2" max="2"></progress> epoch 2 of 2' in shown[-1]


def test_without_a_notebook_there_is_no_bar(monkeypatch):
    from evband.estimator import notebook_progress

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert notebook_progress() is None
