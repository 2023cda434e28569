"""Prometheus metrics: is it alive, does it keep up, what was dropped and why."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evband import __version__
from evband.live import states
from evband.live.service import Service


def metrics(service: Service, extras: dict[str, Any]) -> str:
    """The text form, version 0.0.4."""
    return "\n".join(_lines(service, extras)) + "\n"


def _lines(service: Service, extras: dict[str, Any]) -> Iterator[str]:
    taken = service.assembler
    counts = np.bincount(service.state, minlength=len(states.STATES)).tolist()
    yield from _one("evband_info", "gauge", "Version of evband.", [({"version": __version__}, 1)])
    drops = [({"reason": name}, count) for name, count in taken.drops.total().items()]
    yield from _one("evband_dropped_total", "counter", "Readings not used, by reason.", drops)
    by_state = [({"state": name}, count) for name, count in zip(states.STATES, counts, strict=True)]
    yield from _one("evband_cars", "gauge", "Cars by state.", by_state)
    single: list[tuple[str, str, float]] = [
        ("up_seconds", "Seconds since the start.", time.time() - service.started),
        ("messages_total", "Readings and samples taken in.", taken.messages),
        ("bands_total", "Rows through the networks.", service.bands),
        ("steps_total", "Steps of the engine.", service.steps),
        ("step_seconds", "Length of a step, smoothed.", service.step_s),
        ("latency_seconds", "From message to state, 99 % quantile, smoothed.", service.latency_s),
        ("memory_peak_bytes", "Largest memory so far.", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
    ]
    client, store = extras.get("mqtt"), service.store
    if client is not None:
        names = ("received", "sent", "dropped", "skipped", "connections")
        single.append(("mqtt_connected", "Whether the broker is there.", int(client.connected)))
        single += [(f"mqtt_{name}_total", f"MQTT: {name}.", getattr(client, name)) for name in names]
    if store is not None:
        single.append(("store_commits_total", "Commits of the store.", store.commits))
        single.append(("store_lost_total", "Writes lost by a full or slow disk.", store.lost))
    for name, text, value in single:
        yield from _one(f"evband_{name}", "counter" if name.endswith("_total") else "gauge", text, [({}, value)])


def _one(name: str, kind: str, text: str, values: Sequence[tuple[dict[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        inside = ",".join(f'{key}="{label}"' for key, label in labels.items())
        yield f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"
