"""Live: a band for every tick (`model.stream()`), and JSON lines in and out (`evband stream`)."""

from evband.streaming.lines import Battery, LineStream
from evband.streaming.ticks import Band, Stream

__all__ = ["Band", "Battery", "LineStream", "Stream"]
