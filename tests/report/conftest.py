"""A small fitted model on made-up drives, as the report's chapter."""

import pytest

from drives import made_up_trips, small_model
from evband.report.chapter import Chapter
from evband.scores import evaluate
from evband.trips import Trips


@pytest.fixture(scope="session")
def chapter():
    trips = Trips(made_up_trips(14)[12:]).on_grid(1.0)
    model = small_model()
    bands = model.predict(trips)
    return Chapter(model, bands, evaluate(bands, trips), trips)
