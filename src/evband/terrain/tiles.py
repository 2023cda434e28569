"""Elevation at coordinates from a local folder of tiles: SRTM's HGT by NumPy alone, GeoTIFF with `pip install 'evband[dem]'`.

An HGT tile is a square of big-endian 16-bit metres, 1201 or 3601 per side, that covers one degree from the corner in its
name (N47E009.hgt: 47..48 N, 9..10 E), northernmost row first; -32768 is a void. Between its points elevation is bilinear.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.errors import LogError, SettingsError, require

Array = NDArray[np.float64]

OPEN_TILES = 16  # a route crosses few; a million points of a log stay within this many
LARGEST_PIXELS = 150_000_000
_HGT = re.compile(r"([NS])(\d{2})([EW])(\d{3})", re.IGNORECASE)


@dataclass(frozen=True)
class _Tile:
    """A raster whose pixel (0, 0) lies at (north, west); steps in degrees, both positive."""

    path: Path
    north: float
    west: float
    step_lat: float
    step_lon: float
    rows: int
    columns: int

    def holds(self, lat: Array, lon: Array) -> NDArray[np.bool_]:
        south, east = self.north - (self.rows - 1) * self.step_lat, self.west + (self.columns - 1) * self.step_lon
        half_lat, half_lon = 0.5 * self.step_lat, 0.5 * self.step_lon
        inside_lat = (lat <= self.north + half_lat) & (lat >= south - half_lat)
        return np.asarray(inside_lat & (lon >= self.west - half_lon) & (lon <= east + half_lon))


class Tiles:
    """A folder of elevation tiles, opened as they are needed."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise SettingsError(f"{self.folder}: this is not a folder; give the one that holds the .hgt or .tif tiles.")
        names = sorted(self.folder.iterdir())
        self._tiles = [_hgt(path) for path in names if path.suffix.lower() == ".hgt"]
        self._tiles += [_geotiff(path) for path in names if path.suffix.lower() in (".tif", ".tiff")]
        if not self._tiles:
            raise SettingsError(
                f"{self.folder}: there is no .hgt or .tif tile in it; put the tiles of the region there."
            )
        self._open: OrderedDict[Path, NDArray[Any]] = OrderedDict()

    def elevation_for(self, lat: ArrayLike, lon: ArrayLike) -> Array:
        """Metres above the sea at each point, NaN in voids and where a coordinate is missing.

        Points that no tile covers are an error that names the tiles to fetch.
        """
        north, east = np.broadcast_arrays(np.asarray(lat, dtype=float), np.asarray(lon, dtype=float))
        shape, north, east = north.shape, north.ravel(), east.ravel()
        found = np.full(len(north), np.nan)
        left = np.isfinite(north) & np.isfinite(east)
        for tile in self._tiles:
            here = left & tile.holds(north, east)
            if here.any():
                found[here] = self._sample(tile, north[here], east[here])
                left &= ~here
        if left.any():
            wanted = sorted({_hgt_name(a, b) for a, b in set(zip(np.floor(north[left]).tolist(), np.floor(east[left]).tolist(), strict=True))})  # fmt: skip
            listed = ", ".join(wanted[:4]) + (" ..." if len(wanted) > 4 else "")
            raise LogError(
                f"{self.folder}: no tile covers {left.sum()} of {len(north)} points; add {listed} (a tile that is not "
                f"published lies in the sea: check the coordinates), or leave --dem out."
            )
        return found.reshape(shape)

    def _sample(self, tile: _Tile, lat: Array, lon: Array) -> Array:
        """Bilinear between the four pixels around each point; a void makes the point NaN."""
        raster = self._raster(tile)
        row = np.clip((tile.north - lat) / tile.step_lat, 0.0, tile.rows - 1.0)
        column = np.clip((lon - tile.west) / tile.step_lon, 0.0, tile.columns - 1.0)
        i, j = np.minimum(row.astype(int), tile.rows - 2), np.minimum(column.astype(int), tile.columns - 2)
        y, x = row - i, column - j
        total = np.zeros(len(lat))
        for di, dj, weight in ((0, 0, (1 - y) * (1 - x)), (0, 1, (1 - y) * x), (1, 0, y * (1 - x)), (1, 1, y * x)):
            pixel = np.asarray(raster[i + di, j + dj], dtype=float)
            total += weight * np.where((pixel < -1000.0) | (pixel > 9000.0), np.nan, pixel)
        return total

    def _raster(self, tile: _Tile) -> NDArray[Any]:
        """The tile's pixels; the least recently used ones are closed again."""
        if tile.path not in self._open:
            if tile.path.suffix.lower() == ".hgt":
                self._open[tile.path] = np.memmap(tile.path, dtype=">i2", mode="r", shape=(tile.rows, tile.columns))
            else:
                self._open[tile.path] = _pixels(tile.path)
            if len(self._open) > OPEN_TILES:
                self._open.popitem(last=False)
        self._open.move_to_end(tile.path)
        return self._open[tile.path]


