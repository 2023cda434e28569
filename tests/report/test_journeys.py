"""The report's section on energy and range: every trip with its band, the reach over speed, and words where there is neither."""

import re
from dataclasses import replace

import numpy as np
import pytest

from drives import small_model
from evband.report import journeys
from evband.report.chapter import Chapter


def test_energy_of_every_trip_and_reach_over_speed(chapter):
    html = journeys.energy_and_range(chapter, 0)
    found = chapter.model.energy(chapter.trips, chapter.level)
    assert html.count("<tr>") == 1 + len(found)
    for band in found:
        lower, upper = band.interval(chapter.level)
        assert f"{band.mean_kwh:.2f} ({lower:.2f} to {upper:.2f})" in html
    total = sum(band.energy_kwh for band in found)
    assert f"All together: {total:.1f} kWh measured" in html
    assert len(re.findall('class="spread"', html)) == len(found)


def test_reach_is_the_charge_over_the_energy_of_a_level_way(chapter):
    reach = journeys.reach_over_speed(chapter)
    assert (reach.low < reach.middle).all()
    assert (reach.middle < reach.high).all()
    assert reach.speed_kmh[-1] <= chapter.model.feature_map_.high[0] + 0.5
    way = journeys.flat_profile(journeys.WAY_KM, float(reach.speed_kmh[2]))
    plan = chapter.model.range(100.0, journeys.CHARGE_KWH, way, reserve_soc=0.0, ambient_c=reach.ambient_c)
    assert reach.middle[2] == pytest.approx(journeys.CHARGE_KWH * journeys.WAY_KM / plan.energy_kwh(0.5))
    assert reach.ambient_c == pytest.approx(
        np.median(np.concatenate([trip.table["ambient_temp_c"].to_numpy() for trip in chapter.trips]))
    )


def test_a_model_that_no_route_can_feed_says_so(chapter):
    torque = small_model(features="torque", members=2)
    with pytest.raises(Exception, match="does not supply motor_torque_nm"):
        journeys.reach_over_speed(replace(chapter, model=torque))


def test_without_bands_of_energy_there_is_a_sentence(chapter):
    bare = small_model(members=2, calibrate=False)
    html = journeys.energy_and_range(Chapter(bare, chapter.bands, chapter.scores, chapter.trips), 0)
    assert "evband calibrate makes them, from 9 new trips" in html
