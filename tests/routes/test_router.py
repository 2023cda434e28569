"""Asking a router: small servers of the two kinds on this machine, silence, refusals, and points in the sea."""

import socket
import time
from contextlib import suppress
from threading import Thread

import numpy as np
import pytest

from evband.errors import LogError, SettingsError
from evband.routes import read_route, route_source, router
from evband.routes.router import ask, parse_point
from router_answers import LAT, LON, encoded, osrm, server, valhalla

A, B = (47.0, 9.5), (47.04, 9.5)


LINE = {"type": "LineString", "coordinates": np.stack([LON, LAT], 1).tolist()}


def test_osrm_and_valhalla_are_told_apart():
    with server({"/route/v1/driving/9.5": osrm(geometry=LINE)}) as url:
        assert ask(url, A, B).metres.sum() == pytest.approx(4447.8)
        assert read_route(route_source(["47.0,9.5", "47.04,9.5"], url)).speed_kmh.max() == pytest.approx(
            50.04 * 0.9 / 0.8, abs=0.1
        )
    edges = [{"length": 2.2, "speed": 80}, {"length": 2.248, "speed": 30}]
    trace = {"units": "kilometers", "shape": encoded(LAT, LON, 6), "edges": edges}
    up = valhalla(elevation=[400.0 + i for i in range(149)], elevation_interval=30.0)
    with server({"/route/v1": None, "/route": up, "/trace_attributes": trace}) as url:
        way = ask(url + "/", A, B)
        assert way.speed_kmh == pytest.approx([72, 27])
        assert way.metres.sum() == pytest.approx(4448)
        assert way.elevation is not None
    with server({"/route/v1": None, "/route": up}) as url:
        assert "means over manoeuvres" in " ".join(ask(url, A, B).notes)


def test_refusals_and_silence():
    no_segment = {"/route/v1": {"code": "NoSegment", "message": "Could not find a matching segment"}}
    with server(no_segment) as url, pytest.raises(LogError, match="Could not find a matching segment"):
        ask(url, A, B)
    no_edge = {"/route/v1": None, "/route": {"error_code": 171, "error": "No suitable edges near location"}}
    with server(no_edge) as url, pytest.raises(LogError, match="No suitable edges"):
        ask(url, A, B)
    with server({"/route/v1": osrm(geometry=LINE)}) as url, pytest.raises(LogError, match="km from 46,2"):
        ask(url, (46.0, 2.0), B)
    with server({"/": {"hello": 1}}) as url, pytest.raises(LogError, match="neither as OSRM nor as Valhalla"):
        ask(url, A, B)
    with pytest.raises(LogError, match=r"127\.0\.0\.1:9: the router does not answer"):
        ask("http://127.0.0.1:9", A, B)
    with pytest.raises(SettingsError, match="begins with http"):
        ask("file:///etc", A, B)


@pytest.mark.parametrize(
    "head", [b"no HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b"HTTP/1.1 500 Oh\r\n\r\n"]
)
def test_a_server_that_trickles_or_breaks_off_is_given_up(monkeypatch, head):
    monkeypatch.setattr(router, "LONGEST_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle():
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(head)
                for _ in range(100):
                    connection.sendall(b" ")
                    time.sleep(0.02)

        Thread(target=trickle, daemon=True).start()
        begin = time.monotonic()
        with pytest.raises(LogError, match="the router does not answer"):
            ask(f"http://127.0.0.1:{listening.getsockname()[1]}", A, B)
        assert time.monotonic() - begin < 1.5


@pytest.mark.parametrize("text", ["", "47", "a,b", "47,9,1", "nan,3", "95,9", "9.5,247"])
def test_points_that_are_none(text):
    with pytest.raises(SettingsError, match="write latitude"):
        parse_point(text)


def test_exactly_one_way_to_say_it(tmp_path):
    for given in ([], ["a.csv", "b.csv"]):
        with pytest.raises(SettingsError, match="Give one route file"):
            route_source(given)
    with pytest.raises(SettingsError, match="two points and has 1"):
        route_source(["47,9"], "http://127.0.0.1:9")
    with pytest.raises(SettingsError, match="stands alone"):
        route_source(["a.csv"], None, 120, 110)
    (tmp_path / "a.csv").write_text("distance_km,speed_kmh\n0,50\n9,50\n")
    with pytest.raises(SettingsError, match="no coordinates"):
        route_source([tmp_path / "a.csv"], dem=tmp_path)
