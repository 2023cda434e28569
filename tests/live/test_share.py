"""Several processes share the cars of one configuration: each car in one of them, nothing else in common."""

import pytest

from evband.errors import SettingsError
from evband.live.config import parse_config
from evband.live.share import share

CARS = [{"id": f"c{i}", "model": "m.evband"} for i in range(7)]


def test_every_car_is_in_one_process_with_a_client_port_and_store_of_its_own():
    whole = parse_config({"car": CARS, "mqtt": {}, "store": {"path": "data/fleet.sqlite"}})
    parts = [share(whole, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(car.id for part in parts for car in part.cars) == [car.id for car in whole.cars]
    assert {part.mqtt.client_id for part in parts} == {"evband-1", "evband-2", "evband-3"}
    assert {part.mqtt.status for part in parts} == {"status/1", "status/2", "status/3"}
    assert [part.server.port for part in parts] == [8750, 8751, 8752]
    assert {part.store.path for part in parts} == {f"data/fleet-{i}.sqlite" for i in (1, 2, 3)}


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/100", "1/3/5"])
def test_a_wrong_part_is_one_sentence(part):
    with pytest.raises(SettingsError, match="--part"):
        share(parse_config({"car": CARS}), part)
