import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evband.channels import (
    CHANNELS,
    ELECTRICAL,
    FEATURE_SETS,
    VALUES,
    conversion,
    from_unit,
    known_units,
    require,
)
from evband.errors import ChannelError


@given(
    st.sampled_from([(name, unit) for name in ("time_s", *VALUES) for unit in known_units(name)]),
    st.lists(st.floats(-1e6, 1e6), min_size=1),
)
def test_units_are_converted_by_their_scale_and_offset(channel_and_unit, numbers):
    channel, unit = channel_and_unit
    values, (scale, offset) = np.array(numbers), conversion(channel, unit)
    there = (values - offset) / scale
    np.testing.assert_allclose(from_unit(channel, there, unit), values, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize(
    ("channel", "unit", "value", "ours"),
    [
        ("speed_kmh", "mph", 100.0, 160.9344),
        ("speed_kmh", "m/s", 10.0, 36.0),
        ("acceleration_ms2", "g", 1.0, 9.80665),
        ("acceleration_ms2", "m/s2", 2.0, 2.0),
        ("elevation_m", "ft", 1000.0, 304.8),
        ("ambient_temp_c", "F", 212.0, 100.0),
        ("ambient_temp_c", "C", 21.0, 21.0),
        ("motor_torque_nm", "Nm", 5.0, 5.0),
        ("power_kw", "W", 1500.0, 1.5),
        ("distance_km", "mi", 1.0, 1.609344),
    ],
)
def test_known_conversions(channel, unit, value, ours):
    assert from_unit(channel, np.array([value]), unit)[0] == pytest.approx(ours)


def test_unknown_unit_is_an_error_that_lists_the_known():
    with pytest.raises(ChannelError, match=r"furlong.*km/h, .*mph"):
        conversion("speed_kmh", "furlong/fortnight")


def test_feature_sets_hold_no_electrical_channel():
    assert "power_kw" in ELECTRICAL
    for names in FEATURE_SETS.values():
        assert set(names) <= set(VALUES) - ELECTRICAL


def test_every_channel_carries_its_unit_and_limits():
    for channel in CHANNELS.values():
        assert channel.low < channel.high
        assert channel.max_age_s > 0


def test_a_missing_channel_names_what_was_found_and_the_nearest():
    with pytest.raises(ChannelError, match=r"car.csv: there is no speed_kmh .*Speed_kph.*nearest is 'Speed_kph'"):
        require("speed_kmh", ["time", "Speed_kph"], "car.csv")
    require("speed_kmh", ["speed_kmh"], "car.csv")
