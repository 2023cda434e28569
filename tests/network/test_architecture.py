"""Where weights lie in theta, and which shapes are refused."""

import pytest
import torch

from evband.network.architecture import Architecture


def test_blocks_fill_theta_without_gap_or_overlap():
    arch = Architecture(inputs=3, road=4, layers=2, hidden=8)
    covered = [i for where in arch.slices.values() for i in range(where.start, where.stop)]
    assert covered == list(range(arch.size))
    assert arch.size == 4 * 8 * (3 + 8 + 1) + 4 * 8 * (8 + 8 + 1) + 2 * 8 + 2 + 1 + 4


def test_named_weights_are_views_of_theta():
    arch = Architecture(inputs=3, road=2, hidden=8)
    theta = torch.zeros(5, arch.size)
    arch.unpack(theta)["road_w"][3] = 7.0
    assert theta[3, arch.slices["road_w"]].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(("head", "outputs", "nu"), [("t", 2, True), ("gaussian", 2, False), ("quantile", 19, False)])
def test_heads_have_their_outputs(head, outputs, nu):
    arch = Architecture(inputs=1, road=0, hidden=8, head=head)
    assert arch.shapes["head_w"] == (outputs, 8)
    assert ("nu_raw" in arch.shapes) == nu
    assert "road_w" not in arch.shapes


@pytest.mark.parametrize(
    "wrong",
    [{"layers": 0}, {"layers": 9}, {"hidden": 7}, {"hidden": 129}, {"head": "cauchy"}, {"nu_min": 2.0}, {"nu": 1.5},
     {"head": "distilled"}],
)  # fmt: skip
def test_shapes_outside_the_limits_are_refused(wrong):
    with pytest.raises(ValueError):
        Architecture(inputs=1, road=1, **wrong)
