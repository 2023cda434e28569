"""Data sheets of vehicles, a catalogue of them, and the physics that turns a sheet into power."""

from evband.vehicles.find import catalogue, find, named_sheet, read_sheets, search
from evband.vehicles.physics import sheet_power_kw, wheel_power
from evband.vehicles.sheet import Sheet

__all__ = [
    "Sheet",
    "catalogue",
    "find",
    "named_sheet",
    "read_sheets",
    "search",
    "sheet_power_kw",
    "wheel_power",
]
