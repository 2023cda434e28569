"""Route files: each format by a small made-up file of its form, and bad ones in one sentence."""

import json
import time

import numpy as np
import pytest

from evband.errors import LogError
from evband.routes import read_route
from evband.routes.legs import legs, profile_of
from evband.routes.reading import read_way
from evband.terrain import Tiles
from router_answers import LAT, LON, STEP, encoded, osrm, valhalla

NS = 'xmlns="http://www.topografix.com/GPX/1/1"'


def gpx(kind: str, points: str) -> str:
    inner = f"<trk><trkseg>{points}</trkseg></trk>" if kind == "trkpt" else f"<rte>{points}</rte>"
    return f'<?xml version="1.0"?><gpx {NS} version="1.1">{inner}</gpx>'


def north(n: int, kind: str = "trkpt", height=lambda i: 400 + i, times=None) -> str:
    """Points 111 m apart to the north."""
    return "".join(
        f'<{kind} lat="{47 + i / 1000:.4f}" lon="9.5"><ele>{height(i)}</ele>'
        + (f"<time>2024-05-01T10:{times[i] // 60:02d}:{times[i] % 60:02d}Z</time>" if times else "")
        + f"</{kind}>"
        for i in range(n)
    )


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def length_km(route):
    return float(route.distance_km(route.time_s[-1:])[0])


def test_a_gpx_route_has_no_speed_of_its_own(tmp_path):
    route = read_route(write(tmp_path, "a.gpx", gpx("rtept", north(41, "rtept"))))
    assert length_km(route) == pytest.approx(40 * STEP / 1000, rel=1e-3)
    assert route.speed_kmh.max() == pytest.approx(60)
    assert any("no speed and is taken at 60 km/h" in note for note in route.notes)
    km, height = route.along["elevation_m"]
    assert np.interp([1.0, 3.0], km, height) == pytest.approx([409, 427], abs=0.5)


