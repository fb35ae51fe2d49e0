"""What volumes keep, byte for byte: data that was stored must be read by every later version."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.newest import Entry, Value, WideUpdate
from zenlake.volumes.contract import VolumeError
from zenlake.volumes.records import (
    MOMENT_SIZE,
    moment,
    pack_entry,
    pack_moment,
    pack_wide,
    unpack_entry,
    unpack_wide,
)
from zenlake.volumes.s3_segments import Location, Record, SegmentObject, pack, unpack

TIME = 0x0102030405060708
FULL = Value(b"pay", 5, b"sc", b"at")

ENTRIES = [
    (
        Entry("k", TIME, b"\xaa\xbb", 9, b"\xcc", FULL),
        "01 0102030405060708 0000000000000009 02 01 aabb cc"
        "06 00000005 00000002 00000002 7363 6174 706179",
    ),
    (
        Entry("k", 1, b"\x01", 1, b"\x01", Value(b"", 65535)),
        "01 0000000000000001 0000000000000001 01 01 01 01 04 0000ffff 00000000 00000000",
    ),
    (
        Entry("k", 1, b"\x01", 1, b"\x01", Value(b"x", 0, b"", b"")),
        "01 0000000000000001 0000000000000001 01 01 01 01 06 00000000 00000000 00000000 78",
    ),
    (
        Entry("k", (1 << 64) - 1, b"\xff" * 16, 0, b"", None),
        f"01 ffffffffffffffff 0000000000000000 10 00 {'ff' * 16} 01 00000000 00000000 00000000",
    ),
]


@pytest.mark.parametrize(("entry", "written"), ENTRIES)
def test_an_entry_is_kept_in_these_bytes(entry: Entry, written: str) -> None:
    assert pack_entry(entry, True) == bytes.fromhex(written)
    assert unpack_entry("k", bytes.fromhex(written)) == entry


def test_an_entry_whose_payload_lies_elsewhere_has_all_but_that() -> None:
    entry = Entry("k", TIME, b"\xaa\xbb", 9, b"\xcc", FULL)
    written = bytes.fromhex(
        "01 0102030405060708 0000000000000009 02 01 aabb cc 02 00000005 00000002 00000002 7363 6174"
    )
    assert pack_entry(entry, False) == written
    assert unpack_entry("k", written, b"pay") == entry


def test_an_update_with_wildcards_is_an_entry_with_the_deletion_for_a_base() -> None:
    update = WideUpdate("a/*", 2, b"\x02", Value(b"x"), 1, b"\x01")
    written = bytes.fromhex(
        "01 0000000000000002 0000000000000001 01 01 02 01 04 00000000 00000000 00000000 78"
    )
    assert pack_wide(update) == written
    assert unpack_wide("a/*", written) == update


def test_a_moment_has_25_bytes() -> None:
    written = bytes.fromhex("0102030405060708 aabb0000000000000000000000000000 02")
    assert pack_moment(TIME, b"\xaa\xbb") == written
    assert moment(written + b"what follows") == (TIME, b"\xaa\xbb")
    assert MOMENT_SIZE == 25


@given(st.lists(st.tuples(st.integers(0, (1 << 64) - 1), st.binary(min_size=1, max_size=16))))
def test_moments_are_in_the_order_of_timestamps(stamps: list[tuple[int, bytes]]) -> None:
    packed = sorted(pack_moment(time, id) for time, id in stamps)
    assert [moment(one) for one in packed] == sorted(stamps)


def test_a_record_of_a_later_version_is_refused_and_one_cut_short_too() -> None:
    written = pack_entry(ENTRIES[0][0], True)
    with pytest.raises(VolumeError, match=r"newer zenlake \(version 2, 1 is known here\)"):
        unpack_entry("k", b"\x02" + written[1:])
    with pytest.raises(VolumeError, match="record of 'k' is damaged"):
        unpack_entry("k", written[:10])


def test_a_segment_has_a_head_an_index_and_its_payloads() -> None:
    index = bytes.fromhex(
        "45 00000001 00000002 01 0000000000000000 0000000000000003 6b 7272"
        "52 00000002 00000000 00 0000000000000003 0000000000000000 6b32"
        "53 00000001 00000001 01 0000000000000003 0000000000000000 6b 73"
    )
    # "zlS1", how long the index is, and its CRC-32.
    head = bytes.fromhex("7a6c5331 00000055") + zlib.crc32(index).to_bytes(4, "big")
    written = pack(
        [Record(b"E", "k", b"rr", b"pay"), Record(b"R", "k2", b""), Record(b"S", "k", b"s", b"")]
    )
    assert written == head + index + b"pay"
    segment = SegmentObject(10, 11, 2)
    assert segment.name == "000000000000000a-000000000000000b-00000002"
    assert SegmentObject.parse(segment.name) == segment
    assert list(unpack(written, segment)) == [
        (Record(b"E", "k", b"rr"), Location(segment, 12 + 85, 3)),
        (Record(b"R", "k2", b""), None),
        (Record(b"S", "k", b"s"), Location(segment, 12 + 85 + 3, 0)),
    ]
    with pytest.raises(VolumeError, match="another checksum"):
        list(unpack(written[:-4] + b"?pay", segment))
