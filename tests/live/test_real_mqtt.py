"""Through a real broker: traces of feeds to bands as `predict` has them, retained ghosts, discovery, broker away, kill -9."""

import json
import time

import numpy as np
import polars as pl
import pytest

import evband
from drives import small_model
from evband.live.run import DEMO
from evband.model import load
from evband.trips import Trip
from live_real import Broker, Listener, Served, serving, wait_for

pytestmark = pytest.mark.live

MODEL = DEMO / "demo.evband"
SPEED, ELEVATION, AMBIENT = "speed_kmh", "elevation_m", "ambient_temp_c"
FEEDS = {
    "ovms": (
        "ovms/me/KONA",
        {SPEED: "metric/v/p/speed", ELEVATION: "metric/v/p/altitude", AMBIENT: "metric/v/e/temp"},
        1.0,
    ),
    "teslamate": ("teslamate/cars/1", {SPEED: "speed", ELEVATION: "elevation", AMBIENT: "outside_temp"}, 1.0),
    "fleet_telemetry": ("tele/5YJ", {SPEED: "v/VehicleSpeed", AMBIENT: "v/OutsideTemp"}, 1 / 1.609344),
}


@pytest.fixture
def broker(tmp_path):
    one = Broker(tmp_path)
    yield one
    one.stop()


@pytest.fixture(scope="session")
def flat(tmp_path_factory):
    """A model without elevation, which fleet-telemetry does not send."""
    path = tmp_path_factory.mktemp("model") / "flat.evband"
    small_model(features="speed_kmh,acceleration_ms2,ambient_temp_c").save(path)
    return path


def config(broker, *cars, store=False):
    text = f'[mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\n[server]\nrecord = "readings.jsonl"\n'
    if store:
        text += '[store]\npath = "store.sqlite"\n'
    for car in cars:
        car = {"model": str(MODEL), "capacity_kwh": 60} | car
        text += "[[car]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in car.items())
    return text


def recorded(folder):
    """The readings that the service took, as a trip."""
    rows = [json.loads(line) for line in (folder / "readings.jsonl").read_text().splitlines()]
    table = pl.DataFrame(rows, infer_schema_length=None).drop("vehicle_id").rename({"utc": "time_s"})
    times = table["time_s"].to_numpy()
    series = {c: (times, table[c].to_numpy().astype(float)) for c in table.columns if c in (SPEED, ELEVATION, AMBIENT)}
    columns = {c: pl.Series(v).fill_nan(None) for c, (_, v) in series.items()}
    return Trip("x", pl.DataFrame({"time_s": times, **columns}))


@pytest.mark.parametrize("feed", FEEDS)
def test_a_trace_through_the_broker_gives_the_bands_of_predict(broker, tmp_path, drive, feed, flat):
    base, topics, factor = FEEDS[feed]
    model = MODEL if ELEVATION in topics else flat
    car = {"id": "car", "source": feed, "topic": base, "calibrate": False, "model": str(model)}
    sender = Listener(broker.port, "evband/car/state")
    sender.send(f"{base}/{topics[SPEED]}", "99", retain=True)  # a ghost of the last drive
    sender.send(f"{base}/{topics[AMBIENT]}", "13", retain=True)
    with serving(tmp_path, config(broker, car)) as served:
        wait_for(lambda: served.metric('evband_dropped_total{reason="retained"}') >= 1)
        time.sleep(1.5)
        assert served.metric("evband_bands_total") == 0  # no tick from a retained message
        for row in drive.slice(220, 40).iter_rows(named=True):
            for channel, topic in topics.items():
                value = row[channel] * (factor if channel == SPEED else 1.0)
                sender.send(
                    f"{base}/{topic}",
                    f'"{value}"' if feed == "fleet_telemetry" and channel == AMBIENT else str(value),
                    retain=feed != "fleet_telemetry",
                )
            time.sleep(0.25)
        wait_for(lambda: len(sender.of("evband/car/state")) > 8)
        time.sleep(1.5)
        states = [json.loads(state) for state in sender.of("evband/car/state")]
    sender.close()
    found = {round(s["at"], 3): s for s in states if s["mean_kw"] is not None}
    expected = load(model).predict(recorded(tmp_path))
    lower, upper = expected.interval(0.9)
    compared = 0
    for i, at in enumerate(np.round(expected.time_s, 3).tolist()):
        if at in found:
            compared += 1
            state = found[at]
            assert (state["mean_kw"], state["lower_kw"], state["upper_kw"]) == pytest.approx(
                (expected.mean[i], lower[i], upper[i]), abs=1e-3
            )
    assert compared >= 8


