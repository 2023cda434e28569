"""evband: what power an electric car draws from how it moves, and how sure that is."""

from __future__ import annotations

__version__ = "0.1.0"
