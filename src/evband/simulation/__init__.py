"""Simulated drives on FASTSim: a dynamometer bench whose noise is known exactly, and a highway drive as an app logs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evband.simulation.drives import NAMES as NAMES
    from evband.simulation.drives import TRUTH as TRUTH
    from evband.simulation.drives import simulate as simulate
    from evband.simulation.drives import simulated_log as simulated_log
    from evband.simulation.drives import summary as summary

__all__ = ["NAMES", "TRUTH", "simulate", "simulated_log", "summary"]


def __getattr__(name: str) -> Any:
    """Tables when they are asked for: `evband start` needs the driver of `evband.simulation.cycles` alone."""
    if name not in __all__:
        raise AttributeError(f"module 'evband.simulation' has no attribute {name!r}")
    from evband.simulation import drives

    return getattr(drives, name)
