"""The API: the contract's fields, ABRP's POST, exports that `predict` reads; and everything a stranger might try."""

import io
import json
import time

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from evband import read_trips
from evband.live.http import application
from evband.live.run import DEMO
from evband.live.service import Service
from evband.model import load
from live_cars import config

BASE = "http://127.0.0.1:8750"


@pytest.fixture
def served(tmp_path):
    """A service whose engine runs, with a store, and a client of it."""
    made = []

    def make(**server):
        cars = {"kona": {"calibrate": False}, "other": {"token": "tlm-secret"}}
        service = Service(config(tmp_path, cars, store={"path": "s.sqlite"}, server=server))
        service.start()
        made.append(service)
        return TestClient(application(service), base_url=BASE, raise_server_exceptions=False)

    yield make
    for service in made:
        service.stop()


def lines(table, start):
    for i, row in enumerate(table.iter_rows(named=True)):
        yield json.dumps(
            {"utc": start + i, "car": "kona"} | {k: v for k, v in row.items() if k != "time_s" and v is not None}
        )


def wait_for(what, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def send_drive(client, drive, count=90):
    """A stretch of the drive as one body of lines, stamped so that it ends now."""
    start = float(int(time.time())) - count
    body = "\n".join(lines(drive.slice(200, count), start))
    assert client.post("/api/in", content=body).json() == {"taken": count, "errors": []}
    wait_for(lambda: (client.get("/api/cars/kona").json().get("at") or 0) >= start + count - 1)
    return start


def test_lines_in_states_out_and_an_export_that_predict_reads_to_the_same_bands(served, drive):
    client = served()
    send_drive(client, drive)
    cars = {car["id"]: car for car in client.get("/api/cars").json()}
    assert cars["kona"]["state"] == "driving"
    assert cars["other"]["state"] == "waiting"
    (trip,) = wait_for(lambda: [t for t in client.get("/api/cars/kona/trips").json() if t["distance_km"] > 0.1])
    exported = wait_for(lambda: _rows(client, trip["id"], 90))
    csv = client.get(f"/api/cars/kona/trips/{trip['id']}.csv")
    assert csv.headers["content-type"].startswith("text/csv")
    table = pl.read_parquet(io.BytesIO(client.get(f"/api/cars/kona/trips/{trip['id']}.parquet").content))
    assert table.height == len(exported["time_s"])
    again = load(DEMO / "demo.evband").predict(
        read_trips(
            table.drop("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw", "warmup", "outside"), hz=1.0
        )
    )
    np.testing.assert_allclose(table["mean_kw"].to_numpy()[: len(again.mean)], again.mean, atol=1e-3)


def _rows(client, trip, count):
    answer = client.get(f"/api/cars/kona/trips/{trip}")
    return answer.status_code == 200 and len(answer.json()["time_s"]) >= count and answer.json()


def test_abrp_senders_need_only_another_address(served):
    client = served()
    tlm = json.dumps({"utc": int(time.time()), "speed": 50, "power": 8.2, "soc": 61, "ext_temp": 12, "is_charging": 0})
    form = {"token": "tlm-secret", "api_key": "x", "tlm": tlm}
    assert client.post("/1/tlm/send", data=form).json()["status"] == "ok"
    assert client.post("/1/tlm/send", params=form).json()["status"] == "ok"
    assert client.post("/1/tlm/send", json={"token": "kona", "tlm": json.loads(tlm)}).json()["status"] == "ok"
    assert client.post("/1/tlm/send", data=form | {"token": "?"}).status_code == 401
    assert client.post("/1/tlm/send", data=form | {"tlm": "{"}).status_code == 400
    wait_for(lambda: {c["id"]: c for c in client.get("/api/cars").json()}.get("other", {}).get("soc_pct") == 61)


def test_routes_by_columns_points_and_csv(served, drive):
    client = served()
    url = "/api/cars/kona/route"
    columns = {"distance_km": [0, 30], "speed_kmh": [80, 80], "elevation_m": [200, 400]}
    assert client.put(url, json=columns).json()["route_km"] == pytest.approx(30.0, abs=0.2)
    points = [{"distance_km": 0, "speed_kmh": 50}, {"distance_km": 12, "speed_kmh": 50}]
    assert client.put(url, json={"points": points}).status_code == 200
    assert (
        client.put(url, content="distance_km,speed_kmh\n0,60\n9,60\n", headers={"content-type": "text/csv"}).status_code
        == 200
    )
    line = {"type": "LineString", "coordinates": [[9.5, 47.1, 450], [9.52, 47.12, 470], [9.53, 47.15, 460]]}
    assert client.put(url, json=line).json()["route_km"] == pytest.approx(6.1, abs=0.5)
    gpx = '<gpx><trk><trkseg><trkpt lat="47.1" lon="9.5"/><trkpt lat="47.15" lon="9.53"/></trkseg></trk></gpx>'
    assert client.put(url, content=gpx).status_code == 200
    assert client.put(url, content="<!DOCTYPE a [<!ENTITY b 'c'>]><gpx/>").status_code == 422
    for bad in (
        {},
        [],
        [1],
        {"speed_kmh": [1, 2]},
        {"distance_km": [0, 0], "speed_kmh": [1, 1]},
        {"distance_km": ["a", 1], "speed_kmh": [1, 1]},
    ):
        answer = client.put(url, json=bad)
        assert answer.status_code == 422, bad
        assert answer.json()["error"]
    assert client.delete(url).json()["route_km"] is None


def test_websocket_gives_the_last_state_at_once_then_what_changes(served, drive):
    client = served()
    send_drive(client, drive, 60)
    with client.websocket_connect("ws://127.0.0.1:8750/api/live?car=kona") as socket:
        first = socket.receive_json()
        assert [car["id"] for car in first["cars"]] == ["kona"]
        client.post("/api/cars/kona/in", content=json.dumps({"utc": time.time() + 1, "speed": 77}))
        later = [socket.receive_json() for _ in range(2)]
        assert later[-1]["cars"][0]["at"] >= first["cars"][0]["at"]
    with client.websocket_connect("ws://127.0.0.1:8750/api/in") as socket:
        socket.send_text('{"car": "kona", "speed": 3}\nnonsense')
        assert socket.receive_json()["taken"] == 1


def test_deleting_a_car(served, drive):
    client = served()
    send_drive(client, drive, 60)
    assert client.delete("/api/cars/kona").json() == {"deleted": "kona"}
    wait_for(lambda: client.get("/api/cars/kona").json()["state"] == "waiting")
    wait_for(lambda: client.get("/api/cars/kona/trips").json() == [])


def test_page_and_its_headers(served):
    client = served()
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert client.get("/main.js").headers["content-type"].startswith("text/javascript")
    for path in (
        "/../config.py",
        "/..%2fconfig.py",
        "/%2e%2e/%2e%2e/model.py",
        "/nothing.html",
        "/%00",
        "/page/../../config.py",
    ):
        assert client.get(path).status_code in (404, 400), path


def test_metrics_and_health(served):
    client = served()
    client.post("/api/in", content="nonsense")
    text = client.get("/metrics").text
    assert 'evband_dropped_total{reason="not_readable"} 1' in text
    assert all(line.startswith("#") or len(line.rsplit(" ", 1)) == 2 for line in text.splitlines())
    wait_for(lambda: client.get("/healthz").json()["status"] == "ok")


def test_a_token_is_asked_for(served, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123")
    token.chmod(0o600)
    client = served(token_file="token")
    for method, path in (
        ("GET", "/"),
        ("GET", "/api/cars"),
        ("PUT", "/api/cars/kona/route"),
        ("DELETE", "/api/cars/kona"),
        ("POST", "/api/in"),
        ("GET", "/metrics"),
    ):
        assert client.request(method, path).status_code == 401, path
    assert client.get("/healthz").status_code == 200
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://127.0.0.1:8750/api/live"):
        pass
    assert client.get("/api/cars", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/api/cars", headers={"authorization": "Bearer 0123456789abcdef0123"}).status_code == 200
    assert client.post("/1/tlm/send", data={"token": "kona", "tlm": "{}"}).status_code == 401  # an id is not a secret
    assert client.get("/?token=0123456789abcdef0123").status_code == 200  # sets a cookie and comes back to /
    assert client.get("/api/cars").status_code == 200
    with client.websocket_connect("ws://127.0.0.1:8750/api/live") as socket:
        assert "cars" in socket.receive_json()


def test_foreign_hosts_and_origins_are_refused(served):
    client = served()
    assert client.get("/api/cars", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/api/cars", headers={"host": "localhost:8750"}).status_code == 200
    assert client.post("/api/in", content="{}", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/api/in", content="{}", headers={"origin": BASE}).status_code != 403
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("ws://127.0.0.1:8750/api/live", headers={"origin": "https://evil.example"}),
    ):
        pass
    with client.websocket_connect("ws://127.0.0.1:8750/api/live", headers={"origin": BASE}) as socket:
        assert "cars" in socket.receive_json()


def test_sizes_and_rates_have_limits(served):
    client = served(max_body_kb=16, max_requests_per_s=5)
    assert client.post("/api/in", content=b"x" * 20_000).status_code == 413

    def endless():
        for _ in range(40):
            yield b'{"car": "kona", "speed": 1}\n' * 40

    assert client.post("/api/in", content=endless()).status_code == 413
    answers = [client.get("/healthz").status_code for _ in range(100)]
    assert 429 in answers
    assert answers[0] == 200


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"[" * 50_000, b"{}" * 1000, b"null", b'{"car": {}}', b'{"car": "kona", "speed": {"a": 1}}', b'{"car": "kona", "speed": "1e999"}', b'{"car":"kona","utc":"x","speed":1}']
)  # fmt: skip
def test_hostile_bodies_are_answered_with_less_than_500(served, body):
    client = served()
    for method, path in (
        ("POST", "/api/in"),
        ("POST", "/api/cars/kona/in"),
        ("POST", "/1/tlm/send"),
        ("PUT", "/api/cars/kona/route"),
    ):
        for kind in ("application/json", "text/csv", "application/x-www-form-urlencoded"):
            assert client.request(method, path, content=body, headers={"content-type": kind}).status_code < 500
