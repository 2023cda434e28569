"""Seeded mutations of bytes: flipped, cut, repeated, swapped, and the words that break parsers; for JSON, of values in their places."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

WORDS = (
    b"NaN", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-310", b"9" * 400, b"0", b"-0", b"-1", b"2147483648", b"1e18", b'"', b'""', b",", b";",
    b"\t", b"\n", b"\r\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"[", b"{", b"]" * 50, b"[" * 3000, b"null", b"true", b"\\N", b"\\.", b"1,5", b"1.234,5",
    b"time_s", b"speed_kmh", b"segment", b"trip_id", b"23:59:59.999", b"2024-02-30", b"A" * 5000, b"%s%n", b"\x1b[31m", "℃".encode(), b"12:00:00", b"-", b"1_000",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1e308, -1e308, 1e-310, 1e18, -1e18, 2**31, 2**63, 10**400, float("nan"), float("inf"), "", "x", "1", "A" * 3000, [], {}, [0], {"a": 1}, [[]], 0.5,
)  # fmt: skip


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to five changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        data = rng.choice(_CHANGES)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 16))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return rng.choice((data[:a], data[b:], data[:a] + data[b:]))


def _word(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(WORDS) + data[at + rng.choice((0, 0, 1, 5)) :]


def _cell(data: bytes, rng: random.Random) -> bytes:
    """Another word in place of a cell of a text table."""
    sign = rng.choice((b",", b";", b"\t", b"\n"))
    cells = data.split(sign)
    cells[rng.randrange(len(cells))] = rng.choice(WORDS)
    return sign.join(cells)


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Lines dropped, doubled, swapped, or the header somewhere else."""
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(5)
    if how == 0:
        del lines[i]
    elif how == 1:
        lines.insert(j, lines[i])
    elif how == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif how == 3:
        lines.insert(j, lines[0])
    else:
        lines[i:j] = []
    return b"\n".join(lines)


def _repeat(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:b] + data[a:b] * rng.choice((1, 2, 10)) + data[b:] if b - a < 10_000 else data


_CHANGES = (_flip, _cut, _word, _word, _cell, _cell, _lines, _repeat)


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere, or bytes changed."""
    if rng.random() < 0.2:
        return mutate(data, rng)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _place(value, rng)
    return json.dumps(value).encode()


def _place(value: Any, rng: random.Random) -> None:
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            value = inner
            continue
        how = rng.random()
        if how < 0.1 and isinstance(value, dict):
            del value[key]
        elif how < 0.2 and isinstance(inner, int | float) and not isinstance(inner, bool) and abs(inner) < 1e200:
            value[key] = inner * rng.choice((-1, 1e3, 1e-3, 1e12, 1 + 1e-9))
        else:
            value[key] = copy.deepcopy(rng.choice(VALUES))
        return
