from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import NTP64, Timestamp
from zenlake.journal.ingest.rows import batches_of, hlc_nanos, hlc_of, timestamp_of
from zenlake.journal.schema import HEALED, UNNUMBERED
from zenlake.keys import KeyExpr
from zenlake.node.sample import Sample

raws = st.integers(0, 2**64 - 1)


@given(raws, st.binary(min_size=1, max_size=16).filter(lambda id: id[-1]))
def test_a_timestamp_survives_its_columns(raw: int, id: bytes) -> None:
    stamp = Timestamp(NTP64.from_raw(raw), id)
    assert timestamp_of(hlc_of(stamp), stamp.id_bytes) == stamp


def test_the_column_has_the_64_bits_of_the_time_less_2_to_the_63() -> None:
    assert hlc_of(Timestamp(0, b"\x01", 0)) == -9223372036854775808
    assert hlc_of(Timestamp(1_700_000_000, b"\x01", 1 << 31)) == -1921927631507292160
    assert hlc_of(Timestamp(0xFFFF_FFFF, b"\x01", 0xFFFF_FFFF)) == 9223372036854775807
    assert hlc_nanos(np.array([-1921927631507292160])).tolist() == [1_700_000_000_500_000_000]


@given(st.lists(raws, max_size=5))
def test_nanoseconds_of_a_column_are_those_of_each_time(found: list[int]) -> None:
    hlc = np.array([raw - 2**63 for raw in found], np.int64)
    assert hlc_nanos(hlc).tolist() == [NTP64.from_raw(raw).as_nanos() for raw in found]


@given(st.lists(raws, min_size=2, max_size=5))
def test_the_column_keeps_the_order_of_time(found: list[int]) -> None:
    hlcs = [hlc_of(Timestamp(NTP64.from_raw(raw), b"\x01")) for raw in found]
    assert sorted(range(len(found)), key=found.__getitem__) == sorted(
        range(len(found)), key=hlcs.__getitem__
    )


def test_a_sample_without_a_time_is_stamped_and_marked() -> None:
    key = KeyExpr("a/b")
    bare = Sample(key, b"v", True, 5, b"s", 0, 0, b"", 0x05 | 0x08 | 0x10, True, None)
    timed = Sample(key, b"", False, 0, b"", 7, 1 << 31, b"\x02", 0x25, False, None)
    ((partition, batch),) = batches_of(
        [bare, timed], 1, HEALED, 42, lambda _: Timestamp(9, b"\x09", 0)
    )
    assert partition == 0
    assert batch.schema == UNNUMBERED
    first, second = batch.to_pylist()
    assert (first["stamped"], first["stamp_id"], first["priority"], first["congestion"]) == (
        True,
        b"\x09",
        5,
        1,
    )
    assert (first["encoding_id"], first["encoding_schema"], first["express"]) == (5, "s", True)
    assert (second["kind"], second["stamped"], second["congestion"]) == (1, False, 2)
    assert second["time"].timestamp() == 7.5
    assert second["hlc"] == (7 << 32 | 1 << 31) - 2**63
    assert (second["origin"], second["reliable"]) == (1, False)
