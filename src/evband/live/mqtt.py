"""A small MQTT 3.1.1 client made for many messages: packets are cut out of one buffer and written in one go.

A general client spends two or three system calls and thirty microseconds on a message; ten thousand cars send and
receive twenty thousand per second. What is needed here is little: subscribe, receive with QoS 0 or 1, publish with
QoS 0 or 1, a will, TLS, and to come back by itself. The session is kept by the broker, so that messages with QoS 1
that were sent while we were away arrive afterwards; with `hold` also those that were read but not kept yet, since a
message is acknowledged only once its content is safe.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from evband.errors import SettingsError
from evband.live.config import Mqtt

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 2, 3, 4, 8, 12, 14
LARGEST = 256 * 1024  # bytes of a packet that are read; the rest of a larger one is skipped as it comes
WAITING = 32 * 1024 * 1024  # bytes that may wait to be sent; then the oldest are dropped
BACKOFF_S = (0.5, 1.0, 2.0, 4.0)  # between attempts, the last one for ever
REFUSALS = {
    1: "wrong protocol",
    2: "client id refused",
    3: "unavailable",
    4: "bad username or password",
    5: "not authorised",
}
Message = Callable[[str, bytes, bool], None]  # topic, payload, retained


def packet(kind: int, flags: int, body: bytes) -> bytes:
    """A control packet: type and flags, the length in 7-bit groups, the body."""
    length, head = len(body), bytearray([kind << 4 | flags])
    while True:
        group, length = length & 0x7F, length >> 7
        head.append(group | (0x80 if length else 0))
        if not length:
            return bytes(head) + body


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(data)) + data


def publish_packet(topic: str, payload: bytes, retain: bool = False, number: int = 0) -> bytes:
    """QoS 1 with a packet number, else QoS 0."""
    head = text(topic) + (struct.pack(">H", number) if number else b"")
    return packet(PUBLISH, (2 if number else 0) | int(retain), head + payload)


class Packets:
    """Packets out of a stream of bytes; of one that is too large the beginning, so that it can be counted and acknowledged."""

    def __init__(self) -> None:
        self._buffer, self._skip, self.skipped = bytearray(), 0, 0

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """(kind, flags, body) of every packet that is complete now."""
        if self._skip:
            gone = min(self._skip, len(data))
            self._skip -= gone
            data = data[gone:]
        buffer = self._buffer
        buffer += data
        at, end = 0, len(buffer)
        while end - at >= 2:
            length, shift, body = 0, 0, at + 1
            while body < end and body - at <= 4:
                byte = buffer[body]
                length |= (byte & 0x7F) << shift
                shift += 7
                body += 1
                if not byte & 0x80:
                    break
            else:
                if body - at > 4:
                    raise ConnectionError("the broker sent a packet without an end to its length")
                break
            read = min(length, LARGEST)
            if body + read > end:
                break
            yield buffer[at] >> 4, buffer[at] & 0x0F, bytes(buffer[body : body + read])
            at = min(body + length, end)
            if length > LARGEST:
                self.skipped += 1
                self._skip = body + length - at
        del buffer[:at]


class Client:
    """One connection, kept up by a thread that reads and one that writes."""

    def __init__(
        self,
        settings: Mqtt,
        filters: Iterable[str],
        on_message: Message,
        on_connect: Callable[[], None] = lambda: None,
        will: tuple[str, bytes] | None = None,
        hold: bool = False,
    ) -> None:
        self.settings, self._filters = settings, list(filters)
        self._on_message, self._on_connect = on_message, on_connect
        self._will, self._password = will, settings.password()
        self._hold, self._held, self._acknowledged = hold, deque[bytes](), 0
        self._context = self._tls() if settings.tls else None
        self._out: deque[bytes] = deque()
        self._waiting, self._number = 0, 0
        self._wake, self._stop = threading.Condition(), threading.Event()
        self._socket: socket.socket | None = None
        self.connected = False
        self.problem: str | None = "not connected yet"
        self.received = self.sent = self.dropped = self.skipped = self.connections = 0
        self._threads = [
            threading.Thread(target=self._keep_up, name="mqtt-read", daemon=True),
            threading.Thread(target=self._write, name="mqtt-write", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Say goodbye; the broker then does not send the will, so publish that state before."""
        deadline = time.monotonic() + 2.0
        while self.connected and self._out and time.monotonic() < deadline:
            time.sleep(0.02)
        self._stop.set()
        with self._wake:
            self._wake.notify_all()
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                connection.sendall(packet(DISCONNECT, 0, b""))
                connection.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(3.0)

    def received_so_far(self) -> Callable[[], None] | None:
        """A call that acknowledges all messages handed on before now, for when their content is safe; None: there are none."""
        if not self._held:
            return None
        with self._wake:
            connection, mark = self.connections, self._acknowledged + len(self._held)

        def acknowledge() -> None:
            with self._wake:
                if connection != self.connections:  # a new one is sent again what the last left open
                    return
                due = [self._held.popleft() for _ in range(min(mark - self._acknowledged, len(self._held)))]
                self._acknowledged += len(due)
                if due:
                    self._queue(b"".join(due), 0)

        return acknowledge

    def publish(self, topic: str, payload: bytes, retain: bool = False, qos: int = 0) -> None:
        """Send when possible; while the broker is away nothing waits (what must not be lost is sent on connecting)."""
        number = 0
        if qos:
            with self._wake:
                number = self._number = self._number % 0xFFFF + 1
        self._queue(publish_packet(topic, payload, retain, number), 1)

    def publish_many(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Many messages with QoS 0, joined into one write."""
        packets = [publish_packet(topic, payload) for topic, payload in messages]
        if packets:
            self._queue(b"".join(packets), len(packets))

    def _queue(self, data: bytes, messages: int) -> None:
        with self._wake:
            if not self.connected:
                self.dropped += messages
                return
            self._out.append(data)
            self._waiting += len(data)
            self.sent += messages
            while self._waiting > WAITING:
                self._waiting -= len(self._out.popleft())
                self.dropped += 1
            self._wake.notify()

    def _write(self) -> None:
        while not self._stop.is_set():
            with self._wake:
                self._wake.wait_for(lambda: self._out or self._stop.is_set(), 1.0)
                data = b"".join(self._out)
                self._out.clear()
                self._waiting = 0
                connection = self._socket
            if data and connection is not None:
                try:
                    connection.sendall(data)
                except OSError:
                    self._hang_up(connection)

    def _keep_up(self) -> None:
        attempt = 0
        while not self._stop.is_set():
            try:
                connection = self._connect()
                attempt = 0
                self._read(connection)
            except (OSError, ssl.SSLError, SettingsError) as problem:
                self.problem = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
            finally:
                self._lost()
            self._stop.wait(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            attempt += 1

    def _lost(self) -> None:
        with self._wake:
            self.connected = False
            self._out.clear()
            self._held.clear()
            self._waiting = self._acknowledged = 0
            connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _hang_up(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # the reading thread notices and connects again

    def _connect(self) -> socket.socket:
        s = self.settings
        connection = socket.create_connection((s.host, s.port), timeout=5.0)
        self._socket = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if self._context is not None:
            connection = self._socket = self._context.wrap_socket(connection, server_hostname=s.host)
        flags, body = 0, text(s.client_id)
        if self._will is not None:
            flags |= 0x04 | 0x08 | 0x20  # a will, QoS 1, retained
            body += text(self._will[0]) + text(self._will[1])
        if s.username is not None:
            flags |= 0x80
            body += text(s.username)
            if self._password is not None:
                flags |= 0x40
                body += text(self._password)
        connection.sendall(
            packet(CONNECT, 0, text("MQTT") + bytes([4, flags]) + struct.pack(">H", s.keepalive_s) + body)
        )
        return connection

    def _read(self, connection: socket.socket) -> None:
        packets, heard, asked = Packets(), time.monotonic(), 0.0
        connection.settimeout(min(1.0, self.settings.keepalive_s / 4))
        while not self._stop.is_set():
            try:
                data = connection.recv(1 << 18)
            except TimeoutError:
                data = None
            now = time.monotonic()
            if data is not None:
                if not data:
                    raise ConnectionError("the broker closed the connection")
                heard = now
                self._handle(packets, data, connection)
            if now - asked > self.settings.keepalive_s / 2 and self.connected:
                self._queue(packet(PINGREQ, 0, b""), 0)
                asked = now
            if now - heard > 1.5 * self.settings.keepalive_s:
                raise ConnectionError("the broker went silent")

    def _handle(self, packets: Packets, data: bytes, connection: socket.socket) -> None:
        answers = []
        for kind, flags, body in packets.feed(data):
            if kind in (PUBLISH, CONNACK) and len(body) < 2:
                raise ConnectionError("the broker sent a packet that is cut short")
            if kind == PUBLISH:
                size = body[0] << 8 | body[1]
                at = 2 + size + (2 if flags & 0x06 else 0)
                self.received += 1
                self._on_message(body[2 : 2 + size].decode("utf-8", "replace"), body[at:], bool(flags & 1))
                if flags & 0x06:
                    answers.append(packet(PUBACK, 0, body[at - 2 : at]))
            elif kind == CONNACK:
                self._accepted(body[1], connection)
        if self._hold:
            with self._wake:
                self._held += answers
        elif answers:
            self._queue(b"".join(answers), 0)
        self.skipped += packets.skipped
        packets.skipped = 0

    def _accepted(self, code: int, connection: socket.socket) -> None:
        if code:
            raise ConnectionError(f"the broker refused us ({REFUSALS.get(code, code)})")
        if self._filters:
            body = struct.pack(">H", 1) + b"".join(text(name) + b"\x01" for name in self._filters)
            connection.sendall(packet(SUBSCRIBE, 2, body))
        with self._wake:
            self.connected, self.problem = True, None
            self.connections += 1
        self._on_connect()

    def _tls(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.settings.ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise SettingsError(
                f"{self.settings.ca_file}: the broker's certificate cannot be read ({problem})."
            ) from None
