"""Formulas over the bytes of an answer, as makers' PID lists write them; parsed here, never evaluated as code.

Bytes are `A`, `B`, ... `Z`, `AA` ... (Torque's letters, counted after the command's echo), `[3]` or, big-endian,
`[3:5]`; WiCAN's `B03`, `[B03:B05]` and, with a sign, `S03`, `[S03:S05]`; `signed(x, bits)`. Operators: + - * / & | << >>.

>>> compiled("(signed(K*256+L, 16))/10")(bytes(10) + bytes([255, 56]))
-20.0
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evband.errors import SettingsError

Formula = Callable[[bytes], float]
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|([A-Za-z]+\d*)|(<<|>>|[-+*/&|(),\[\]:]))")
_LEVELS = (("|",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/"))
LONGEST = 400
DEEPEST = 40


def compiled(text: str) -> Formula:
    """A formula as a function of the answer's bytes; IndexError where the answer is too short."""
    if len(text) > LONGEST:
        raise SettingsError(f"The formula {text[:40]!r}... is longer than {LONGEST} characters; shorten it.")
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._tokens = self._split(text)

    def _split(self, text: str) -> list[str]:
        tokens, at = [], 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._error(f"{text[at:].strip()[0]!r} is not part of a formula")
            tokens.append(found[1] or found[2] or found[3])
            at = found.end()
        return tokens

    def _error(self, what: str) -> SettingsError:
        return SettingsError(f"The formula {self._text!r} cannot be read: {what}; correct it.")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self, wanted: str | None = None) -> str:
        token = self._peek()
        if not token or (wanted is not None and token != wanted):
            raise self._error(f"{wanted or 'a value'} is missing")
        self._at += 1
        return token

    def whole(self) -> Formula:
        formula = self._level(0)
        if self._peek():
            raise self._error(f"{self._peek()!r} is left over")
        return formula

    def _level(self, level: int) -> Formula:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._peek() in _LEVELS[level]:
            left = _joined(self._next(), left, self._level(level + 1))
        return left

    def _unary(self) -> Formula:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error("it is nested too deeply")
        try:
            if self._peek() == "-":
                self._next()
                inner = self._unary()
                return lambda data: -inner(data)
            return self._atom()
        finally:
            self._depth -= 1

    def _atom(self) -> Formula:
        token = self._next()
        if token == "(":
            inner = self._level(0)
            self._next(")")
            return inner
        if token == "[":
            return self._span()
        if token[0].isdigit() or token[0] == ".":
            value = float(token)
            return lambda data: value
        if token.lower() == "signed":
            self._next("(")
            inner = self._level(0)
            bits = "8"
            if self._peek() == ",":
                self._next()
                bits = self._next()
            self._next(")")
            if not (bits.isdecimal() and 1 <= int(bits[:9]) <= 64):
                raise self._error(f"signed has {bits[:20]} bits; 1 to 64 there are")
            return lambda data: _signed(inner(data), int(bits))
        first, sign = self._byte(token)
        return lambda data: _bytes(data, first, first, sign)

    def _span(self) -> Formula:
        """What stands between brackets: [3], [3:5], [B03:B05], [S03:S05]."""
        first, sign = self._byte(self._next())
        last = first
        if self._peek() == ":":
            self._next()
            last, _ = self._byte(self._next())
        self._next("]")
        if last < first or last - first > 7:
            raise self._error("a span of bytes goes up, over at most 8")
        return lambda data: _bytes(data, first, last, sign)

    def _byte(self, token: str) -> tuple[int, bool]:
        """(index, signed) of a byte's name."""
        if token.isdigit():
            return int(token), False
        if re.fullmatch(r"[BSbs]\d+", token):
            return int(token[1:]), token[0] in "Ss"
        if re.fullmatch(r"[A-Z]{1,2}", token):
            index = 0
            for letter in token:
                index = 26 * index + ord(letter) - 64
            return index - 1, False
        raise self._error(f"{token!r} is not a byte")


def _bytes(data: bytes, first: int, last: int, sign: bool) -> float:
    if last >= len(data):
        raise IndexError(f"the answer has {len(data)} bytes, the formula asks for number {last}")
    return float(int.from_bytes(data[first : last + 1], "big", signed=sign))


def _signed(value: float, bits: int) -> float:
    whole = int(value) & ((1 << bits) - 1)
    return float(whole - (1 << bits) if whole >> (bits - 1) else whole)


def _joined(operator: str, left: Formula, right: Formula) -> Formula:
    if operator == "+":
        return lambda data: left(data) + right(data)
    if operator == "-":
        return lambda data: left(data) - right(data)
    if operator == "*":
        return lambda data: left(data) * right(data)
    if operator == "/":
        return lambda data: left(data) / right(data)
    if operator == "&":
        return lambda data: float(int(left(data)) & int(right(data)))
    if operator == "|":
        return lambda data: float(int(left(data)) | int(right(data)))
    if operator == "<<":
        return lambda data: float(int(left(data)) << min(int(right(data)), 64))
    return lambda data: float(int(left(data)) >> min(int(right(data)), 64))
