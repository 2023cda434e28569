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
    yield from _one("evband_info", "gauge", "Version of evband.", [({"version": __version__}, 1)])
    yield from _one("evband_up_seconds", "gauge", "Seconds since the start.", [({}, time.time() - service.started)])
    yield from _one(
        "evband_messages_total", "counter", "Readings and samples taken in.", [({}, service.assembler.messages)]
    )
    drops = [({"reason": name}, count) for name, count in service.assembler.drops.total().items()]
    yield from _one("evband_dropped_total", "counter", "Readings not used, by reason.", drops)
    yield from _one("evband_bands_total", "counter", "Rows through the networks.", [({}, service.bands)])
    yield from _one("evband_steps_total", "counter", "Steps of the engine.", [({}, service.steps)])
    yield from _one("evband_step_seconds", "gauge", "Length of a step, smoothed.", [({}, service.step_s)])
    yield from _one(
        "evband_latency_seconds", "gauge", "From message to state, 99 % quantile, smoothed.", [({}, service.latency_s)]
    )
    counts = np.bincount(service.state, minlength=len(states.STATES)).tolist()
    by_state = [({"state": name}, counts[i]) for i, name in enumerate(states.STATES)]
    yield from _one("evband_cars", "gauge", "Cars by state.", by_state)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    yield from _one("evband_memory_peak_bytes", "gauge", "Largest memory so far.", [({}, memory)])
    client, store = extras.get("mqtt"), service.store
    if client is not None:
        yield from _one("evband_mqtt_connected", "gauge", "Whether the broker is there.", [({}, int(client.connected))])
        for name in ("received", "sent", "dropped", "skipped", "connections"):
            yield from _one(f"evband_mqtt_{name}_total", "counter", f"MQTT: {name}.", [({}, getattr(client, name))])
    if store is not None:
        yield from _one("evband_store_commits_total", "counter", "Commits of the store.", [({}, store.commits)])
        yield from _one("evband_store_lost_total", "counter", "Writes lost by a full or slow disk.", [({}, store.lost)])


def _one(name: str, kind: str, text: str, values: Sequence[tuple[dict[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        inside = ",".join(f'{key}="{label}"' for key, label in labels.items())
        yield f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"