def test_discovery_availability_and_birth(broker, tmp_path, drive):
    listener = Listener(broker.port, "evband/#", "homeassistant/#")
    with serving(tmp_path, config(broker, {"id": "kona", "name": "Kona", "source": "json"})) as served:
        topic = "homeassistant/device/evband_kona/config"
        (first,) = wait_for(lambda: listener.of(topic))
        assert json.loads(first)["device"]["name"] == "Kona"
        wait_for(lambda: listener.of("evband/status") == [b"online"])
        assert wait_for(lambda: listener.of("evband/kona/status")) == [b"offline"]
        listener.send("homeassistant/status", "online")
        wait_for(lambda: len(listener.of(topic)) == 2)
        for i, row in enumerate(drive.slice(200, 6).iter_rows(named=True)):
            listener.send(
                "evband/kona/in", json.dumps({"utc": time.time(), "speed": row[SPEED], "power": 5 + i, "soc": 60})
            )
            time.sleep(0.4)
        state = json.loads(wait_for(lambda: listener.of("evband/kona/state"))[-1])
        assert state["id"] == "kona"
        wait_for(lambda: listener.of("evband/kona/status")[-1] == b"online")
        late = Listener(broker.port, "evband/#", "homeassistant/#")
        wait_for(lambda: late.of(topic) and late.of("evband/status"))
        assert {name for name, _, retained in late.heard if retained} == {topic, "evband/status", "evband/kona/status"}
        late.close()
        served.kill()
        wait_for(lambda: listener.of("evband/status")[-1] == b"offline", 60)  # the will
    listener.close()


def test_the_broker_goes_and_comes_back(broker, tmp_path):
    with serving(tmp_path, config(broker, {"id": "kona", "source": "json"})) as served:
        wait_for(lambda: served.metric("evband_mqtt_connected") == 1)
        broker.stop()
        wait_for(lambda: served.metric("evband_mqtt_connected") == 0)
        assert served.get("/healthz")["status"] == "degraded"
        time.sleep(6)
        broker.start()
        back = time.monotonic()
        wait_for(lambda: served.metric("evband_mqtt_connected") == 1, 10)
        assert time.monotonic() - back < 10
        sender = Listener(broker.port, "evband/status")
        wait_for(lambda: b"online" in sender.of("evband/status"))
        sender.send("evband/kona/in", json.dumps({"utc": time.time(), "speed": 40}))
        wait_for(lambda: served.metric("evband_bands_total") >= 1)
        sender.close()


def test_giant_and_broken_messages_are_counted_and_the_next_is_read(broker, tmp_path):
    sender = Listener(broker.port)
    with serving(tmp_path, config(broker, {"id": "kona", "source": "json"})) as served:
        wait_for(lambda: served.metric("evband_mqtt_connected") == 1)
        for payload in (
            b"x" * 10_000_000,
            b"y" * 100_000,
            b"\xff",
            b"{}",
            b"[1]",
            b'{"speed": NaN}',
            b'{"speed": 1e308}',
        ):
            sender.send("evband/kona/in", payload)
        sender.send("evband/nobody/in", b'{"speed": 1}')
        sender.send("evband/kona/in", json.dumps({"utc": time.time(), "speed": 40}))
        wait_for(lambda: served.metric("evband_bands_total") >= 1)
        assert served.metric("evband_mqtt_skipped_total") == 1
        for reason, count in (("too_large", 2), ("unknown_car", 1), ("not_a_number", 2)):
            assert served.metric(f'evband_dropped_total{{reason="{reason}"}}') == count, reason
        assert served.metric('evband_dropped_total{reason="not_readable"}') == 3
        assert served.process.poll() is None
    sender.close()


