"""Locked masks."""

import numpy as np

from evband.network.architecture import Architecture
from evband.network.dropout import draw_masks
from evband.network.streams import DROPOUT, stream

ARCH = Architecture(inputs=3, road=0, layers=2, hidden=16)


def generators(count):
    return [stream(0, m, DROPOUT, 0) for m in range(count)]


def test_masks_keep_their_share_and_the_mean():
    masks = draw_masks(ARCH, 0.25, 500, generators(2))
    for mask in (*masks.inputs, *masks.recurrent, masks.output):
        np.testing.assert_allclose(np.unique(mask), [0.0, 1 / 0.75], rtol=1e-6)
        assert abs((mask > 0).mean() - 0.75) < 0.03


def test_masks_have_the_widths_of_what_they_cover():
    masks = draw_masks(ARCH, 0.1, 7, generators(4))
    assert [tuple(m.shape) for m in masks.inputs] == [(4, 7, 3), (4, 7, 16)]
    assert [tuple(m.shape) for m in masks.recurrent] == [(4, 7, 16)] * 2
    assert tuple(masks.output.shape) == (4, 7, 16)


def test_a_member_draws_the_same_masks_beside_others():
    alone, beside = draw_masks(ARCH, 0.5, 5, generators(1)), draw_masks(ARCH, 0.5, 5, generators(3))
    np.testing.assert_array_equal(alone.output[0], beside.output[0])
    np.testing.assert_array_equal(alone.inputs[1][0], beside.inputs[1][0])
    assert (beside.output[0] != beside.output[1]).any()
