"""Footers of Parquet files that would keep a reader busy for ever."""

import pytest

from evband.logs.pages import checked_rows


@pytest.mark.parametrize(
    "footer",
    [
        b"\x19\xf7" + b"\xff" * 8 + b"\x7f\x00",  # a list of 2^63 doubles
        b"\x16" + b"\xff" * 100_000 + b"\x01\x00",  # an integer of 700 000 bits
    ],
)
def test_a_footer_promises_more_than_it_holds(footer):
    with pytest.raises(ValueError, match=r"damaged|over 64 bits"):
        checked_rows(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
