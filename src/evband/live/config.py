"""The configuration of `evband serve`: TOML in, typed settings out, every mistake one sentence that names the fix."""

from __future__ import annotations

import difflib
import re
import stat
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from evband.errors import SettingsError
from evband.files import read_toml

MOST_BYTES = 16 << 20  # of a configuration: twenty thousand cars have 4 MB
SOURCES = {  # and what each cannot do without
    "ovms": "topic", "teslamate": "topic", "fleet_telemetry": "topic", "wican": "topic", "json": None, "abrp": None,
    "elm327": "port", "replay": "file",
}  # fmt: skip
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
LOCAL = ("127.0.0.1", "::1", "localhost")
Section = TypeVar("Section")


@dataclass(frozen=True)
class Mqtt:
    """The broker: where feeds come from and states go to."""

    host: str = "127.0.0.1"
    port: int = 1883
    username: str | None = None
    password_file: str | None = None
    tls: bool = False
    ca_file: str | None = None
    client_id: str = "evband"
    prefix: str = "evband"  # of our own topics
    status: str = "status"  # under the prefix: whether this process is online
    discovery: bool = True
    discovery_prefix: str = "homeassistant"
    keepalive_s: int = 30

    def password(self) -> str | None:
        if self.password_file is None:
            return None
        try:
            return Path(self.password_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise SettingsError(f"{self.password_file}: the broker's password cannot be read ({problem}).") from None


@dataclass(frozen=True)
class Car:
    """One car: its model, where its readings come from, and its battery."""

    id: str
    model: str
    source: str = "json"
    name: str | None = None
    topic: str | None = None  # of an MQTT source
    token: str | None = None  # by which an ABRP sender names this car; its id by default
    capacity_kwh: float | None = None
    reserve_soc: float = 10.0
    route: str | None = None  # file with the route that it starts with: CSV, JSON or GPX
    calibrate: bool = True  # learn online from measured power; widen bands of slow feeds
    learn: bool = True  # a started model learns the car from measured power
    power_unit: str | None = None  # W or kW; found by comparing with motion if not given
    invert_power: bool | None = None  # positive means charging; found by comparing with motion if not given
    file: str | None = None  # replay: any readable log
    speed: float = 1.0  # replay: times as fast
    repeat: bool = True  # replay: begin again at the end
    port: str | None = None  # elm327: /dev/rfcomm0, COM3, socket://192.168.0.10:35000
    baud: int = 38400
    pids: str | None = None  # elm327: TOML file of the maker's PIDs; wican: the vehicle profile

    def under(self, rest: str) -> str:
        """A topic below the car's own."""
        return f"{(self.topic or '').rstrip('/')}/{rest}"


@dataclass(frozen=True)
class Fleet:
    """All cars of a fleet folder, each on `topic` with its id in place of {id}."""

    dir: str
    source: str = "json"
    topic: str | None = None
    capacity_kwh: float | None = None
    reserve_soc: float = 10.0


@dataclass(frozen=True)
class Server:
    """Where the page and the API listen, and what they put up with."""

    host: str = "127.0.0.1"
    port: int = 8750
    token_file: str | None = None
    allowed_hosts: list[str] = field(default_factory=list)  # further names under which browsers may ask
    cert: str | None = None
    key: str | None = None
    max_body_kb: int = 2048
    max_requests_per_s: int = 200  # from one address
    max_cars: int = 20_000
    max_clients: int = 64  # WebSockets at a time
    step_s: float = 0.1  # readings are gathered for so long
    record: str | None = None  # every reading taken, as JSON lines


@dataclass(frozen=True)
class Store:
    """What is kept, and for how long."""

    path: str | None = None  # nothing is kept without one
    seconds_days: float = 7.0  # rows per second; then minutes
    minutes_days: float = 400.0
    max_mb: int = 2000
    snapshot_cars: int = 50  # up to this many cars, the network's state is kept every second


@dataclass(frozen=True)
class Config:
    """All of it."""

    cars: tuple[Car, ...] = ()
    mqtt: Mqtt | None = None
    fleet: Fleet | None = None
    server: Server = field(default_factory=Server)
    store: Store = field(default_factory=Store)
    where: Path = Path()  # paths in it are relative to this folder
    part: tuple[int, int] = (1, 1)  # which of how many processes this is

    def path(self, name: str) -> Path:
        return self.where / Path(name).expanduser()


def read_config(path: Path) -> Config:
    """The configuration in a TOML file."""
    table = read_toml(path, SettingsError, "configuration", MOST_BYTES)
    return parse_config(table, str(path), path.resolve().parent)


def parse_config(table: dict[str, Any], where: str = "configuration", folder: Path = Path()) -> Config:
    """A parsed TOML table, checked."""
    _known(table, ("mqtt", "car", "fleet", "server", "store"), where, "section")
    listed = table.get("car", [])
    if not isinstance(listed, list) or not all(isinstance(car, dict) for car in listed):
        raise SettingsError(f"{where}: write each car under [[car]], with two brackets.")
    cars = tuple(_section(Car, car, f"{where}: car {car.get('id', i + 1)}") for i, car in enumerate(listed))
    config = Config(
        cars=cars,
        mqtt=_section(Mqtt, table["mqtt"], f"{where}: [mqtt]") if "mqtt" in table else None,
        fleet=_section(Fleet, table["fleet"], f"{where}: [fleet]") if "fleet" in table else None,
        server=_section(Server, table.get("server", {}), f"{where}: [server]"),
        store=_section(Store, table.get("store", {}), f"{where}: [store]"),
        where=folder,
    )
    _check_cars(config, where)
    check_server(config.server, where, folder)
    if not cars and config.fleet is None:
        raise SettingsError(
            f"{where}: it names no car; add a [[car]] with id, model and source, or a [fleet] with dir."
        )
    return config


def _section(kind: type[Section], table: Any, where: str) -> Section:
    """A section's table as its dataclass; unknown keys and wrong types are errors."""
    if not isinstance(table, dict):
        raise SettingsError(f"{where} must be a table of settings, not {table!r}.")
    types = get_type_hints(kind)
    _known(table, tuple(types), where, "setting")
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise SettingsError(f"{where} lacks {each.name}; add it.")
    return kind(**{name: _typed(value, types[name], f"{where}: {name}") for name, value in table.items()})


def _typed(value: Any, kind: Any, where: str) -> Any:
    if kind == list[str]:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        raise SettingsError(f'{where} must be a list of names, such as ["car.local"].')
    allowed = tuple(k for k in (get_args(kind) or (kind,)) if k is not type(None))
    if float in allowed and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
        value = float(value)
    if isinstance(value, allowed) and not (isinstance(value, bool) and bool not in allowed):
        if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value < 1e9:
            raise SettingsError(f"{where} is {value}; give a number from 0 on.")
        return value
    names = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
    raise SettingsError(f"{where} is {value!r}; it must be {names[allowed[0]]}.")


def _known(table: dict[str, Any], names: tuple[str, ...], where: str, what: str) -> None:
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}."
            raise SettingsError(f"{where}: {name} is not a {what}; {hint}")


