"""What every request passes before it is answered: right host, right origin, token, size and rate; and the headers of every answer."""

from __future__ import annotations

import hmac
import ipaddress
import time
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evband.live.config import LOCAL, Server

COOKIE = "evband_token"
OPEN_PATHS = ("/healthz", "/1/tlm/send")  # no token: the first tells nothing, the second has tokens of its own
HEADERS = (
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
     b"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
)  # fmt: skip
SAFE = ("GET", "HEAD", "OPTIONS")
MOST_ADDRESSES = 10_000


class Guard:
    """ASGI around the application."""

    def __init__(self, app: ASGIApp, server: Server, token: str | None) -> None:
        self._app, self._server, self._token = app, server, token
        self._names = {*LOCAL, server.host.lower(), *(name.lower() for name in server.allowed_hosts)}
        self._asked: dict[str, tuple[float, float]] = {}  # address -> (time, requests left)
        self.refused: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        status, why = self._refusal(scope)
        if status:
            self.refused[str(status)] = self.refused.get(str(status), 0) + 1
            await self._refuse(scope, receive, send, status, why)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._limited(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        headers = Headers(scope=scope)
        host = _host(headers.get("host", ""))
        if host is None or not self._own(host):
            return 421, "This server is not known by that name; add it to [server] allowed_hosts."
        origin = headers.get("origin")
        browser = scope["type"] == "websocket" or scope["method"] not in SAFE
        if origin is not None and browser and _netloc(origin) != headers.get("host", "").lower():
            return 403, "Pages of other sites may not use this server."
        if not self._in_time(scope):
            return 429, "Too many requests; wait a second."
        if self._token is not None and scope["path"] not in OPEN_PATHS and not self._knows(headers, scope):
            return 401, "A token is needed: send it as Authorization: Bearer TOKEN, or open /?token=TOKEN once."
        if int(headers.get("content-length", "0") if headers.get("content-length", "0").isdigit() else 0) > self._most:
            return 413, self._too_large
        return 0, ""

    @property
    def _too_large(self) -> str:
        return f"The body is larger than {self._server.max_body_kb} kB."

    @property
    def _most(self) -> int:
        return self._server.max_body_kb * 1024

    def _own(self, host: str) -> bool:
        if host in self._names:
            return True
        if self._server.host not in ("0.0.0.0", "::"):
            return False
        try:
            ipaddress.ip_address(
                host
            )  # a name may be rebound to us by somebody else; an address is ours or does not arrive
        except ValueError:
            return False
        return True

    def _in_time(self, scope: Scope) -> bool:
        """A bucket of requests for each address, refilled every second."""
        address, now = (scope.get("client") or ("?", 0))[0], time.monotonic()
        rate = float(self._server.max_requests_per_s)
        before, left = self._asked.get(address, (now, 2 * rate))
        left = min(left + (now - before) * rate, 2 * rate)
        if len(self._asked) > MOST_ADDRESSES:
            self._asked.clear()
        self._asked[address] = (now, max(left - 1.0, 0.0))
        return left >= 1.0

    def _knows(self, headers: Headers, scope: Scope) -> bool:
        assert self._token is not None
        found = headers.get("authorization", "")
        given = [found[7:].strip()] if found.lower().startswith("bearer ") else []
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
            given += [jar[COOKIE].value] if COOKIE in jar else []
        except CookieError:
            pass
        if scope["path"] == "/" and scope["query_string"].startswith(b"token="):
            given.append(scope["query_string"][6:].decode("ascii", "replace"))
        return any(hmac.compare_digest(one.encode(), self._token.encode()) for one in given)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, why: str) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 4000 + status, "reason": why[:100]})
            return
        headers = {"www-authenticate": "Bearer"} if status == 401 else {}
        await JSONResponse({"error": why}, status, headers=headers)(scope, receive, _with_headers(send))

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Also a body that does not tell its length has its limit."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise HTTPException(413, self._too_large)
            return message

        await self._app(scope, counted, send)


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
        await send(message)

    return wrapped


def _host(value: str) -> str | None:
    """The name in a Host header, without its port; None where it is not one."""
    try:
        name = urlsplit(f"//{value}").hostname
    except ValueError:
        return None
    return name.lower() if name else None


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
