"""The formats that are known by content, in the order in which they are asked; `MAPPED` takes whatever a map describes."""

from __future__ import annotations

from types import ModuleType

from evband.logs.formats import (
    abrp,
    anl_d3,
    bmw_i3,
    car_scanner_long,
    car_scanner_wide,
    chargecar,
    dynamometer,
    evdash,
    home_assistant,
    leaf_spy,
    mapped,
    mdf,
    named_units,
    ovms,
    scan_my_tesla,
    soul_ev_spy,
    teslafi,
    teslalogger,
    teslamate,
    torque_pro,
    ved,
)

FORMATS: tuple[ModuleType, ...] = (
    mdf,
    home_assistant,
    evdash,
    abrp,
    car_scanner_long,
    torque_pro,
    bmw_i3,
    leaf_spy,
    teslafi,
    teslalogger,
    teslamate,
    scan_my_tesla,
    soul_ev_spy,
    ovms,
    ved,
    chargecar,
    anl_d3,
    dynamometer,
    car_scanner_wide,
)
MAPPED: ModuleType = mapped
LAST: ModuleType = named_units  # after the tidy tables
