"""Bytes that real Zenoh nodes said, and what they meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire.meaning import meaning
from zenlake import wire
from zenlake.errors import DecodeError

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "vectors-1x.json").read_text()
)

NETWORK = "network message (inside FRAME)"
BATCH = "batch (transport messages; u16 LE length prefix NOT included)"
SCOUTING = "scouting-datagram"
LOW_LATENCY = "lowlatency (4-byte LE length + message)"
COMPRESSED = "batch with compression header byte"


def of_layer(layer: str) -> list[Any]:
    return [pytest.param(entry, id=entry["name"]) for entry in GOLDEN if entry["layer"] == layer]


def test_every_golden_message_belongs_to_a_layer_that_is_tested() -> None:
    layers = (NETWORK, BATCH, SCOUTING, LOW_LATENCY, COMPRESSED)
    counted = [sum(entry["layer"] == layer for entry in GOLDEN) for layer in layers]
    assert counted == [183, 214, 7, 4, 3]
    assert sum(counted) == len(GOLDEN)


@pytest.mark.parametrize("entry", of_layer(NETWORK))
def test_a_network_message_means_what_was_recorded(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    message = wire.read_network(data)
    assert meaning(message) == entry["meaning"]
    assert wire.write(message) == data


@pytest.mark.parametrize("entry", of_layer(BATCH))
def test_a_batch_means_what_was_recorded(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    found = wire.read_batch(data)
    assert [meaning(message) for message in found] == entry["meaning"]
    assert b"".join(map(wire.write, found)) == data


@pytest.mark.parametrize("entry", of_layer(SCOUTING))
def test_a_scouting_datagram_means_what_was_recorded(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    message = wire.read_scouting(data)
    assert [meaning(message)] == entry["meaning"]
    assert wire.write(message) == data


@pytest.mark.parametrize("entry", of_layer(LOW_LATENCY))
def test_a_low_latency_message_stands_alone_behind_four_bytes(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    size, message = int.from_bytes(data[:4], "little"), wire.read_network(data[4:])
    assert size == len(data) - 4
    assert [meaning(message)] == entry["meaning"]
    assert wire.write(message) == data[4:]


@pytest.mark.parametrize("entry", of_layer(COMPRESSED))
def test_a_batch_of_a_compressed_session_says_whether_it_is(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    told, *recorded = entry["meaning"]
    assert data[0] == told["batch_header"]
    if "lz4_block" in told:
        assert data[1:].hex() == told["lz4_block"]
        (frame,) = wire.read_batch(lz4_block(data[1:]))
        assert isinstance(frame, wire.Frame)
        assert (frame.reliable, frame.sn) == (True, 69216472)
        put = wire.Put(payload=b"a" * 400)
        assert frame.messages == (wire.Push(scope=0, suffix="cc/a", body=put),)
        assert wire.write(frame) == lz4_block(data[1:])
    else:
        found = wire.read_batch(data[1:])
        assert [meaning(message) for message in found] == recorded
        assert b"".join(map(wire.write, found)) == data[1:]


def lz4_block(block: bytes) -> bytes:
    """An LZ4 block undone: literals, then a copy of what came some bytes before, and again."""
    out = bytearray()
    pos = 0

    def length(nibble: int) -> int:
        nonlocal pos
        total = nibble
        while nibble == 15:
            total += (more := block[pos])
            pos += 1
            if more < 255:
                break
        return total

    while True:
        token = block[pos]
        pos += 1
        size = length(token >> 4)
        out += block[pos : pos + size]
        pos += size
        if pos == len(block):
            return bytes(out)
        distance = int.from_bytes(block[pos : pos + 2], "little")
        pos += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])


# What the specification's pages show in bytes or in figures, where real nodes agree with them.


def test_the_default_resolution_is_32_bits_for_both() -> None:
    init = wire.InitSyn(version=9, whatami=2, zid=b"\x11\x22\x33\x44")
    assert init.resolution == 0x0A
    assert wire.write(init).hex() == "0109" + "32" + "11223344"


def test_the_size_flag_brings_resolution_and_batch_size_together() -> None:
    init = wire.InitSyn(version=9, whatami=1, zid=b"\x01", batch_size=49152)
    assert wire.write(init).hex() == "4109" + "01" + "01" + "0a" + "00c0"


def test_a_push_nests_a_put_behind_its_key_and_its_extensions() -> None:
    # PUSH Z|M|N, scope, suffix, QoS, NodeId, PUT T|E, time, id, encoding, payload.
    stamp = wire.Timestamp(seconds=0, fraction=300, id=b"\x01")
    body = wire.Put(timestamp=stamp, encoding=4, payload=b"hi")
    push = wire.Push(scope=3, suffix="/a", qos=0x0D, node_id=2, body=body)
    expected = "fd03022f61" + "a10d" + "3302" + "61" + "ac020101" + "08" + "026869"
    assert wire.write(push).hex() == expected
    assert wire.read_network(bytes.fromhex(expected)) == push


def test_the_attachment_has_another_id_in_a_deletion() -> None:
    assert wire.write(wire.Put(attachment=b"x")).hex() == "81" + "430178" + "00"
    assert wire.write(wire.Del(attachment=b"x")).hex() == "82" + "420178"


def test_source_info_packs_the_size_of_the_id_in_the_upper_half() -> None:
    source = wire.SourceInfo(zid=b"\xaa\xbb", eid=300, sn=7)
    put = wire.Put(source_info=source)
    assert wire.write(put).hex() == "81" + "41" + "06" + "10aabb" + "ac02" + "07" + "00"


def test_an_interest_names_its_options_from_bit_zero_up() -> None:
    options = {
        "key_exprs": 0x01,
        "subscribers": 0x02,
        "queryables": 0x04,
        "tokens": 0x08,
        "aggregate": 0x80,
    }
    for name, bit in options.items():
        interest = wire.Interest(mode=1, id=9, **{name: True})  # type: ignore[arg-type]
        assert wire.write(interest) == bytes((0x39, 9, bit))


def test_a_final_interest_has_no_options() -> None:
    assert wire.write(wire.Interest(mode=0, id=2, qos=8)).hex() == "9902" + "2108"


def test_the_reserved_role_is_refused() -> None:
    with pytest.raises(DecodeError, match="whatami is 3"):
        wire.read_batch(bytes.fromhex("01090301"))


def test_locators_are_counted_strings_of_at_most_255_bytes() -> None:
    locators = (
        "tcp/192.168.1.10:7447",
        "tcp/[2001:db8::1]:7447",
        "quic/example.net:7447?iface=en0",
    )
    hello = wire.Hello(version=9, whatami=0, zid=b"\x05", locators=locators)
    data = wire.write(hello)
    assert data[:5].hex() == "2209000503"
    assert data[5] == len(locators[0])
    assert wire.read_scouting(data) == hello
