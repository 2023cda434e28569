"""`evband serve` from start to end: service, feeds and web server, until a signal."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from evband.errors import SettingsError
from evband.live.config import Car, Config, Server, Store, check_server, read_config
from evband.live.share import share

if TYPE_CHECKING:
    from evband.live.fleet import Roster

DEMO = Path(__file__).parent / "demo"
DEMO_VAN, DEMO_ZOE = "Peugeot e-Expert 75 kWh", "Renault Zoe 52 kWh"
MOST_SHOWN = 20  # cars that are left out and named


def demo_config() -> Config:
    """Simulated drives that ship with the package: one measured and on a route, one without measured power that gets short of charge,
    one of a car that is known by its data sheet alone and learns, one of a van whose feed is slow. What is kept goes when the process
    ends."""
    from evband.adaptation import start

    folder = tempfile.mkdtemp(prefix="evband-demo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fitted, zoe, van = DEMO / "demo.evband", Path(folder) / "zoe.evband", Path(folder) / "van.evband"
    start(DEMO_ZOE).save(zoe)
    start(DEMO_VAN).save(van)

    def car(id: str, name: str, model: Path, file: str, capacity_kwh: float, route: str | None = None) -> Car:
        return Car(
            id=id, name=name, model=str(model), source="replay", file=str(DEMO / file), capacity_kwh=capacity_kwh,
            route=None if route is None else str(DEMO / route),
        )  # fmt: skip

    cars = (
        car("demo", "Demo car", fitted, "drive.csv", 60.0, "route.csv"),
        car("errand", "Errand", fitted, "errand.csv", 60.0, "errand_route.csv"),
        car("zoe", "Zoe, by its data sheet", zoe, "zoe.csv", 52.0),
        car("van", "e-Expert, slow feed", van, "van.csv", 75.0),
    )
    return Config(cars=cars, store=Store(path=str(Path(folder) / "demo.sqlite")))


def configuration(path: Path | None, demo: bool, host: str | None, port: int | None, part: str | None = None) -> Config:
    """What was asked for on the command line."""
    if path is None and not demo:
        raise SettingsError("There is no configuration; give a TOML file, or --demo to see a simulated drive.")
    config = demo_config() if path is None else read_config(path)
    server = replace(config.server, host=host or config.server.host, port=config.server.port if port is None else port)
    check_server(server, str(path or "--demo"), config.where)
    config = replace(config, server=server)
    return config if part is None else share(config, part)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def can_show() -> bool:
    """Whether a browser would have a screen."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _show(port: int) -> None:
    """Open the page once it answers."""
    for _ in range(100):
        time.sleep(0.2)
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            webbrowser.open(f"http://127.0.0.1:{port}/")
            return


def serve(config: Config, found: Roster | None = None, browser: bool = False) -> None:
    """Run until interrupted; `found`: cars with their models, by default those of the configuration."""
    import uvicorn

    from evband.live.feeds import Feeds
    from evband.live.http import application
    from evband.live.reading import LARGEST
    from evband.live.service import Service

    own, s = _listening(config.server), config.server
    scheme = "http" if s.cert is None else "https"
    print(
        f"evband: serving on {scheme}://{s.host}:{own.getsockname()[1]}/ (Ctrl-C ends it).", file=sys.stderr, flush=True
    )
    service = Service(config, found)
    for problem in service.roster.problems[:MOST_SHOWN]:
        print(f"evband: left out: {problem}", file=sys.stderr)
    feeds = Feeds(service)
    app = application(service, {"mqtt": feeds.client, "feeds": feeds})
    settings = uvicorn.Config(
        app, host=s.host, port=s.port, log_level="warning", access_log=False, server_header=False, ws_max_size=LARGEST, ws_max_queue=16,
        limit_concurrency=1000, timeout_keep_alive=10, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=65_536,
        ssl_certfile=None if s.cert is None else str(config.path(s.cert)), ssl_keyfile=None if s.key is None else str(config.path(s.key)),
        ws="websockets-sansio",
    )  # fmt: skip
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    signal.signal(
        signal.SIGTERM, _leave
    )  # the server gives a signal on when it has ended; without this it would end us
    try:
        service.start()
        feeds.start()
        if browser:
            threading.Thread(target=_show, args=(s.port,), name="browser", daemon=True).start()
        uvicorn.Server(settings).run([own])
    finally:
        own.close()
        feeds.stop()
        service.stop()


def _listening(server: Server) -> socket.socket:
    """The socket that requests come to, taken before anything else is begun."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        return socket.create_server((server.host, server.port), family=family, backlog=2048)
    except OSError as problem:
        raise SettingsError(
            f"{server.host} port {server.port} cannot be listened on ({problem.strerror}); choose another with --port."
        ) from None
