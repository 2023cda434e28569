"""Packets cut out of a stream, however it is chopped; giants skipped; the state on the wire."""

import random

from evband.live.mqtt import LARGEST, PINGREQ, PUBLISH, Packets, packet, publish_packet


def test_packets_survive_any_chopping():
    messages = [publish_packet(f"t/{i}", bytes(i % 300), number=i % 3) for i in range(200)] + [packet(PINGREQ, 0, b"")]
    stream, rng = b"".join(messages), random.Random(0)
    packets, found, at = Packets(), [], 0
    while at < len(stream):
        size = rng.randint(1, 700)
        found += packets.feed(stream[at : at + size])
        at += size
    assert len(found) == 201
    assert [kind for kind, _, _ in found[:3]] == [PUBLISH] * 3
    assert found[150][2].endswith(bytes(150))


def test_a_giant_is_skipped_as_it_comes_and_the_next_is_read():
    giant, small = publish_packet("a", bytes(LARGEST + 10_000_000)), publish_packet("b", b"x")
    packets, found = Packets(), []
    stream = giant + small
    for at in range(0, len(stream), 65536):
        found += packets.feed(stream[at : at + 65536])
        assert len(packets._buffer) <= LARGEST + 65536
    assert [len(body) for _, _, body in found] == [LARGEST, 4]
    assert found[1][2] == b"\x00\x01bx"
    assert packets.skipped == 1
