"""Everything a feed does wrong, through a real broker: no crash, every drop counted by reason and car, and shown on the page."""

import json
import time
from contextlib import suppress

import pytest
from playwright.sync_api import sync_playwright

from evband.live.run import DEMO
from live_real import Broker, Listener, serving, wait_for

pytestmark = pytest.mark.live

GARBLED = [
    b"\xff\xfe",
    b"{",
    b"[]",
    b'"text"',
    b"12",
    b"null",
    b"{}",
    b'{"unknown": 1}',
    b"[" * 5000,
    b'{"speed": null}',
]
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e308", "1e999", '"fast"', "[50]", '{"kmh": 50}', "true"]
BEYOND = {"speed": 900.0, "soc": -40.0, "ext_temp": 500.0, "elevation": 1e6, "power": 1e7}
CARS = ("garbled", "numbers", "beyond", "clock", "order", "double", "unit", "flood")


def config(broker):
    cars = [f'[[car]]\nid = "{name}"\nmodel = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\n' for name in CARS]
    ovms = f'[[car]]\nid = "ghost"\nsource = "ovms"\ntopic = "ovms/me/G"\nmodel = "{DEMO / "demo.evband"}"\n'
    return f"[mqtt]\nport = {broker.port}\n" + "".join(cars) + ovms


@pytest.fixture
def parts(tmp_path):
    broker = Broker(tmp_path)
    sender = Listener(broker.port, "evband/+/state")
    for metric, value in (("p/speed", 88), ("b/power", 20), ("b/soc", 61)):
        sender.send(f"ovms/me/G/metric/v/{metric}", str(value), retain=True)
    with serving(tmp_path, config(broker)) as served:
        wait_for(lambda: served.metric("evband_mqtt_connected") == 1)
        yield broker, sender, served
    sender.close()
    broker.stop()


def feed(sender, car, at=None, raw=None, **values):
    message = raw if raw is not None else json.dumps(({} if at is None else {"utc": at}) | values)
    sender.send(f"evband/{car}/in", message)


def drops(served, car):
    return served.get(f"/api/cars/{car}").get("drops", {})


def hostile(sender, now):
    """All of it; what each car's drops must be."""
    for raw in GARBLED:
        feed(sender, "garbled", raw=raw)
    feed(sender, "garbled", raw=b"x" * 70_000)
    feed(sender, "garbled", raw=b"y" * 10_000_000)
    for value in NO_NUMBERS:
        feed(sender, "numbers", raw=f'{{"utc": {now}, "speed": {value}, "soc": 55}}')
    for name, value in BEYOND.items():
        feed(sender, "beyond", now, **{name: value})
    for clock in (0.0, 3600.0, 2_145_916_800.0, 100.0, 4e9):
        feed(sender, "clock", clock, speed=50.0)
    for second in (0, 1, 2, 3, 4, 4, 4, 1, 2):
        feed(sender, "order", now - 6 + second, speed=50.0)
    for second in range(12):
        feed(sender, "double", now - 12 + second, speed=120.0 if second % 2 else 20.0)
    for _ in range(300):
        feed(sender, "flood", now, speed=30.0)
    feed(sender, "nobody", now, speed=30.0)
    return {
        "garbled": {"not_readable": len(GARBLED), "too_large": 2},
        "numbers": {"not_a_number": len(NO_NUMBERS), "duplicate": len(NO_NUMBERS) - 1},  # one instant for all
        "beyond": {"out_of_limits": len(BEYOND)},
        "clock": {"clock": 5},
        "order": {"duplicate": 2, "late": 2},
        "ghost": {"retained": 2},
    }


def test_a_hostile_feed_is_counted_and_survived(parts, tmp_path):
    broker, sender, served = parts
    expected = hostile(sender, float(int(time.time())))
    with suppress(AssertionError):
        wait_for(lambda: {car: drops(served, car) for car in expected} == expected, 20)
    assert {car: drops(served, car) for car in expected} == expected
    wait_for(lambda: drops(served, "double").get("jump", 0) >= 5)
    wait_for(lambda: drops(served, "flood").get("too_fast", 0) + drops(served, "flood").get("duplicate", 0) >= 290)
    total = {reason: 0 for reason in drops(served, "flood")} | {"unknown_car": 1}
    for car in (*CARS, "ghost"):
        for reason, count in drops(served, car).items():
            total[reason] = total.get(reason, 0) + count
    for reason, count in total.items():  # the metrics say what the cars say
        assert served.metric(f'evband_dropped_total{{reason="{reason}"}}') == count, reason
    assert served.get("/api/cars/ghost")["mean_kw"] is None  # stored values are no drive
    wait_for(lambda: served.get("/api/cars/ghost")["soc_pct"] == 61.0, 25)
    assert "two cars" in served.get("/api/cars/double")["degraded"]
    broker.stop()
    wait_for(lambda: "broker is not there" in " ".join(served.get("/healthz")["problems"]))
    broker.start()
    wait_for(lambda: served.metric("evband_mqtt_connected") == 1, 15)
    now, after = float(int(time.time())), Listener(broker.port)
    for car in (*CARS[:5], "flood"):  # whatever came before, a sound reading is a band again
        for second in range(3):
            feed(after, car, now + second, speed=50.0)
    after.close()
    wait_for(lambda: all(served.get(f"/api/cars/{car}")["mean_kw"] is not None for car in (*CARS[:5], "flood")), 40)
    assert served.process.poll() is None
    assert served.get("/healthz")["status"] == "ok"
    shown(served)


def test_a_car_that_changes_its_unit_is_noticed(parts):
    """kW for a while, then W: nothing of that is taken for kW, and it is said."""
    _, sender, served = parts
    start = float(int(time.time())) - 100.0
    for second in range(100):
        speed = 60.0 + 15.0 * (second % 20 < 10)
        feed(sender, "unit", start + second, speed=speed, power=12.0 if second < 60 else 12_000.0)
        time.sleep(0.02)
    wait_for(lambda: drops(served, "unit").get("out_of_limits", 0) >= 10)
    wait_for(lambda: "unit" in (served.get("/api/cars/unit")["degraded"] or ""))
    power = served.get("/api/cars/unit")["power_kw"]
    assert power is None or power < 100.0


def shown(served):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{served.url}/#car=order")
        wait_for(lambda: "2 duplicate" in page.text_content("#source"), 20)
        browser.close()
