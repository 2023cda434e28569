"""One family of errors. Every message is one sentence that names the thing, what is wrong and what to do."""

from __future__ import annotations

from importlib import import_module


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


class MissingPackageError(EvbandError):
    """A package that only some tasks need is not installed."""


def require(package: str, extra: str, task: str) -> None:
    """Raise unless `package` can be imported; `task` is what needs it, `extra` what to install."""
    try:
        import_module(package)
    except ImportError:
        raise MissingPackageError(
            f'{task} needs {package}, which is not installed; install it with: pip install "evband[{extra}]"'
        ) from None
