"""One family of errors. Every message is one sentence that names the thing, what is wrong and what to do."""

from __future__ import annotations


class EvbandError(Exception):
    """Base of every error a user can cause; the command line prints it and exits with status 2."""


class LogError(EvbandError):
    """A log file that cannot be read as one."""


class ChannelError(EvbandError):
    """A channel that is unknown, missing, or not allowed where it was named."""


class TripsError(EvbandError):
    """Trips that cannot be used for what was asked (too short, too few, no power)."""


class SettingsError(EvbandError):
    """A setting outside what it may be."""


class ArtifactError(EvbandError):
    """A .evband file that is corrupt, truncated, hostile or of another version."""


class VehicleError(EvbandError):
    """A data sheet that cannot be, or a vehicle that nobody knows by that name."""