def test_a_gpx_track_is_driven_at_its_own_times_and_halts(tmp_path):
    times = [10 * i + (60 if i > 20 else 0) for i in range(41)]  # 11.1 m/s, a minute lost at point 20
    points = north(41, times=times).replace("</trkpt>", "</trkpt>", 1)
    still = '<trkpt lat="47.0200" lon="9.5"><ele>420</ele><time>2024-05-01T10:04:19Z</time></trkpt>'
    before, after = points.split('<trkpt lat="47.0210"')
    route = read_route(write(tmp_path, "t.gpx", gpx("trkpt", before + still + '<trkpt lat="47.0210"' + after)))
    assert length_km(route) == pytest.approx(40 * STEP / 1000, rel=1e-3)
    assert np.median(route.speed_kmh) == pytest.approx(3.6 * STEP / 10, rel=0.02)
    stops = [leg for leg in legs(route) if leg.stops]
    assert [leg.stopped_s for leg in stops] == [pytest.approx(59)]
    assert stops[0].to_km == pytest.approx(2.22, abs=0.3)
    assert route.time_s[-1] == pytest.approx(460, abs=40)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('<!DOCTYPE gpx [<!ENTITY a "b">]><gpx/>', "document type or entities"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><gpx/>', "document type or entities"),
        ("<gpx><trk>", "cut short or broken"),
        ("<kml/>", "not GPX"),
        ("<gpx/>", "neither a track nor a route"),
        ("<gpx><rte><rtept lat='91' lon='0'/><rtept lat='1' lon='0'/></rte></gpx>", "cannot be"),
        ("<gpx><rte><rtept lat='x' lon='0'/></rte></gpx>", "'x' in line 1 is not a number"),
        ("<gpx><rte><rtept lat='1'/><rtept lat='1' lon='0'/></rte></gpx>", "has no longitude"),
        ("<gpx><rte><rtept lat='1' lon='1'/></rte></gpx>", "at least two points"),
        ("<gpx><rte><rtept lat='1' lon='1'/><rtept lat='1' lon='1'/></rte></gpx>", "leads nowhere"),
        ("<gpx><rte><rtept lat='1' lon='1'/><rtept lat='2' lon='1'/></rte></gpx>", "111 km apart"),
        ("<gpx><rte/><rte><rtept lat='1' lon='1'/></rte></gpx>", "holds 2 routes"),
        ("<a>" * 5000, "nested more than"),
        ("{", "not JSON"),
        ('{"a": 1}', "not a route"),
        ('{"a":' * 20_000, "not"),
        ('{"type": "Point", "coordinates": [1, 2]}', "no LineString"),
        ('{"type": "LineString", "coordinates": [[1, 2]]}', "fewer than two"),
        ('{"type": "LineString", "coordinates": [[1, 2], ["a", 2]]}', "point 2 is"),
        ('{"type": "FeatureCollection", "features": 3}', "no LineString"),
        ('{"code": "NoRoute", "message": "Impossible"}', "Impossible"),
        ('{"code": "Ok", "routes": [{"legs": [{"annotation": {"distance": [-5, 9], "duration": [1, 1]}}], "distance": 4}]}', "leads nowhere"),
        ('{"code": "Ok", "routes": []}', "neither annotations nor steps"),
        ('{"trip": {"legs": 3}}', "not a whole answer"),
        ('{"trip": {"legs": [{"maneuvers": [{"length": 1, "time": 9}], "shape": "?"}], "summary": {"length": 1}}}', "polyline"),
        ('{"edges": [], "shape": "??"}', "no edges"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, content, says):
    with pytest.raises(LogError, match=says) as problem:
        read_route(write(tmp_path, "bad", content))
    assert "\n" not in str(problem.value)


def test_a_point_with_an_empty_elevation_has_none(tmp_path):
    points = "".join(f'<rtept lat="47.{i}" lon="9.5"><ele></ele></rtept>' for i in range(10, 20))
    assert "elevation_m" not in read_route(write(tmp_path, "a.gpx", f"<gpx><rte>{points}</rte></gpx>")).channels


def test_tiles_are_asked_on_both_sides_of_180_degrees(tmp_path):
    for name, height in (("S17E179.hgt", 20), ("S17W180.hgt", 40)):
        np.full((121, 121), height, dtype=">i2").tofile(tmp_path / name)
    points = "".join(f'<rtept lat="-16.8" lon="{lon}"/>' for lon in (179.8, 179.98, -179.98, -179.8))
    way = read_way(write(tmp_path, "a.gpx", f"<gpx><rte>{points}</rte></gpx>")).with_elevation(Tiles(tmp_path))
    assert set(np.round(way.elevation[1])) == {20.0, 40.0}


def test_geojson_with_elevation_and_road_classes(tmp_path):
    def line(first, last, **properties):
        points = [[9.5, 47 + i / 1000, 400 + i] for i in range(first, last + 1)]
        return {"type": "Feature", "properties": properties, "geometry": {"type": "LineString", "coordinates": points}}

    features = [line(0, 20, highway="motorway"), line(20, 30, maxspeed="50"), line(30, 40, speed_kmh="33", maxspeed=50)]
    route = read_route(write(tmp_path, "a.geojson", {"type": "FeatureCollection", "features": features}))
    km = route.distance_km(route.time_s)
    assert np.interp([1.5, 2.8, 4.0], km, route.speed_kmh) == pytest.approx([110, 45, 33], abs=1)
    assert not route.notes
    features[1] = line(22, 30)
    with pytest.raises(LogError, match="one line ends"):
        read_route(write(tmp_path, "gap.geojson", {"type": "FeatureCollection", "features": features}))


def test_openrouteservice_steps(tmp_path):
    steps = [{"distance": 2000, "duration": 100, "way_points": [0, 18]}, {"distance": 2448, "duration": 200, "way_points": [18, 40]}]  # fmt: skip
    points = [[9.5, float(lat), 400.0] for lat in LAT]
    feature = {"type": "Feature", "properties": {"segments": [{"steps": steps}]}, "geometry": {"type": "LineString", "coordinates": points}}  # fmt: skip
    way = read_way(write(tmp_path, "ors.json", {"type": "FeatureCollection", "features": [feature]}))
    assert way.speed_kmh == pytest.approx([72.0, 44.06], abs=0.1)


def test_osrm_pieces_are_joined_and_keep_the_engines_length(tmp_path):
    rough = osrm(2.67, 0.1, 100)  # 96 km/h by rounding
    rough["routes"][0]["legs"][0]["annotation"]["duration"] = [0.1, 0.3] * 50  # 48 km/h over both
    way = read_way(write(tmp_path, "o.json", rough))
    assert way.metres.sum() == pytest.approx(267)
    assert way.metres.min() >= 50
    assert way.speed_kmh == pytest.approx(np.full(len(way.metres), 48.06 * 0.9 / 0.8), rel=0.05)
    for geometry in ({"type": "LineString", "coordinates": np.stack([LON, LAT], 1).tolist()}, encoded(LAT, LON, 5)):
        way = read_way(write(tmp_path, "o.json", osrm(geometry=geometry)))
        assert way.metres.sum() == pytest.approx(40 * STEP)
        assert way.places[1] == pytest.approx(LAT)


def test_osrm_has_not_reduced_the_speed_of_a_road_without_a_limit(tmp_path):
    metres = np.random.default_rng(0).uniform(5, 60, 200)
    for kmh, taken in ((55.0, 55.0), (56.0, 63.0), (40.0, 45.0)):  # a class; a limit of 70; either: as if a limit
        answer = osrm(pieces=200)
        note = {"distance": metres.tolist(), "duration": (np.round(36 * metres / kmh) / 10).tolist()}
        answer["routes"][0] |= {"legs": [{"annotation": note}], "distance": float(metres.sum())}
        way = read_way(write(tmp_path, "o.json", answer))
        assert way.metres.sum() / 1000 / (way.metres / 1000 / way.speed_kmh).sum() == pytest.approx(taken, rel=0.01)


def test_valhalla_route_and_trace(tmp_path):
    heights = [400 + 0.5 * i for i in range(149)]
    answer = valhalla(elevation=heights, elevation_interval=30.0)
    route = read_route(write(tmp_path, "v.json", answer))
    assert length_km(route) == pytest.approx(4.448)
    km = route.distance_km(route.time_s)
    assert np.interp([1.0, 3.0], km, route.speed_kmh) == pytest.approx([0.9 * 72, 0.9 * 44.06], abs=0.5)
    assert np.interp(3.0, *route.along["elevation_m"]) == pytest.approx(450, abs=1)
    edges = [{"length": 2.0, "speed": 80}, {"length": 2.448, "road_class": "residential"}]
    way = read_way(write(tmp_path, "t.json", {"units": "kilometers", "shape": encoded(LAT, LON, 6), "edges": edges}))
    assert way.speed_kmh == pytest.approx([72, 30])  # nine tenths of an edge's speed; a class has its own
    assert way.places[1] == pytest.approx(LAT)


def test_a_trace_in_miles_has_its_elevation_in_feet(tmp_path):
    """As Valhalla's serializer of traces writes both."""
    edges = [
        {"length": 2.0, "speed": 80, "mean_elevation": 400.0},
        {"length": 2.448, "speed": 50, "mean_elevation": 450.0},
    ]
    miles = [{"length": e["length"] / 1.609344, "speed": e["speed"] / 1.609344, "mean_elevation": e["mean_elevation"] / 0.3048} for e in edges]  # fmt: skip
    ways = [
        read_way(write(tmp_path, "t.json", {"units": unit, "shape": encoded(LAT, LON, 6), "edges": some}))
        for unit, some in (("kilometers", edges), ("miles", miles))
    ]
    assert ways[0].elevation[1] == pytest.approx([400.0, 450.0])
    assert ways[1].elevation[1] == pytest.approx(ways[0].elevation[1])
    assert ways[1].speed_kmh == pytest.approx(ways[0].speed_kmh)


def test_a_profile_written_and_read_again_is_the_same_route(tmp_path):
    times = [10 * i for i in range(41)]
    for content in (gpx("trkpt", north(41, times=times)), valhalla(elevation=[400.0 + i for i in range(149)], elevation_interval=30.0)):  # fmt: skip
        route = read_route(write(tmp_path, "a", content))
        profile_of(route).write_csv(tmp_path / "profile.csv", float_precision=6)
        again = read_route(tmp_path / "profile.csv")
        assert length_km(again) == pytest.approx(length_km(route), rel=1e-4)
        assert again.time_s[-1] == pytest.approx(route.time_s[-1], rel=1e-3)
        at = np.linspace(0.2, 4.0, 9)
        assert np.interp(at, *again.along["elevation_m"]) == pytest.approx(np.interp(at, *route.along["elevation_m"]), abs=0.2)  # fmt: skip


def test_loops_and_points_at_one_place_are_driven(tmp_path):
    around = [[9.5 + 0.01 * np.sin(a), 47 + 0.01 * np.cos(a)] for a in np.linspace(0, 4 * np.pi, 200)]
    around[50:50] = [around[50]] * 5
    route = read_route(write(tmp_path, "loop.geojson", {"type": "LineString", "coordinates": around}))
    assert length_km(route) == pytest.approx(2 * 2 * np.pi * 0.01 * 111.2 * (1 + np.cos(np.radians(47))) / 2, rel=0.02)


def test_a_million_points_take_seconds(tmp_path):
    points = "".join(f'<trkpt lat="{47 + i * 1e-6:.6f}" lon="9.5"/>' for i in range(400_000))
    start = time.monotonic()
    route = read_route(write(tmp_path, "m.gpx", gpx("trkpt", points)))
    assert length_km(route) == pytest.approx(44.48, rel=0.01)
    assert time.monotonic() - start < 20
    rows = "\n".join(f"{i * 1e-3},{50 + i % 2}" for i in range(150_000))
    route = read_route(write(tmp_path, "m.csv", f"distance_km,speed_kmh\n{rows}\n"))
    assert length_km(route) == pytest.approx(149.999, rel=1e-3)
