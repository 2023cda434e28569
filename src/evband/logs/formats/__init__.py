"""The formats that are known by content, in the order in which they are asked; `MAPPED` takes whatever a map describes."""

from __future__ import annotations

from types import ModuleType

from evband.logs.formats import (
    abrp,
    bmw_i3,
    car_scanner_long,
    car_scanner_wide,
    dynamometer,
    mapped,
    mdf,
    torque_pro,
)

FORMATS: tuple[ModuleType, ...] = (mdf, abrp, car_scanner_long, torque_pro, bmw_i3, dynamometer, car_scanner_wide)
MAPPED: ModuleType = mapped
