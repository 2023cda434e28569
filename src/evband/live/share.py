"""One of several processes that share the cars of one configuration, for fleets that one process does not hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from evband.errors import SettingsError
from evband.live.config import Config

MOST = 64


def share(config: Config, part: str) -> Config:
    """The `part` "i/n" of a configuration: every n-th car from the i-th on, with a client, a port and a store of its own."""
    found = re.fullmatch(r"(\d{1,2})/(\d{1,2})", part)
    i, n = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= i <= n <= MOST:
        raise SettingsError(f"--part is {part!r}; give which of how many processes this is, such as 2/4.")
    mqtt, store = config.mqtt, config.store
    if mqtt is not None:
        mqtt = replace(mqtt, client_id=f"{mqtt.client_id}-{i}", status=f"{mqtt.status}/{i}")
    if store.path is not None:
        path = Path(store.path)
        store = replace(store, path=str(path.with_name(f"{path.stem}-{i}{path.suffix}")))
    server = replace(config.server, port=config.server.port + i - 1)
    return replace(config, cars=config.cars[i - 1 :: n], mqtt=mqtt, store=store, server=server, part=(i, n))
