"""The page and the API: what `GET /openapi.json` describes."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from evband import __version__
from evband.errors import EvbandError
from evband.live.config import read_token
from evband.live.guard import COOKIE, Guard
from evband.live.metrics import metrics
from evband.live.openapi import document
from evband.live.reading import sample
from evband.live.service import Service
from evband.live.sockets import Sockets
from evband.live.sources.json_messages import decode

PAGE = Path(__file__).parent / "page"
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json",
         ".png": "image/png", ".woff2": "font/woff2", ".webmanifest": "application/manifest+json", ".txt": "text/plain"}  # fmt: skip
FILES = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.suffix in KINDS}
MOST_LINES = 10_000


class Api:
    """Answers of one service."""

    def __init__(self, service: Service, extras: dict[str, Any] | None = None) -> None:
        self.service, self.extras = service, extras or {}
        self.tokens = {car.token or car.id: car.id for car in service.roster.cars}
        self.own_tokens = {car.id for car in service.roster.cars if car.token is not None}
        self.guarded = service.config.server.token_file is not None
        self.sockets = Sockets(service)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self.index),
            Route("/api/cars", self.cars),
            Route("/api/cars/{car}", self.car, methods=["GET"]),
            Route("/api/cars/{car}", self.delete, methods=["DELETE"]),
            Route("/api/cars/{car}/route", self.route, methods=["PUT"]),
            Route("/api/cars/{car}/route", self.no_route, methods=["DELETE"]),
            Route("/api/cars/{car}/trips", self.trips),
            Route("/api/cars/{car}/trips/{trip}", self.trip),
            Route("/api/cars/{car}/in", self.lines, methods=["POST"]),
            Route("/api/in", self.lines, methods=["POST"]),
            Route("/1/tlm/send", self.abrp, methods=["GET", "POST"]),
            WebSocketRoute("/api/live", self.sockets.live),
            WebSocketRoute("/api/in", self.sockets.lines),
            Route("/metrics", self.metrics),
            Route("/healthz", self.health),
            Route("/openapi.json", self.openapi),
            Route("/{file:path}", self.file),
        ]

    # The page -------------------------------------------------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        if "token" in request.query_params:  # once by address, from then on by cookie
            answer = RedirectResponse("/", 303)
            secure = request.url.scheme == "https"
            answer.set_cookie(
                COOKIE, request.query_params["token"], max_age=31536000, httponly=True, samesite="strict", secure=secure
            )
            return answer
        return self._file("index.html")

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["file"])

    def _file(self, name: str) -> Response:
        """A file of the page's folder, and of no other: names are looked up, never joined to a path."""
        path = FILES.get(name)
        if path is None:
            raise HTTPException(404, "There is no such page.")
        return FileResponse(path, media_type=KINDS[path.suffix], headers={"cache-control": "no-cache"})

    # Cars -----------------------------------------------------------------------------------------------------------

    def _car(self, request: Request) -> str:
        car = str(request.path_params["car"])
        if self.service.where(car) is None:
            raise HTTPException(404, f"There is no car {car[:64]!r}; GET /api/cars lists them.")
        return car

    async def cars(self, request: Request) -> Response:
        latest = self.service.latest
        found = [latest[car] for car in self.service.ids if car in latest]
        return Response(b"[" + b",".join(found) + b"]", media_type="application/json")

    async def car(self, request: Request) -> Response:
        car = self._car(request)
        return JSONResponse(await run_in_threadpool(self._details, car))

    def _details(self, car: str) -> dict[str, Any]:
        where = self.service.where(car)
        assert where is not None
        number, group, ranges, local = where
        found: dict[str, Any] = json.loads(self.service.latest.get(car, b"{}"))
        with self.service.lock:
            found |= ranges.details(local) | {"drops": self.service.assembler.drops.of(number)}
            felt = float(ranges.ambient(np.array([local]), self.service.assembler.newest[group.cars])[0])
            found |= {"ambient_temp_c": None if felt != felt else felt}
            found |= {"reserve_soc": float(ranges.reserve[local]), "level": group.level, "hz": group.hz}
            found |= {"learned": None if group.learning is None else group.learning.details()}
            capacity = float(ranges.capacity(np.array([local]))[0])
        settings = self.service.roster.cars[number]
        found |= {"source": settings.source, "calibrate": settings.calibrate}
        found |= {"capacity_kwh": None if capacity != capacity else capacity}
        return found

    async def delete(self, request: Request) -> Response:
        car = self._car(request)
        await run_in_threadpool(self.service.forget, car)
        return JSONResponse({"deleted": car})

    async def route(self, request: Request) -> Response:
        car, body = self._car(request), await request.body()
        text = body.decode("utf-8", "replace")
        try:
            work = self.service.pool.submit(self.service.routes.plan, car, text)
            way = await asyncio.wait_for(asyncio.wrap_future(work), 60.0)
        except (EvbandError, ValueError) as problem:
            raise HTTPException(422, f"The route cannot be used: {problem}") from None
        except TimeoutError:
            raise HTTPException(503, "Planning took too long; give a shorter route.") from None
        self.service.routes.set(car, way, text)
        return JSONResponse({"id": car, "route_km": way.end_km, "notes": list(way.notes)})

    async def no_route(self, request: Request) -> Response:
        car = self._car(request)
        self.service.routes.set(car, None)
        return JSONResponse({"id": car, "route_km": None})

    async def trips(self, request: Request) -> Response:
        car = self._car(request)
        store = self.service.store
        number = self.service.assembler.index[car]
        return JSONResponse([] if store is None else await run_in_threadpool(store.trips, number))

    async def trip(self, request: Request) -> Response:
        """One drive as CSV, Parquet or JSON, by the name's ending; `since` a time, if asked so."""
        car, name = self._car(request), str(request.path_params["trip"])
        stem, dot, ending = name.rpartition(".")
        kind = ending if dot and ending in ("csv", "parquet", "json") else "json"
        began = stem if kind == ending else name
        found: dict[str, list[Any]] = {}
        with suppress(ValueError):
            when, since = float(began), float(request.query_params.get("since", "0"))
            if self.service.store is not None:
                found = await run_in_threadpool(self._trip, self.service.assembler.index[car], when, since)
        if not found:
            raise HTTPException(404, f"There is no trip {name[:64]!r}; GET /api/cars/{car}/trips lists them.")
        if kind == "json":
            return JSONResponse(found)
        file = io.BytesIO()
        frame = pl.DataFrame(found, infer_schema_length=None)
        frame.write_csv(file) if kind == "csv" else frame.write_parquet(file)
        media = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}[kind]
        headers = {"content-disposition": f'attachment; filename="{car}-{int(when)}.{kind}"'}
        return Response(file.getvalue(), media_type=media, headers=headers)

    def _trip(self, number: int, when: float, since: float) -> dict[str, list[Any]]:
        """Columns of one drive in the vocabulary of logs, so that `evband predict` reads them again."""
        store = self.service.store
        assert store is not None
        near = [trip for trip in store.trips(number, 100_000) if abs(trip["began"] - when) < 0.002]
        rows = store.trip_rows(number, near[0]["began"], since) if near else {}
        if not rows.get("t"):
            return {}
        own = {"time_s": rows.pop("t"), "trip_id": [f"{when:.3f}"] * len(rows["segment"])}
        part = np.array(rows.pop("segment"))
        segment = np.append(0, np.cumsum(np.diff(part) != 0)).tolist()
        flags = {name: [bool(v) for v in rows.pop(name)] for name in ("warmup", "outside")}
        return own | {"segment": segment} | {name: v for name, v in rows.items() if name not in ("car", "trip")} | flags

    # Readings in ----------------------------------------------------------------------------------------------------

    async def lines(self, request: Request) -> Response:
        """JSON lines, of one car or each naming its own under `car` or `vehicle_id`."""
        own = self._car(request) if "car" in request.path_params else None
        body = await request.body()
        taken, errors = take_lines(self.service, body, own)
        return JSONResponse({"taken": taken, "errors": errors[:20]}, 200 if taken or not errors else 422)

    async def abrp(self, request: Request) -> Response:
        """ABRP's telemetry: token, api_key and tlm, in the query, a form or JSON."""
        given: dict[str, Any] = dict(request.query_params)
        body = await request.body()
        if "json" in request.headers.get("content-type", ""):
            with suppress(ValueError):
                found = decode(body)
                given |= found if isinstance(found, dict) else {}
        elif body:
            form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=100)
            given |= {name: values[-1] for name, values in form.items()}
        return self._abrp(given)

    def _abrp(self, given: dict[str, Any]) -> Response:
        car = self.tokens.get(str(given.get("token", "")))
        if car is None or (self.guarded and car not in self.own_tokens):
            self.service.assembler.drops.add("unknown_car")
            return JSONResponse(
                {"status": "error", "error": "The token belongs to no car; set token in its [[car]]."}, 401
            )
        try:
            tlm = given.get("tlm")
            tlm = decode(tlm) if isinstance(tlm, str) else tlm
            found = sample(car, tlm) if isinstance(tlm, dict) else None
        except ValueError:
            found = None
        if found is None:
            self.service.assembler.drops.add("not_readable", self.service.assembler.index[car])
            return JSONResponse({"status": "error", "error": "tlm is not a JSON object with utc, speed, soc, ..."}, 400)
        self.service.put(found)
        return JSONResponse({"status": "ok", "missing": [] if "speed_kmh" in found.values else ["speed"]})

    # About itself ---------------------------------------------------------------------------------------------------

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(
            metrics(self.service, self.extras), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def health(self, request: Request) -> Response:
        problems = self._problems()
        alive = self.service.alive
        return JSONResponse(
            {"status": "ok" if alive and not problems else "degraded", "version": __version__, "problems": problems},
            200 if alive else 503,
        )

    def _problems(self) -> list[str]:
        """What is wrong with the service itself, a sentence each."""
        client, store, feeds = self.extras.get("mqtt"), self.service.store, self.extras.get("feeds")
        found = [f"A step of the engine failed: {self.service.problem}."] if self.service.problem else []
        if client is not None and client.problem:
            where = f"{client.settings.host}:{client.settings.port}"
            found.append(f"The broker is not there ({where}: {client.problem}); what comes over MQTT stands still.")
        if store is not None and store.problem:
            found.append(f"Nothing is kept at the moment: {store.problem}.")
        return found + ([] if feeds is None else feeds.problems())

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(document())


def take_lines(service: Service, body: bytes, own: str | None) -> tuple[int, list[str]]:
    """(lines taken, what was wrong with the others)."""
    taken, errors = 0, []
    for number, line in enumerate(body.splitlines()[:MOST_LINES], 1):
        if not line.strip():
            continue
        try:
            found = decode(line)
            if not isinstance(found, dict):
                raise ValueError("it is not a JSON object")
            car = own if own is not None else str(found.get("car", found.get("vehicle_id", "")))
            if service.where(car) is None:
                service.assembler.drops.add("unknown_car")
                raise ValueError("it names no car of this server")
            read = sample(car, found)
            if read is None:
                raise ValueError("it has no channel")
        except (ValueError, RecursionError) as problem:
            service.assembler.drops.add("not_readable")
            errors.append(f"Line {number}: {str(problem)[:100]}")
            continue
        service.put(read)
        taken += 1
    return taken, errors


async def _error(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    what = problem.detail if isinstance(problem, HTTPException) else "Something went wrong here; the log has it."
    headers = getattr(problem, "headers", None)
    return JSONResponse({"error": what}, status, headers=headers)


def application(service: Service, extras: dict[str, Any] | None = None) -> ASGIApp:
    """The ASGI application, guarded."""
    api = Api(service, extras)
    app = Starlette(routes=api.routes(), exception_handlers={HTTPException: _error})
    return Guard(app, service.config.server, read_token(service.config.server, service.config.where))