def test_a_signal_ends_it_in_order(broker, tmp_path, drive):
    """SIGTERM: the last state is kept, and everybody is told at once, not when the broker notices."""
    listener = Listener(broker.port, "evband/#")
    served = Served(tmp_path, config(broker, {"id": "kona", "source": "json"}, store=True))
    wait_for(lambda: listener.of("evband/status") == [b"online"])
    at = time.time()
    for i, row in enumerate(drive.slice(220, 5).iter_rows(named=True)):
        listener.send("evband/kona/in", json.dumps({"utc": at + i / 5, "speed": row[SPEED]}))
    wait_for(lambda: served.metric("evband_messages_total") == 5)
    served.stop()
    assert served.process.returncode == 0
    assert wait_for(lambda: len(listener.of("evband/status")) == 2, 1.0)
    listener.close()


def test_kill_9_and_on(broker, tmp_path, drive):
    """Killed in the middle of a drive: readings with QoS 1 that were not kept yet are sent again, and bands go on as unbroken."""

    def send(car, row, at):
        message = {"utc": at, "car": car, "speed": row[SPEED], "elevation": row[ELEVATION], "ext_temp": row[AMBIENT],
            "power": row["power_kw"] or 1.0}  # fmt: skip
        sender.send(f"evband/{car}/in", json.dumps(message), qos=1)

    sender = Listener(broker.port, "evband/+/state")
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    whole_config = config(broker, {"id": "whole", "source": "json"}, store=True).replace(
        "[server]", 'client_id = "w"\nprefix = "evband"\n[server]'
    )
    whole = Served(tmp_path / "whole", whole_config)
    broken = Served(tmp_path / "broken", config(broker, {"id": "broken", "source": "json"}, store=True))
    try:
        start = float(int(time.time()))
        for i, row in enumerate(drive.slice(220, 75).iter_rows(named=True)):
            for car in ("whole", "broken"):
                send(car, row, start + 1 + i * 1.0)
            if i in (30, 45):
                broken.kill()
                broken.start(wait=False)
            time.sleep(max(start + 1 + i - time.time(), 0.05))
        last = start + 75.0
        wait_for(
            lambda: all(
                json.loads(sender.of(f"evband/{car}/state")[-1])["at"] >= last - 1 for car in ("whole", "broken")
            ),
            60,
        )
        by_time = {
            car: {s["at"]: s for s in map(json.loads, sender.of(f"evband/{car}/state"))} for car in ("whole", "broken")
        }
        shared = sorted(set(by_time["whole"]) & set(by_time["broken"]))[-5:]
        assert len(shared) == 5
        for at in shared:
            for key in ("mean_kw", "lower_kw", "upper_kw"):
                assert by_time["broken"][at][key] == pytest.approx(by_time["whole"][at][key], abs=1e-3)
        (trip,) = broken.get("/api/cars/broken/trips")
        rows = broken.get(f"/api/cars/broken/trips/{trip['id']}")
        times = np.array(rows["time_s"])
        assert np.diff(times).max() <= 1.5  # none is missing
    finally:
        whole.stop()
        broken.stop()
        sender.close()


def test_a_started_car_learns_and_goes_on_after_kill_9(broker, tmp_path):
    """Eighty measured seconds, killed after seventy: the minute it learned is there again and told."""
    evband.start("Renault Zoe 52 kWh").save(tmp_path / "zoe.evband")
    car = {"id": "zoe", "source": "json", "model": str(tmp_path / "zoe.evband")}
    sender, served = Listener(broker.port), Served(tmp_path, config(broker, car, store=True))
    start = float(int(time.time())) - 75.0

    def send(first, last, row):
        for i in range(first, last):
            values = {"utc": start + i, "speed": row[SPEED][i], "power": row["power_kw"][i]}
            sender.send("evband/zoe/in", json.dumps(values), qos=1)

    try:
        row = pl.read_csv(DEMO / "drive.csv").slice(220, 90).fill_null(1.0).to_dict(as_series=False)
        wait_for(lambda: served.metric("evband_mqtt_connected") == 1)
        send(0, 70, row)
        learned = wait_for(lambda: (found := served.get("/api/cars/zoe")["learned"])["minutes"] >= 1.0 and found)
        assert learned["band_wider_pct"] < 0.0
        served.kill()
        send(70, 80, row)
        served.start()
        wait_for(lambda: served.metric("evband_bands_total") >= 5)
        again = wait_for(lambda: (found := served.get("/api/cars/zoe")["learned"])["minutes"] >= 1.25 and found)
        assert again["trips"] == learned["trips"] == 1
    finally:
        served.stop()
        sender.close()