def _hgt_name(south: float, west: float) -> str:
    return f"{'S' if south < 0 else 'N'}{abs(south):02.0f}{'W' if west < 0 else 'E'}{abs(west):03.0f}.hgt"


def _hgt(path: Path) -> _Tile:
    corner = _HGT.match(path.name)
    if corner is None:
        raise SettingsError(f"{path}: an HGT tile is named by its corner, as N47E009.hgt; rename it.")
    side = isqrt(path.stat().st_size // 2)
    if side < 2 or side * side * 2 != path.stat().st_size:
        raise SettingsError(
            f"{path}: its {path.stat().st_size} bytes are not a square of 16-bit values; fetch it again."
        )
    south = int(corner[2]) * (1 if corner[1] in "Nn" else -1)
    west = int(corner[4]) * (1 if corner[3] in "Ee" else -1)
    return _Tile(path, south + 1.0, float(west), 1.0 / (side - 1), 1.0 / (side - 1), side, side)


def _tifffile() -> Any:
    return require("tifffile", "reading GeoTIFF tiles")


def _geotiff(path: Path) -> _Tile:
    """Where a GeoTIFF in degrees lies; one in metres (UTM) is refused, because only its maker's grid would fit it."""
    tifffile = _tifffile()
    try:
        with tifffile.TiffFile(path) as tiff:
            page = tiff.pages[0]
            tags = {tag.name: tag.value for tag in page.tags.values()}
            rows, columns = (int(n) for n in page.shape[:2])
            geo = tiff.geotiff_metadata or {}
    except (OSError, ValueError, tifffile.TiffFileError, IndexError, TypeError) as error:
        raise SettingsError(f"{path}: this is not a GeoTIFF that can be read ({error}); fetch it again.") from error
    scale, tie = tags.get("ModelPixelScaleTag"), tags.get("ModelTiepointTag")
    if scale is None or tie is None or len(page.shape) != 2:
        raise SettingsError(f"{path}: it has no position (pixel scale and tie point); convert it to EPSG:4326.")
    if int(geo.get("GTModelTypeGeoKey", 2)) != 2 or max(scale[:2]) > 1.0:
        raise SettingsError(
            f"{path}: its grid is in metres, not in degrees; convert it to EPSG:4326 (gdalwarp -t_srs)."
        )
    if rows * columns > LARGEST_PIXELS:
        raise SettingsError(
            f"{path}: it has {rows} x {columns} pixels, more than fit; cut it into tiles of one degree."
        )
    half = 0.0 if int(geo.get("GTRasterTypeGeoKey", 1)) == 2 else 0.5  # a pixel is an area unless it says a point
    west = tie[3] + (half - tie[0]) * scale[0]
    north = tie[4] - (half - tie[1]) * scale[1]
    return _Tile(path, north, west, scale[1], scale[0], rows, columns)


def _pixels(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(_tifffile().imread(path))
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        raise SettingsError(
            f"{path}: its pixels cannot be unpacked ({error}); store it uncompressed or deflated."
        ) from error
