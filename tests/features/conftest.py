from __future__ import annotations

import pytest

from evband.trips import Trip
from hilly_drives import drive


@pytest.fixture
def trips() -> list[Trip]:
    return [drive(f"t{i}", seed=i) for i in range(4)]
