"""The Student-t of energy against `scipy.special`."""

import math

import numpy as np
import pytest
from scipy import special

from evband.energy.student import stdtr, stdtrit


@pytest.mark.parametrize("dof", [2.01, 3.0, 4.7, 30.0, 400.0])
def test_is_that_of_scipy_in_the_centre_and_in_the_tails(dof: float) -> None:
    far = np.logspace(-9, 6, 200)
    t = np.concatenate([-far, [0.0], far, [-np.inf, np.inf]])
    np.testing.assert_allclose(stdtr(dof, t), special.stdtr(dof, t), rtol=1e-11, atol=1e-300)
    for p in (1e-6, 0.05, 0.3, 0.4999, 0.5, 0.6, 0.95, 0.9999):
        assert stdtrit(dof, p) == pytest.approx(special.stdtrit(dof, p), rel=1e-11, abs=1e-15)


def test_keeps_shapes_and_says_what_has_no_quantile() -> None:
    assert stdtr(4.0, np.zeros((2, 3))).shape == (2, 3)
    assert np.isnan(stdtr(4.0, [np.nan, 0.0])).tolist() == [True, False]
    assert (stdtrit(4.0, 0.0), stdtrit(4.0, 1.0)) == (-math.inf, math.inf)
    assert math.isnan(stdtrit(4.0, math.nan))
