"""Discovery as Home Assistant's device form has it, field by field, and every template finds its key in the state object."""

import re

from evband.live import discovery

DEVICE = {"identifiers", "name", "manufacturer", "model", "sw_version"}
SENSOR = {
    "platform", "unique_id", "default_entity_id", "name", "device_class", "unit_of_measurement", "state_class",
    "suggested_display_precision", "expire_after", "value_template", "json_attributes_topic", "entity_category",
}  # fmt: skip
UNITS = {"power": "kW", "distance": "km", "energy": "kWh", "energy_distance": "kWh/100km", "battery": "%"}


def test_the_message_is_a_device():
    found = discovery.device("kona", "Kona")
    assert set(found) == {"device", "origin", "availability", "availability_mode", "state_topic", "qos", "components"}
    assert set(found["device"]) == DEVICE
    assert found["device"]["identifiers"] == ["evband_kona"]
    assert set(found["origin"]) == {"name", "sw_version"}
    assert found["availability"] == [{"topic": "evband/status"}, {"topic": "evband/kona/status"}]
    assert found["availability_mode"] == "all"
    assert found["state_topic"] == "evband/kona/state"
    assert discovery.topic("homeassistant", "kona") == "homeassistant/device/evband_kona/config"


def test_every_component_is_whole_and_its_unit_fits_its_class():
    parts = discovery.device("kona", "Kona")["components"]
    ids = [part["unique_id"] for part in parts.values()]
    assert len(set(ids)) == len(ids)
    assert {"power", "power_low", "range_p50", "trip_energy", "consumption", "arrival", "outside"} <= set(parts)
    for part in parts.values():
        assert set(part) <= SENSOR
        assert "object_id" not in part
        assert part["platform"] in ("sensor", "binary_sensor")
        if part.get("device_class") in UNITS:
            assert part["unit_of_measurement"] == UNITS[part["device_class"]]
        if part.get("device_class") == "energy":
            assert part["state_class"] in ("total", "total_increasing")
        if part.get("device_class") in ("power", "distance"):
            assert part["state_class"] == "measurement"
            assert part["expire_after"] > 0
    assert "device_class" not in parts["arrival"]


def test_every_template_finds_its_key(stepped, drive):
    live = stepped({"kona": {}})
    live.drive("kona", drive.slice(200, 30))
    state = live.car("kona")
    for part in discovery.device("kona", "Kona")["components"].values():
        paths = re.findall(r"value_json\.([a-z0-9_.]+)", part["value_template"])
        assert paths
        for path in paths:
            value = state
            for key in path.split("."):
                assert key in value, path
                value = value[key]
