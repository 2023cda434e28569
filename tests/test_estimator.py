"""Settings as scikit-learn expects them, and no scikit-learn behind them until it asks."""

import subprocess
import sys

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from evband.estimator import Estimator


class Car(Estimator):
    def __init__(self, wheels: int = 4, trailer: Estimator | None = None):
        self.wheels = wheels
        self.trailer = trailer


class Oracle(BaseEstimator):
    def __init__(self, wheels: int = 4, trailer: Estimator | None = None):
        self.wheels = wheels
        self.trailer = trailer


def test_settings_are_scikit_learns():
    mine, theirs = (kind(3, kind(2)) for kind in (Car, Oracle))
    assert mine.get_params().keys() == theirs.get_params().keys()
    assert mine.get_params(deep=False) == {"wheels": 3, "trailer": mine.trailer}
    assert mine.set_params(wheels=6, trailer__wheels=1) is mine
    assert (mine.wheels, mine.trailer.wheels) == (6, 1)
    with pytest.raises(ValueError, match="Car has no setting 'doors'; it has wheels, trailer"):
        mine.set_params(doors=4)


def test_clones_have_the_settings_and_nothing_learned():
    fitted = Car(3, Car(2))
    fitted.speed_ = 88.0
    copy = clone(fitted)
    assert repr(copy) == repr(fitted) == "Car(wheels=3, trailer=Car(wheels=2))"
    assert not hasattr(copy, "speed_")
    assert copy.trailer is not fitted.trailer


def test_scikit_learn_may_ask_for_tags():
    assert get_tags(Car()) == get_tags(Oracle())


def test_a_model_loads_without_scikit_learn():
    code = "import evband.model, evband.logs.reading, sys; print([m for m in ('sklearn', 'pandas', 'scipy.stats', 'matplotlib') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
