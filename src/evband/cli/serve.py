"""`evband serve`: feeds of cars in; page, API, MQTT and Home Assistant out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[Path | None, typer.Argument(metavar="[CONFIG.toml]", help="Cars, broker, server, store.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Show a simulated drive; needs no configuration.")] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on, 127.0.0.1 by default.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the page of --demo, where there is a screen.")] = True,
    part: Annotated[
        str | None, typer.Option(help="Which of several processes this is, such as 2/4: its share of the cars.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 8750 by default.")] = None,
) -> None:
    """Live bands, energy and range of cars, from their feeds to a page, an API, MQTT and Home Assistant.

    Example: evband serve --demo --port 8750
    """
    from evband.errors import require

    for package in ("starlette", "uvicorn", "websockets", "orjson"):
        require(package, "Serving live cars")
    from evband.live.run import can_show, configuration
    from evband.live.run import serve as run

    found = configuration(config, demo, host, port, part)
    run(found, browser=demo and browser and can_show())
