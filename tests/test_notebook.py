"""What a notebook shows and what scikit-learn's tools find: pictures, tables, scores, and errors before fitting."""

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
