"""The words mean the same to Eclipse Zenoh's Python package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import values as ours
from zenlake.clock import NTP64, Timestamp, TimestampId
from zenlake.errors import ConfigError, LocatorError
from zenlake.values import Encoding, EndPoint, WhatAmIMatcher, ZBytes

zenoh = pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
theirs = pytest.importorskip("zenoh.ext", reason="eclipse-zenoh is built without zenoh-ext")

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).parent.parent / "golden"
SERIAL = [
    (case["type"], case["value"])
    for case in json.loads((GOLDEN / "values_serial.json").read_text())["cases"]
]
nanos = st.integers(0, (1 << 32) * 10**9 - 1)
ids = st.binary(min_size=1, max_size=16).filter(any)
utf8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def plain(value: object) -> object:
    """What both sides can compare: containers and numbers without their classes."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return {plain(item) for item in value}
    if isinstance(value, bool | int | float | str):
        return value
    return bytes(value)  # type: ignore[call-overload]


@pytest.mark.parametrize(("tp", "text"), SERIAL)
def test_each_side_reads_what_the_other_serialises(tp: str, text: str) -> None:
    their_names = {**vars(theirs), "ZBytes": zenoh.ZBytes}
    mine, other = eval(text, vars(ours)), eval(text, their_names)
    my_bytes, their_bytes = ours.z_serialize(mine).to_bytes(), bytes(theirs.z_serialize(other))
    assert my_bytes == their_bytes
    read_there = theirs.z_deserialize(eval(tp, their_names), zenoh.ZBytes(my_bytes))
    read_here = ours.z_deserialize(eval(tp, vars(ours)), their_bytes)
    assert plain(read_there) == plain(read_here) == plain(mine)


@given(
    st.dictionaries(
        utf8, st.lists(st.tuples(st.floats(allow_nan=False), st.binary()), max_size=3), max_size=3
    )
)
def test_nested_values_have_the_same_bytes(value: dict[str, list[tuple[float, bytes]]]) -> None:
    assert ours.z_serialize(value).to_bytes() == bytes(theirs.z_serialize(value))


@given(
    st.one_of(utf8, st.builds("{};{}".format, st.sampled_from(["text/plain", "my/own"]), utf8)),
    utf8,
)
def test_encodings_read_and_write_the_same_text(text: str, schema: str) -> None:
    mine, other = Encoding(text), zenoh.Encoding(text)
    assert str(mine) == str(other)
    assert str(mine.with_schema(schema)) == str(other.with_schema(schema))
    assert f"id: {mine.id}," in repr(other)
    assert (mine == schema) == (other == schema)
    assert hash(mine) == hash(other)


@given(nanos)
def test_moments_are_the_same_numbers_and_texts(count: int) -> None:
    mine, other = NTP64(*divmod(count, 10**9)), zenoh.NTP64(*divmod(count, 10**9))
    assert str(mine) == str(other)
    assert mine.as_nanos() == other.as_nanos()
    assert mine.subsec_nanos() == other.subsec_nanos()
    assert mine.as_secs_f64() == other.as_secs_f64()
    assert mine.to_datetime() == other.to_datetime()
    text = mine.to_string_rfc3339_lossy()
    assert text == other.to_string_rfc3339_lossy()
    assert str(NTP64.parse_rfc3339(text)) == str(zenoh.NTP64.parse_rfc3339(text))


@given(nanos, ids, nanos, ids)
def test_timestamps_have_the_same_text_and_order(a: int, one: bytes, b: int, two: bytes) -> None:
    mine = [
        Timestamp(NTP64.from_nanos(count), TimestampId(id))
        for count, id in ((a, one), (b, two), (a, two))
    ]
    other = [
        zenoh.Timestamp(zenoh.NTP64(*divmod(count, 10**9)), zenoh.TimestampId(id))
        for count, id in ((a, one), (b, two), (a, two))
    ]
    assert [str(t) for t in mine] == [str(t) for t in other]
    assert [t.to_string_rfc3339_lossy() for t in mine] == [
        t.to_string_rfc3339_lossy() for t in other
    ]
    assert [bytes(t.get_id()) for t in mine] == [bytes(t.get_id()) for t in other]
    assert [t.get_time() for t in mine] == [t.get_time() for t in other]
    for i in range(3):
        for j in range(3):
            assert (mine[i] < mine[j], mine[i] == mine[j]) == (
                other[i] < other[j],
                other[i] == other[j],
            )
    text = mine[0].to_string_rfc3339_lossy()
    assert str(Timestamp.parse_rfc3339(text)) == str(zenoh.Timestamp.parse_rfc3339(text))


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_payloads_compare_and_hash_alike(a: bytes, b: bytes) -> None:
    mine, other = ZBytes(a), zenoh.ZBytes(a)
    assert (mine == b, mine == a, len(mine), bool(mine)) == (
        other == b,
        other == a,
        len(other),
        bool(other),
    )
    assert hash(mine) == hash(other)


@pytest.mark.parametrize(
    "text",
    [
        "tcp/127.0.0.1:7447",
        "tcp/[::1]:7447?a=1;b=2#x=y",
        "tcp/a?b=1;;c=2",
        "tcp/a?z=1;a=2#z=1;a=2",
        "tcp/a?b=1#c?d",
        "tcp/a#c#d",
        "tcp/a?b?c",
        "tcp/a?b=",
        "tcp/a?a=1;a=2",
        "tcp",
        "tcp/",
        "/x",
        "tcp/a#",
        "tcp/a?",
        "tcp/a?=1",
        "tcp/a#c?d",
    ],
)
def test_endpoints_are_accepted_and_put_in_order_alike(text: str) -> None:
    config = zenoh.Config()
    try:
        config.insert_json5("connect/endpoints", json.dumps([text]))
    except zenoh.ZError:
        with pytest.raises(LocatorError):
            EndPoint.parse(text)
    else:
        assert json.loads(config.get_json("connect/endpoints")) == [str(EndPoint.parse(text))]


@pytest.mark.parametrize(
    "text", ["", "|", "router", "peer|router", "client | peer", "peer||peer", "x", "Peer"]
)
def test_sets_of_roles_are_read_alike(text: str) -> None:
    try:
        other = str(zenoh.WhatAmIMatcher(text))
    except zenoh.ZError:
        with pytest.raises(ConfigError):
            WhatAmIMatcher(text)
    else:
        assert str(WhatAmIMatcher(text)) == other


@pytest.mark.parametrize("name", ["1a2b3", "f", "0", "01", "1A", "g", ""])
def test_ids_are_read_alike(name: str) -> None:
    config = zenoh.Config()
    try:
        config.insert_json5("id", json.dumps(name))
    except zenoh.ZError:
        with pytest.raises(LocatorError):
            ours.ZenohId.parse(name)
    else:
        assert str(ours.ZenohId.parse(name)) == name
