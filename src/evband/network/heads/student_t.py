"""A Student-t with a location and a scale per row and one learned number of degrees of freedom per member."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from evband.errors import installed
from evband.network.heads.base import Head, Output


class StudentT(Head):
    """Heavy tails, as the errors of power have them."""

    name = "t"
    label = "a Student-t"
    kinds: ClassVar[tuple[str, ...]] = ("anchor", "dropout", "ensemble")
    extra: ClassVar[tuple[str, ...]] = ("nu_raw",)

    def degrees_of_freedom(self, weights: dict[str, Any], nu_min: float, nu: float | None, numbers: Any) -> Any:
        """``nu_min + softplus(nu_raw)``, or the fixed value."""
        if nu is not None:
            return numbers.full(weights["nu_raw"], nu)
        return nu_min + numbers.softplus(weights["nu_raw"])

    def loss(self, out: Output, y: Any, levels: tuple[float, ...]) -> Any:
        """Negative log likelihood with all constants (the paper's eq. 3):

        log s + log(nu pi)/2 + lgamma(nu/2) - lgamma((nu+1)/2) + (nu+1)/2 log(1 + z^2/nu),  z = (y - mu)/s
        """
        import torch

        if y.is_cuda and y.dtype == torch.float32 and installed("triton"):
            from evband.network.kernels.student_t import student_t_nll

            return student_t_nll(out.mu, out.scale, out.nu, y.expand_as(out.mu))
        z = (y - out.mu) / out.scale
        nu = out.nu.view(-1, *[1] * (y.dim() - 1))
        constant = 0.5 * (nu * math.pi).log() + torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2)
        return out.scale.log() + constant + (nu + 1) / 2 * torch.log1p(z.square() / nu)
