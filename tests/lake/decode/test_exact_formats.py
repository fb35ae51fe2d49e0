"""What formats of other libraries say is in columns as it was sent, or in quarantine."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.decode.formats.cbor import Cbor
from zenlake.lake.decode.formats.comma_separated import Csv
from zenlake.lake.decode.formats.instants import epoch_text
from zenlake.lake.decode.formats.message_pack import MessagePack
from zenlake.lake.decode.formats.properties import Properties
from zenlake.lake.decode.formats.yaml_text import Yaml
from zenlake.lake.model.decoder import Reason, Undecodable
from zenlake.lake.model.value_types import flattened

Tag = cbor2.CBORTag


def cbor(value: Any) -> Mapping[str, object]:
    return Cbor().decode(cbor2.dumps({"x": value}), "", None)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (Tag(0, "2013-03-21T20:04:00.123456789Z"), "2013-03-21T20:04:00.123456789+00:00"),
        (Tag(0, "2013-03-21T20:04:00.5+01:00"), "2013-03-21T20:04:00.500000+01:00"),
        (Tag(0, "2013-03-21T20:04:00Z"), "2013-03-21T20:04:00+00:00"),
        (Tag(1, 1363896240), "2013-03-21T20:04:00+00:00"),
        (Tag(1, 1363896240.5), "2013-03-21T20:04:00.500000+00:00"),
        (Tag(1, 1363896240.3808415), "2013-03-21T20:04:00.3808415+00:00"),
        (Tag(1, -0.25), "1969-12-31T23:59:59.750000+00:00"),
        (Tag(4, [-30, 10**29 + 1]), "0.100000000000000000000000000001"),
        (Tag(5, [-1, 3]), 1.5),
        (Tag(258, [1, 1, 2]), [1, 1, 2]),
        (Tag(35, "a+"), "a+"),
        (Tag(30, [1, 3]), "1/3"),
        (Tag(100, -1), "1969-12-31"),
        (1 << 70, 1 << 70),
        (math.inf, math.inf),
    ],
)
def test_tags_of_cbor_keep_what_they_say(value: Any, want: object) -> None:
    assert cbor(value) == {"x": want}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (bytes.fromhex("a2616101616102"), Reason.NAME),  # {"a": 1, "a": 2}
        (bytes.fromhex("81a2616101616102"), Reason.NAME),
        (bytes.fromhex("a2016131613101"), Reason.NAME),  # {1: "1", "1": 1}
        (b"\x01\x02", Reason.PAYLOAD),
        (b"\x61\xff", Reason.PAYLOAD),
        (cbor2.dumps(Tag(5, [5000, 3])), Reason.RANGE),
        (cbor2.dumps(Tag(5, [0, (1 << 53) + 1])), Reason.RANGE),
        (cbor2.dumps(Tag(1, 1 << 60)), Reason.RANGE),
        (cbor2.dumps(Tag(1, math.nan)), Reason.RANGE),
        (cbor2.dumps(Tag(0, "noon")), Reason.PAYLOAD),
    ],
)
def test_cbor_of_which_something_would_be_lost_is_refused(payload: bytes, reason: Reason) -> None:
    with pytest.raises(Undecodable) as refused:
        Cbor().decode(payload, "", None)
    assert refused.value.reason is reason


@given(st.floats(-60_000_000_000, 250_000_000_000))
def test_seconds_since_1970_can_be_read_back_from_their_text(seconds: float) -> None:
    text = epoch_text(seconds)
    clock, _, fraction = text.removesuffix("+00:00").partition(".")
    since = datetime.datetime.fromisoformat(clock) - datetime.datetime(1970, 1, 1)
    whole = since.days * 86400 + since.seconds
    if whole < 0 and fraction:
        digits = len(fraction)
        rest = 10**digits - int(fraction)
        assert float(f"-{-whole - 1}.{rest:0{digits}}") == seconds
    else:
        assert float(f"{whole}.{fraction or 0}") == seconds


def test_times_of_messagepack_keep_their_nanoseconds() -> None:
    times = {"x": msgpack.Timestamp(1, 123_456_789), "y": msgpack.Timestamp(-1, 500_000_000)}
    assert MessagePack().decode(msgpack.packb(times), "", None) == {
        "x": "1970-01-01T00:00:01.123456789+00:00",
        "y": "1969-12-31T23:59:59.500000+00:00",
    }


@pytest.mark.parametrize("payload", [b"\x82\xa1a\x01\xa1a\x02", b"\x91\x82\xa1a\x01\xa1a\x02"])
def test_a_name_twice_in_a_map_of_messagepack_is_refused(payload: bytes) -> None:
    with pytest.raises(Undecodable) as refused:
        MessagePack().decode(payload, "", None)
    assert (refused.value.reason, refused.value.field) == (Reason.NAME, "a")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a: 1\na: 2\n", Reason.NAME),
        (b"p: {a: 1, a: 1}\n", Reason.NAME),
        (b"x: 1.0e+999\n", Reason.RANGE),
        (b"x: 2001-12-14t21:59:43.1234567Z\n", Reason.RANGE),
    ],
)
def test_yaml_of_which_something_would_be_lost_is_refused(text: bytes, reason: Reason) -> None:
    with pytest.raises(Undecodable) as refused:
        Yaml().decode(text, "", None)
    assert refused.value.reason is reason


def test_infinities_of_yaml_are_infinite() -> None:
    found = Yaml().decode(b"x: .inf\ny: -.inf\nz: 2001-12-14t21:59:43.1230000Z\n", "", None)
    assert (found["x"], found["y"]) == (math.inf, -math.inf)
    assert found["z"] == "2001-12-14T21:59:43.123000+00:00"


@pytest.mark.parametrize("digits", [b"9223372036854775808", b"-9223372036854775809"])
def test_words_that_are_whole_numbers_beyond_64_bits_are_refused(digits: bytes) -> None:
    for decoder, payload in ((Csv(), b"x\n" + digits), (Properties(), b"x=" + digits)):
        with pytest.raises(Undecodable) as refused:
            decoder.decode(payload, "", None)
        assert refused.value.reason is Reason.RANGE


def test_bytes_in_lists_that_become_text_can_be_read_back() -> None:
    told = flattened({"l": [1, "a", b"\xff"], "m": [{"id": 1, "mask": b"\x00\x01"}]})
    assert told == {
        "l": '[1, "a", {"$base64": "/w=="}]',
        "m": '[{"id": 1, "mask": {"$base64": "AAE="}}]',
    }
    mask = json.loads(str(told["m"]))[0]["mask"]["$base64"]
    assert base64.b64decode(mask) == b"\x00\x01"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1, "a", math.nan], Reason.RANGE),
        ([[math.inf]], Reason.RANGE),
        ([{"$base64": "AA=="}], Reason.TYPE),
        ([1, object()], Reason.TYPE),
    ],
)
def test_a_list_that_no_text_says_exactly_is_refused(value: Any, reason: Reason) -> None:
    with pytest.raises(Undecodable) as refused:
        flattened({"x": value})
    assert (refused.value.reason, refused.value.field) == (reason, "x")
