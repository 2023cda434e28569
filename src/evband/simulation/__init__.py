"""Simulated drives on FASTSim: a dynamometer bench whose noise is known exactly, and a highway drive as an app logs it."""

from evband.simulation.drives import NAMES, TRUTH, simulate, simulated_log, summary

__all__ = ["NAMES", "TRUTH", "simulate", "simulated_log", "summary"]
