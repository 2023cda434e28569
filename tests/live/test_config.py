"""The configuration: what is understood, and one sentence for every mistake."""

from pathlib import Path

import pytest

from evband.errors import SettingsError
from evband.live.config import parse_config, read_config
from evband.live.run import configuration, demo_config

CAR = {"id": "kona", "model": "kona.evband"}
MQTT = {"host": "127.0.0.1"}


def test_the_contract_is_understood(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        '[mqtt]\nhost = "127.0.0.1"\n[[car]]\nid = "kona"\nmodel = "kona.evband"\nsource = "ovms"\ntopic = "ovms/me/KONA"\ncapacity_kwh = 64\n'
    )
    config = read_config(path)
    assert config.cars[0].capacity_kwh == 64.0
    assert config.mqtt.port == 1883
    assert config.server.host == "127.0.0.1"
    assert config.server.port == 8750
    assert config.path("kona.evband") == tmp_path / "kona.evband"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "names no car"),
        ({"car": {"id": "x"}}, r"\[\[car\]\]"),
        ({"car": [{"id": "x"}]}, "lacks model"),
        ({"car": [CAR | {"sauce": "ovms"}]}, "did you mean source"),
        ({"car": [CAR | {"source": "ovns"}]}, "not a source"),
        ({"car": [CAR | {"source": "ovms", "topic": "a"}]}, r"add an \[mqtt\] section"),
        ({"car": [CAR | {"source": "ovms"}], "mqtt": MQTT}, "needs topic"),
        ({"car": [CAR | {"source": "ovms", "topic": "a/#"}], "mqtt": MQTT}, "plain"),
        ({"car": [CAR | {"id": "../etc"}]}, "letters, digits"),
        ({"car": [CAR, CAR]}, "two cars"),
        ({"car": [CAR | {"capacity_kwh": "64"}]}, "must be a number"),
        ({"car": [CAR | {"capacity_kwh": -3}]}, "from 0 on"),
        ({"car": [CAR | {"capacity_kwh": True}]}, "must be a number"),
        ({"car": [CAR | {"reserve_soc": 100}]}, "0 to 99"),
        ({"car": [CAR], "server": {"host": "0.0.0.0"}}, "token_file"),
        ({"car": [CAR], "server": {"port": 99999}}, "65535"),
        ({"car": [CAR], "server": {"cert": "x"}}, "cert and key"),
        ({"car": [CAR], "mqtt": {"hots": "x"}}, "did you mean host"),
        ({"car": [CAR], "mqtt": []}, "must be a table"),
        ({"carr": [CAR]}, "did you mean car"),
    ],
)
def test_every_mistake_is_one_sentence(table, words):
    with pytest.raises(SettingsError, match=words) as caught:
        parse_config(table)
    assert str(caught.value).endswith((".", "?"))
    assert "\n" not in str(caught.value)


def test_a_token_must_be_secret_and_long(tmp_path):
    token = tmp_path / "token"
    table = {"car": [CAR], "server": {"host": "0.0.0.0", "token_file": "token"}}
    with pytest.raises(SettingsError, match="cannot be read"):
        parse_config(table, folder=tmp_path)
    token.write_text("secret-secret-secret")
    token.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        parse_config(table, folder=tmp_path)
    token.chmod(0o600)
    parse_config(table, folder=tmp_path)
    token.write_text("short")
    with pytest.raises(SettingsError, match="16 or more"):
        parse_config(table, folder=tmp_path)


def test_the_demo_needs_no_configuration():
    config = configuration(None, True, None, 8123)
    assert config.server.port == 8123
    assert Path(config.cars[0].model).is_file()
    assert Path(demo_config().cars[0].file).is_file()
    with pytest.raises(SettingsError, match="--demo"):
        configuration(None, False, None, None)
    with pytest.raises(SettingsError, match="token_file"):
        configuration(None, True, "0.0.0.0", None)
