"""The ELM327's own language: AT commands, hexadecimal questions and answers, and ISO-TP frames put together.

Headers are switched on, so that every line begins with who answered and its frame type is seen: a single frame `0L`,
a first frame `1L LL` and consecutive ones `2N`. Answers of several control units are kept apart.
"""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Any, Self

from evband.errors import EvbandError, require

SETUP = ("ATE0", "ATL0", "ATS0", "ATH1", "ATCAF1", "ATSP0", "ATAT1")
SLOWEST_S = 5.0  # an answer, and the search for the protocol
LONGEST = 16_384  # bytes of an answer: more is noise


class AdapterError(EvbandError):
    """The dongle is not there, or is not one."""


class Adapter:
    """A dongle that was set up; use with `with`."""

    def __init__(self, port: str, baud: int = 38400) -> None:
        require("serial", "Reading an OBD dongle")
        import serial

        self._header = ""
        try:
            self._port: Any = serial.serial_for_url(port, baudrate=baud, timeout=0.2, write_timeout=2.0)
        except (OSError, ValueError) as problem:
            raise AdapterError(
                f"{port}: the dongle cannot be opened ({problem}); check the name and that it is plugged in."
            ) from None
        self._name = port

    def __enter__(self) -> Self:
        try:
            self.command("ATZ")
            version = self.command("ATI")
            if "ELM" not in version.upper():
                raise AdapterError(
                    f"{self._name}: this does not answer like an ELM327 ({version[:40]!r}); check port and baud."
                )
            for line in SETUP:
                self.command(line)
        except BaseException:
            self._port.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._port.close()

    def command(self, line: str) -> str:
        """Send a line; everything up to the next prompt."""
        try:
            self._port.reset_input_buffer()
            self._port.write(line.encode("ascii") + b"\r")
            return self._until_prompt()
        except AdapterError:
            raise
        except Exception as problem:  # a port that vanishes raises OSError, termios.error or TypeError, by platform
            raise AdapterError(f"{self._name}: the dongle is gone ({problem}); plug it in again.") from None

    def _until_prompt(self) -> str:
        data, end = bytearray(), time.monotonic() + SLOWEST_S
        while time.monotonic() < end and len(data) < LONGEST:
            data += self._port.read(max(self._port.in_waiting, 1))
            if data.endswith(b">"):
                return data[:-1].decode("ascii", "replace").replace("\0", "").strip()
        raise AdapterError(f"{self._name}: the dongle does not answer; unplug it and plug it in again.")

    def ask(self, command: str, header: str = "7DF") -> bytes | None:
        """The data of the first whole answer, without the echo of service and PID; None where the car has none."""
        if header != self._header:
            self.command(f"ATSH{header}")
            self._header = header
        return answer(self.command(command), command)


def answer(text: str, command: str) -> bytes | None:
    """The data in the lines of an answer; of several control units the first that answered positively."""
    echo = bytes([int(command[:2], 16) + 0x40]) + bytes.fromhex(command[2:])
    for message in messages(text):
        if message.startswith(echo):
            return message[len(echo) :]
    return None


def messages(text: str) -> list[bytes]:
    """Every whole ISO-TP message in the lines, in the order in which they end; words such as NO DATA are passed over."""
    open_: dict[str, tuple[int, bytearray, int]] = {}  # sender -> length, data so far, next number
    done: list[bytes] = []
    for line in text.replace("\r", "\n").split("\n"):
        compact = line.replace(" ", "").strip().upper()
        if not re.fullmatch(r"[0-9A-F]+", compact):
            continue
        size = 3 if len(compact) % 2 else 8  # an 11-bit header has an odd number of digits, a 29-bit one eight
        sender, data = compact[:size], bytes.fromhex(compact[size:])
        if not data:
            continue
        kind = data[0] >> 4
        if kind == 0 and 0 < data[0] & 0x0F <= len(data) - 1:
            done.append(bytes(data[1 : 1 + (data[0] & 0x0F)]))
        elif kind == 1 and len(data) >= 2:
            open_[sender] = ((data[0] & 0x0F) << 8 | data[1], bytearray(data[2:]), 1)
        elif kind == 2 and sender in open_:
            length, so_far, number = open_[sender]
            if data[0] & 0x0F != number:  # a frame was lost: what follows cannot be put together
                del open_[sender]
                continue
            so_far += data[1:]
            open_[sender] = (length, so_far, (number + 1) & 0x0F)
            if len(so_far) >= length:
                done.append(bytes(so_far[:length]))
                del open_[sender]
    return done
