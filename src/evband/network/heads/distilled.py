"""One network in place of an ensemble: a pair of Student-t's around its mean, whose distance is the epistemic part."""

from __future__ import annotations

from typing import Any

from evband.network.heads.base import Head, Numbers, Output
from evband.network.heads.student_t import StudentT


class Distilled(StudentT):
    """Mean, scale and epistemic deviation: two components at ``mean -+ epistemic``. Made by `evband.export.collapse`."""

    name = "distilled"
    label = "a Student-t"
    kinds = ()
    components = 2
    fixed_nu = True
    runs_as = "t"
    extra = ()

    def outputs(self, levels: tuple[float, ...]) -> int:
        return 3

    def apply(self, numbers: Numbers) -> Output:
        one, epistemic = Head.apply(self, numbers), numbers.output(2)
        return Output(numbers.join([one.mu - epistemic, one.mu + epistemic]), numbers.join([one.scale] * 2), None, None)

    def degrees_of_freedom(self, weights: dict[str, Any], nu_min: float, nu: float | None, numbers: Any) -> Any:
        one = numbers.full(weights["head_b"][:, 0], nu)
        return numbers.join([one, one])

    def as_members(self, weights: dict[str, Any]) -> dict[str, Any]:
        """Two members of the Student-t head, the same to the last digit but for rounding.

        The epistemic part is linear in the hidden state, so ``mean -+ epistemic`` are two linear heads on the same LSTM;
        whatever runs a Student-t ensemble (ticks, ONNX) can then run it.
        """
        import numpy as np

        pair = {name: np.concatenate([value, value]) for name, value in weights.items()}
        for name in ("head_w", "head_b"):
            location, scale, epistemic = np.moveaxis(weights[name], 1, 0)
            pair[name] = np.concatenate([np.stack([location + side * epistemic, scale], 1) for side in (-1, 1)])
        return pair | {"nu_raw": np.zeros(len(pair["head_b"]), np.float32)}  # not used: nu is fixed
