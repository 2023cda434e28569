"""Elevation from tiles against the plane they were made of, and profiles made fit for slopes."""

import numpy as np
import pytest

from evband.errors import LogError, SettingsError
from evband.terrain import Tiles, tidy_elevation


def plane(lat, lon):
    return 1500 + 20 * (np.asarray(lat) - 47) - 60 * (np.asarray(lon) - 9)


def hgt(folder, name="N47E009.hgt", side=121, void=None):
    south, west = float(name[1:3]) * (1 if name[0] == "N" else -1), float(name[4:7]) * (1 if name[3] == "E" else -1)
    lat, lon = np.linspace(south + 1, south, side)[:, None], np.linspace(west, west + 1, side)[None, :]
    raster = np.round(plane(lat, lon)).astype(">i2")
    if void:
        raster[void] = -32768
    raster.tofile(folder / name)


def test_hgt_is_bilinear(tmp_path):
    hgt(tmp_path, void=(60, 60))
    hgt(tmp_path, "S01W002.hgt")
    lat, lon = np.array([47.1, 47.31, 47.999, 47.0, -0.5]), np.array([9.2, 9.77, 9.001, 9.0, -1.25])
    assert Tiles(tmp_path).elevation_for(lat, lon) == pytest.approx(plane(lat, lon), abs=0.8)
    assert np.isnan(Tiles(tmp_path).elevation_for(47.5, 9.5))
    assert np.isnan(Tiles(tmp_path).elevation_for(np.nan, 9.5))


def test_missing_tiles_are_named(tmp_path):
    hgt(tmp_path)
    with pytest.raises(LogError, match=r"no tile covers 2 of 3 points; add N46E009.hgt, S34W071.hgt"):
        Tiles(tmp_path).elevation_for([47.5, 46.5, -33.5], [9.5, 9.5, -70.5])
    with pytest.raises(SettingsError, match="not a folder"):
        Tiles(tmp_path / "nowhere")
    (tmp_path / "N46E009.hgt").write_bytes(b"abc")
    with pytest.raises(SettingsError, match="3 bytes are not a square"):
        Tiles(tmp_path)
    (tmp_path / "N46E009.hgt").rename(tmp_path / "alps.hgt")
    with pytest.raises(SettingsError, match="named by its corner"):
        Tiles(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(SettingsError, match=r"no \.hgt or \.tif"):
        Tiles(tmp_path)


@pytest.mark.parametrize("kind", ["area", "point"])
def test_geotiff(tmp_path, kind):
    tifffile = pytest.importorskip("tifffile")
    side, half = 100, 0.5 if kind == "area" else 0.0
    step = 1.0 / side
    lat = 48 - (np.arange(side)[:, None] + half) * step
    lon = 9 + (np.arange(side)[None, :] + half) * step
    keys = (1, 1, 0, 2, 1024, 0, 1, 2, 1025, 0, 1, 1 if kind == "area" else 2)
    tags = [(33550, "d", 3, (step, step, 0.0), True), (33922, "d", 6, (0, 0, 0, 9.0, 48.0, 0), True), (34735, "H", len(keys), keys, True)]  # fmt: skip
    tifffile.imwrite(tmp_path / "tile.tif", plane(lat, lon).astype(np.float32), extratags=tags)
    at = (np.array([47.3, 47.55, 47.9]), np.array([9.2, 9.51, 9.8]))
    assert Tiles(tmp_path).elevation_for(*at) == pytest.approx(plane(*at), abs=0.1)


def test_bad_geotiffs(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 4), np.float32))
    with pytest.raises(SettingsError, match="has no position"):
        Tiles(tmp_path)
    (tmp_path / "a.tif").write_bytes(b"II*\0nonsense")
    with pytest.raises(SettingsError, match="not a GeoTIFF"):
        Tiles(tmp_path)


def test_noise_is_smoothed_and_hills_are_kept():
    rng = np.random.default_rng(1)
    km = np.arange(0, 20, 0.02)
    truth = 400 + 60 * np.sin(2 * np.pi * km / 4)
    at, height, spikes = tidy_elevation(km, truth + rng.normal(0, 3, len(km)))
    assert spikes == 0
    assert np.abs(height - np.interp(at, km, truth)).mean() < 1.2
    slope = np.diff(height) / (1000 * np.diff(at))
    assert np.abs(slope).max() < 0.14  # of the hill itself: 0.094; raw noise: over 0.4
    climb = np.diff(height)[np.diff(height) > 0].sum()
    assert climb == pytest.approx(600, rel=0.12)


def test_points_closer_than_the_smoothing_are_averaged():
    km = np.arange(100_000) * 1e-4
    at, height, _ = tidy_elevation(km, 400 + np.arange(100_000) % 3)
    assert height == pytest.approx(np.full(len(at), 401), abs=0.05)


def test_spikes_are_taken_out_and_gaps_bridged():
    km = np.arange(0, 5, 0.03)
    height = 400 + 20 * km
    height[40], height[90:92], height[120] = 2500.0, -300.0, np.nan
    at, tidy, spikes = tidy_elevation(km, height)
    assert spikes == 3
    assert tidy == pytest.approx(400 + 20 * at, abs=1.5)


def test_a_planners_few_points_stay_as_they_are():
    km, height = np.array([0.0, 3.0, 8.0, 20.0]), np.array([400.0, 700.0, 650.0, 300.0])
    at, same, spikes = tidy_elevation(km, height)
    assert (at.tolist(), same.tolist(), spikes) == (km.tolist(), height.tolist(), 0)
