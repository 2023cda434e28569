# mypy: disable-error-code="no-untyped-def"
"""The linear maps after the LSTM for few outputs: each row's numbers depend on that row alone, not on who shares its batch."""

from __future__ import annotations

from evband.compiled import compiled


@compiled(error_model="numpy", boundscheck=False, fastmath={"contract", "reassoc", "nsz"})
def add_product(a, w, out):
    """out[outputs, rows] += w[outputs, k] a[rows, k]'."""
    for row in range(a.shape[0]):
        for j in range(w.shape[0]):
            total = out[j, row]
            for k in range(a.shape[1]):
                total += w[j, k] * a[row, k]
            out[j, row] = total
