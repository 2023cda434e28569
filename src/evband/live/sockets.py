"""WebSockets: states as they change, to each client at its own pace; and readings in."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from evband.live.reading import LARGEST
from evband.live.service import Service

EVERY_S = 0.1  # a client gets at most ten messages per second, whatever the number of cars


class Client:
    """One browser: what changed since it last got something, the newest of each car. A slow one gets less, never late."""

    def __init__(self, cars: set[str] | None) -> None:
        self._cars, self._news, self.event = cars, dict[str, bytes](), asyncio.Event()

    def take(self, updates: list[tuple[str, bytes]]) -> None:
        wanted = updates if self._cars is None else [one for one in updates if one[0] in self._cars]
        if wanted:
            self._news.update(wanted)
            self.event.set()

    def message(self) -> str:
        news, self._news = self._news, {}
        self.event.clear()
        return '{"cars":[' + ",".join(state.decode() for state in news.values()) + "]}"


class Sockets:
    """All clients of a service."""

    def __init__(self, service: Service) -> None:
        self._service, self._clients = service, set[Client]()
        self._loop: asyncio.AbstractEventLoop | None = None
        service.listen(self._take_updates)

    @property
    def count(self) -> int:
        return len(self._clients)

    def _take_updates(self, updates: list[tuple[str, bytes]]) -> None:
        """From the engine's thread."""
        if self._clients and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._fan_out, updates)

    def _fan_out(self, updates: list[tuple[str, bytes]]) -> None:
        for client in self._clients:
            client.take(updates)

    async def live(self, socket: WebSocket) -> None:
        """`/api/live?car=ID&car=ID`: the last state of these cars (all by default) at once, then what changes."""
        self._loop = asyncio.get_running_loop()
        if len(self._clients) >= self._service.config.server.max_clients:
            await socket.close(4429, "Too many clients.")
            return
        await socket.accept()
        cars = set(socket.query_params.getlist("car")) or None
        client = Client(cars)
        self._clients.add(client)
        listening = asyncio.create_task(self._until_gone(socket))
        try:
            client.take(list(self._service.latest.items()))
            client.event.set()
            while not listening.done():
                waiting = asyncio.create_task(client.event.wait())
                await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if client.event.is_set():
                    await socket.send_text(client.message())
                    await asyncio.sleep(EVERY_S)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            listening.cancel()
            self._clients.discard(client)

    async def _until_gone(self, socket: WebSocket) -> None:
        """What a client says here means nothing; that it is gone does."""
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass

    async def lines(self, socket: WebSocket) -> None:
        """`/api/in`: each message is JSON lines, as POST /api/in takes them, and is answered by what became of them."""
        from evband.live.http import take_lines

        await socket.accept()
        try:
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                body = message.get("bytes") or (message.get("text") or "").encode()
                if len(body) > LARGEST:
                    self._service.assembler.drops.add("too_large")
                    await socket.close(1009, "The message is too large.")
                    return
                taken, errors = take_lines(self._service, body, None)
                await socket.send_json({"taken": taken, "errors": errors[:20]})
        except (WebSocketDisconnect, RuntimeError):
            return