def _check_cars(config: Config, where: str) -> None:
    seen: set[str] = set()
    for car in config.cars:
        if not _ID.fullmatch(car.id):
            raise SettingsError(
                f"{where}: the id {car.id!r} must be letters, digits, - _ or . (at most 64); choose such a one."
            )
        if car.id in seen:
            raise SettingsError(f"{where}: two cars have the id {car.id}; give each its own.")
        seen.add(car.id)
        _check_source(car, config, f"{where}: car {car.id}")
    if config.fleet is not None and config.fleet.source not in ("json", "abrp"):
        raise SettingsError(f"{where}: [fleet] takes source json or abrp, not {config.fleet.source}.")


def _check_source(car: Car, config: Config, where: str) -> None:
    if car.source not in SOURCES:
        raise SettingsError(f"{where}: {car.source!r} is not a source; use one of {', '.join(SOURCES)}.")
    need = SOURCES[car.source]
    if need and getattr(car, need) is None:
        raise SettingsError(f"{where}: the source {car.source} needs {need}; add it.")
    if need == "topic" and config.mqtt is None:
        raise SettingsError(
            f"{where}: the source {car.source} comes over MQTT; add an [mqtt] section with the broker's host."
        )
    if car.topic and (any(mark in car.topic for mark in "#+\0") or not car.topic.strip("/")):
        raise SettingsError(
            f"{where}: the topic {car.topic!r} must be plain, without + and #; name the car's own topic."
        )
    if car.capacity_kwh is not None and not 0 < car.capacity_kwh <= 2000:
        raise SettingsError(
            f"{where}: capacity_kwh is {car.capacity_kwh}; give the battery's usable energy, such as 64."
        )
    if not 0 <= car.reserve_soc < 100:
        raise SettingsError(f"{where}: reserve_soc is {car.reserve_soc}; give a percentage from 0 to 99.")
    if car.power_unit not in (None, "W", "kW"):
        raise SettingsError(f"{where}: power_unit is {car.power_unit!r}; it is W or kW.")
    if not 0.01 <= car.speed <= 10_000:
        raise SettingsError(f"{where}: speed is {car.speed}; a replay runs 0.01 to 10000 times as fast.")


def check_server(server: Server, where: str, folder: Path = Path()) -> None:
    """Anything but this machine's own address needs a token in a file that only its owner may read."""
    if not 0 <= server.port <= 65535:
        raise SettingsError(f"{where}: [server] port is {server.port}; give one from 1 to 65535.")
    if (server.cert is None) != (server.key is None):
        raise SettingsError(f"{where}: [server] needs cert and key together for TLS; give both or neither.")
    if server.host not in LOCAL and server.token_file is None:
        raise SettingsError(
            f"{where}: [server] host {server.host} can be reached from elsewhere; set token_file to a file with a secret "
            "(chmod 600), or listen on 127.0.0.1."
        )
    read_token(server, folder)


def read_token(server: Server, folder: Path = Path()) -> str | None:
    """The secret that requests must carry, or None."""
    if server.token_file is None:
        return None
    path = folder / Path(server.token_file).expanduser()
    try:
        mode, token = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"{path}: the token cannot be read ({problem}); write a secret into it and chmod 600."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"{path}: others may read the token; chmod 600 it.")
    if len(token) < 16:
        raise SettingsError(f"{path}: the token has {len(token)} characters; use 16 or more (openssl rand -hex 24).")
    return token
