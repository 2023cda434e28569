"""Kernels keep the cores while PyTorch's own operations run on one."""

import pytest
import torch

from evband.network.threads import cores_for_kernels, kernel_threads


def test_kernels_keep_what_pytorch_had():
    had = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert kernel_threads() == 3
        with cores_for_kernels(), cores_for_kernels():
            assert (torch.get_num_threads(), kernel_threads()) == (1, 3)
        with pytest.raises(ValueError, match="broken"), cores_for_kernels():
            raise ValueError("broken")
        assert (torch.get_num_threads(), kernel_threads()) == (3, 3)
    finally:
        torch.set_num_threads(had)
