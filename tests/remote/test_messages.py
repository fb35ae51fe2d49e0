"""Messages of the remote API: golden bytes of the real client, and whatever else may come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import RemoteError
from zenlake.remote.fields import RemoteEncoding, RemoteLink, RemoteSample, RemoteTransport, Stamp
from zenlake.remote.messages import (
    FROM_CLIENT,
    FROM_SERVER,
    CutSample,
    MessageKind,
    UnreadableBody,
    decode,
    encode,
)

ZID = bytes(range(1, 17))
LONG = f"10{ZID.hex()}"
STAMP = Stamp(0x6900000080000000, ZID)
AT = f"0000008000000069{LONG}"
JSON = RemoteEncoding(5, "x")
PLAIN = RemoteEncoding(0, "")
NONE: dict[str, Any] = {"payload": None, "encoding": None, "attachment": None}
BARE: dict[str, Any] = {"attachment": None, "timestamp": None}
HELLO = RemoteSample("demo/a", b"hello", 0, JSON, b"at", STAMP, 0x85)

FROM_REAL_CLIENT = [
    ("Ping", 0, {}, "9900000000"),
    ("GetSessionInfo", 1, {}, "8c01000000"),
    ("GetTimestamp", 3, {}, "8d03000000"),
    (
        "Put", None,
        {"key": "demo/a", "payload": b"hello", "encoding": JSON, "attachment": b"at",
         "timestamp": STAMP, "qos": 0xB2},
        f"0e0664656d6f2f610568656c6c6f05000178010261740 1{AT}b2",
    ),
    (
        "Put", None,
        {"key": "demo/a", "payload": b"\1\2\3", "encoding": PLAIN, **BARE, "qos": 0xA5},
        "0e 06 64656d6f2f61 03 010203 0000 00 00 00 a5",
    ),
    ("Delete", None, {"key": "demo/a", **BARE, "qos": 0xA5}, "0f 06 64656d6f2f61 00 00 a5"),
    (
        "DeclareSubscriber", 4, {"id": 0, "key": "demo/**", "origin": 2},
        "82 04000000 00000000 07 64656d6f2f2a2a 02",
    ),
    (
        "DeclareQueryable", 5, {"id": 1, "key": "demo/q", "complete": True, "origin": 2},
        "84 05000000 01000000 06 64656d6f2f71 01 02",
    ),
    (
        "ReplyOk", None,
        {"id": 0, "key": "demo/q", "payload": b"ans", "encoding": RemoteEncoding(0, ""), **BARE,
         "qos": 0xAD},
        "15 00000000 06 64656d6f2f71 03 616e73 0000 00 00 00 ad",
    ),
    (
        "ReplyErr", None, {"id": 0, "payload": b"err", "encoding": RemoteEncoding(0, "")},
        "17 00000000 03 657272 0000 00",
    ),
    (
        "ReplyDel", None, {"id": 0, "key": "demo/q", **BARE, "qos": 0xAD},
        "16 00000000 06 64656d6f2f71 00 00 ad",
    ),
    ("QueryResponseFinal", None, {"id": 0}, "18 00000000"),
    (
        "Get", None,
        {"id": 2, "key": "demo/**", "parameters": "_time=[now(-1h)..]", **NONE, "qos": 0xAD,
         "settings": 0x15, "timeout": 10_000},
        "12 02000000 07 64656d6f2f2a2a 12 5f74696d653d5b6e6f77282d3168292e2e5d 00 00 00 ad 15 "
        "10270000",
    ),
    (
        "DeclarePublisher", 6,
        {"id": 3, "key": "demo/p", "encoding": RemoteEncoding(4, ""), "qos": 0xAD},
        "80 06000000 03000000 06 64656d6f2f70 0400 00 ad",
    ),
    (
        "PublisherPut", None, {"id": 3, "payload": b"x", "encoding": None, **BARE},
        "10 03000000 01 78 00 00 00",
    ),
    (
        "PublisherPut", None, {"id": 3, "payload": b"y", "encoding": RemoteEncoding(1, ""), **BARE},
        "10 03000000 01 79 01 0100 00 00 00",
    ),
    ("PublisherDelete", None, {"id": 3, **BARE}, "11 03000000 00 00"),
    ("PublisherGetMatchingStatus", 7, {"id": 3}, "9c 07000000 03000000"),
    (
        "PublisherDeclareMatchingListener", 8, {"id": 4, "publisher": 3},
        "9a 08000000 04000000 03000000",
    ),
    (
        "DeclareQuerier", 10,
        {"id": 5, "key": "demo/**", "qos": 0xAD, "settings": 0x10, "timeout": 10_000},
        "86 0a000000 05000000 07 64656d6f2f2a2a ad 10 10270000",
    ),
    (
        "QuerierGet", None, {"id": 6, "querier": 5, "parameters": "k=v", **NONE},
        "13 06000000 05000000 03 6b3d76 00 00 00",
    ),
    (
        "DeclareLivelinessToken", 11, {"id": 7, "key": "live/1"},
        "88 0b000000 07000000 06 6c6976652f31",
    ),
    (
        "DeclareLivelinessSubscriber", 12, {"id": 8, "key": "live/**", "history": True},
        "8a 0c000000 08000000 07 6c6976652f2a2a 01",
    ),
    (
        "LivelinessGet", None, {"id": 9, "key": "live/**", "timeout": 10_000},
        "14 09000000 07 6c6976652f2a2a 10270000",
    ),
]  # fmt: skip

TO_REAL_CLIENT = [
    ("PingAck", 0, {"uuid": "u" * 36}, f"8000000000 24 {(b'u' * 36).hex()}"),
    (
        "ResponseSessionInfo", 1, {"zid": ZID, "routers": [ZID], "peers": []},
        f"8401000000 {LONG} 01 {LONG} 00",
    ),
    ("ResponseTimestamp", 3, {"timestamp": STAMP}, f"8303000000 {AT}"),
    ("Ok", 4, {"number": 2}, "81 04000000 02"),
    (
        "Sample", None, {"id": 0, "sample": HELLO},
        f"05 00000000 06 64656d6f2f61 05 68656c6c6f 00 0500 01 78 01 02 6174 01 {AT} 85",
    ),
    (
        "Query", None,
        {"id": 1, "query": 0, "key": "demo/q", "parameters": "a=1;b=2", "payload": b"pl",
         "encoding": RemoteEncoding(4, ""), "attachment": None, "accept": 1},
        "06 01000000 00000000 06 64656d6f2f71 07 613d313b623d32 01 02 706c 01 0400 00 00 01",
    ),
    (
        "Reply", None,
        {"id": 2, "reply": (True, RemoteSample("demo/r", b"42", 0, PLAIN, None, STAMP, 0x85))},
        f"07 02000000 01 06 64656d6f2f72 02 3432 00 0000 00 00 01 {AT} 85",
    ),
    (
        "Reply", None, {"id": 2, "reply": (False, (b"boom", RemoteEncoding(1, "")))},
        "07 02000000 00 04 626f6f6d 0100 00",
    ),
    ("QueryResponseFinal", None, {"id": 2}, "08 02000000"),
    ("MatchingStatus", 7, {"matching": True}, "89 07000000 01"),
    (
        "ResponseTransports", 14, {"transports": [RemoteTransport(ZID, 1, True, False)]},
        f"8b 0e000000 01 {LONG} 01 01 00",
    ),
    (
        "ResponseLinks", 15,
        {"links": [RemoteLink(ZID, "tcp/127.0.0.1:1", "tcp/127.0.0.1:2", None, 0xFFFF, True, ["lo"],
                        None, (0, 7), 1)]},
        f"8c 0f000000 01 {LONG} 0f {b'tcp/127.0.0.1:1'.hex()} 0f {b'tcp/127.0.0.1:2'.hex()} "
        "00 ffff 01 01 02 6c6f 00 01 00 07 01 01",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "name", "sequence", "body", "written"),
    [(FROM_CLIENT, *one) for one in FROM_REAL_CLIENT]
    + [(FROM_SERVER, *one) for one in TO_REAL_CLIENT],
)
def test_golden_bytes_are_read_and_written(
    kinds: dict[int, MessageKind],
    name: str,
    sequence: int | None,
    body: dict[str, Any],
    written: str,
) -> None:
    data = bytes.fromhex(written.replace(" ", ""))
    found = decode(data, kinds)
    assert (found.kind.name, found.sequence, found.body) == (name, sequence, body)
    assert encode(name, sequence, kinds, **body) == data
    assert decode(data + b"more", kinds) == found


def test_messages_of_ours_lie_beyond_those_of_eclipse() -> None:
    assert FROM_CLIENT[100].name == "DeclareCutSubscriber"
    sample = RemoteSample("a", b"", 0, RemoteEncoding(0, ""), None, None, 0x85)
    written = encode("Samples", id=7, missed=3, samples=[CutSample(sample, 5000)])
    assert written.hex() == "6407000000030000000101610000000000000085" + "88130000"
    assert decode(written, FROM_SERVER).body["samples"] == [CutSample(sample, 5000)]


@given(st.binary(max_size=80))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    for kinds in (FROM_CLIENT, FROM_SERVER):
        try:
            found = decode(data, kinds)
        except RemoteError:
            continue
        written = encode(found.kind.name, found.sequence, kinds, **found.body)
        assert decode(written, kinds) == found


def test_a_message_that_is_not_known_says_whom_to_answer() -> None:
    with pytest.raises(UnreadableBody, match="no message 99") as refused:
        decode(bytes.fromhex("e307000000"), FROM_CLIENT)
    assert refused.value.sequence == 7


def test_a_length_beyond_the_message_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(RemoteError, match="a length of"):
        decode(bytes.fromhex("0effffffff7f"), FROM_CLIENT)
    with pytest.raises(RemoteError, match="more than ten bytes"):
        decode(b"\x0e" + b"\xff" * 12, FROM_CLIENT)
