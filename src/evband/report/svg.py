"""A small chart as inline SVG: crisp at any size, coloured by the page's style sheet in light and dark, drawn without a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from evband.report.words import minus

Array = NDArray[np.float64]
Range = tuple[float, float]


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from low to high: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def padded(values: Array, share: float = 0.06) -> Range:
    """The range of finite values with a margin on either side."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    pad = share * (high - low) or 1.0
    return low - pad, high + pad


def number(value: float) -> str:
    """A tick's text: no trailing zeros, a true minus sign."""
    return minus(f"{value:.6g}")


class Chart:
    """A plot area with linear scales; each method adds one layer, `svg` closes the picture."""

    def __init__(
        self,
        width: int,
        height: int,
        x: Range,
        y: Range,
        *,
        left: int = 58,
        right: int = 26,
        top: int = 10,
        bottom: int = 42,
    ) -> None:
        self.width, self.height, self.x, self.y = width, height, x, y
        self.left, self.right, self.top, self.bottom = left, width - right, top, height - bottom
        self.layers: list[str] = []

    def px(self, x: float | Array) -> Array:
        return np.asarray(self.left + (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * (self.right - self.left))

    def py(self, y: float | Array) -> Array:
        return np.asarray(
            self.bottom - (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0]) * (self.bottom - self.top)
        )

    def x_axis(self, label: str, ticks: Sequence[float] | None = None, texts: Sequence[str] | None = None) -> None:
        ticks = nice_ticks(*self.x, max(2, (self.right - self.left) // 90)) if ticks is None else ticks
        for tick, text in zip(ticks, texts or [number(t) for t in ticks], strict=True):
            at = f"{float(self.px(tick)):.1f}"
            self.layers.append(
                f'<line class="tickmark" x1="{at}" x2="{at}" y1="{self.bottom}" y2="{self.bottom + 4}"/>'
            )
            self.text(float(self.px(tick)), self.bottom + 17, text, "tick", "middle")
        self.layers.append(
            f'<line class="axis" x1="{self.left}" x2="{self.right}" y1="{self.bottom}" y2="{self.bottom}"/>'
        )
        self.text((self.left + self.right) / 2, self.height - 5, label, "label", "middle")

    def y_axis(self, label: str, ticks: Sequence[float] | None = None, texts: Sequence[str] | None = None) -> None:
        ticks = nice_ticks(*self.y, max(2, (self.bottom - self.top) // 45)) if ticks is None else ticks
        for tick, text in zip(ticks, texts or [number(t) for t in ticks], strict=True):
            at = f"{float(self.py(tick)):.1f}"
            self.layers.append(f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{at}" y2="{at}"/>')
            self.text(self.left - 7, float(self.py(tick)) + 4, text, "tick", "end")
        middle = (self.top + self.bottom) / 2
        self.layers.append(
            f'<text class="label" text-anchor="middle" transform="translate(13 {middle:.0f}) rotate(-90)">{escape(label)}</text>'
        )

    def line(self, x: Array, y: Array, css: str) -> None:
        """A line through the points, broken where y is not finite."""
        self.layers.append(f'<path class="{css}" d="{self._path(x, y)}"/>')

    def area(self, x: Array, lower: Array, upper: Array, css: str) -> None:
        """The surface between two lines, broken where either is not finite."""
        known = np.isfinite(lower) & np.isfinite(upper)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
        parts = []
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            there = np.concatenate([x[start:stop], x[start:stop][::-1]])
            parts.append(self._path(there, np.concatenate([upper[start:stop], lower[start:stop][::-1]])) + "Z")
        self.layers.append(f'<path class="{css}" d="{"".join(parts)}"/>')

    def dots(self, x: Array, y: Array, css: str, radius: float) -> None:
        """Round dots as one path: each is a line of no length with round ends, which browsers draw fast."""
        moves = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(self.px(x), self.py(y), strict=True))
        self.layers.append(f'<path class="{css}" stroke-width="{2 * radius:g}" stroke-linecap="round" d="{moves}"/>')

    def bars(self, edges: Array, heights: Array, css: str) -> None:
        base = float(self.py(0.0))
        left, right, top = self.px(edges[:-1]), self.px(edges[1:]), self.py(heights)
        for a, b, t in zip(left, right, top, strict=True):
            self.layers.append(
                f'<rect class="{css}" x="{a + 0.5:.1f}" y="{t:.1f}" width="{max(b - a - 1, 0.5):.1f}" height="{max(base - t, 0):.1f}"/>'
            )

    def text(self, x: float, y: float, text: str, css: str, anchor: str = "start") -> None:
        self.layers.append(f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def segment(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        """A straight line in pixels."""
        self.layers.append(f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def _path(self, x: Array, y: Array) -> str:
        known = np.isfinite(y)
        px, py = self.px(x), self.py(np.where(known, y, 0.0))
        pieces, pen = [], "M"
        for there, a, b in zip(known, px, py, strict=True):
            if there:
                pieces.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L" if there else "M"
        return "".join(pieces)

    def svg(self, description: str, css: str = "") -> str:
        """The picture; `description` is what a screen reader says."""
        return (
            f'<svg class="chart {css}" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(description, quote=True)}">{"".join(self.layers)}</svg>'
        )
