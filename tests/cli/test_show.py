from __future__ import annotations

import base64
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.cli import options
from zenlake.cli.get import Consolidation, Target
from zenlake.cli.ping import percentile
from zenlake.cli.show import MOST_TEXT, MOST_UNPACKED, payload_facts, readable, unpacked
from zenlake.printable import printable
from zenlake.values import CongestionControl, ConsolidationMode, QueryTarget
from zenlake.values import Priority as Lane


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"hello", "hello"),
        ("grüße, 世界".encode(), "grüße, 世界"),
        (b"two\nlines\t.", "two\\nlines\\t."),
        (b"", ""),
        (b"\xff\x00", "0xff00"),
        (b"\x1b[2Jboo", "\\x1b[2Jboo"),
        (bytes(3), "\\x00" * 3),
        (b"\xff" * 40, "0x" + "ff" * 32 + "…"),
        (b"a" * 1001, "a" * 1000 + "…"),
    ],
)
def test_payloads_are_shown_as_text_or_bytes(data: bytes, shown: str) -> None:
    assert readable(data) == shown


@given(st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
def test_nothing_a_stranger_sends_reaches_the_terminal_unescaped(data: bytes) -> None:
    shown = readable(data)
    assert shown.isprintable()
    assert len(shown) <= 10 * MOST_TEXT


@given(st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
def test_programs_get_every_byte(data: bytes) -> None:
    facts = payload_facts(data)
    if "payload" in facts:
        assert str(facts["payload"]).encode() == data
    else:
        assert base64.b64decode(str(facts["payload_base64"])) == data


@given(st.text(max_size=40))
def test_escaped_text_stays_in_its_line(text: str) -> None:
    assert printable(text).isprintable()


def test_the_choices_are_those_of_the_api() -> None:
    assert {one.lane() for one in options.PriorityChoice} == set(Lane)
    assert {one.control() for one in options.CongestionChoice} == set(CongestionControl)
    assert {one.name for one in Target} == set(QueryTarget.__members__) - {"DEFAULT"}
    assert {one.name for one in Consolidation} == set(ConsolidationMode.__members__) - {"DEFAULT"}


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from([0, 1, 50, 90, 99, 100]))
def test_a_percentile_bounds_its_share(values: list[int], percent: int) -> None:
    values.sort()
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < max(percent, 1) * len(values)


def test_compressed_text_is_shown_as_text_and_a_bomb_is_cut() -> None:
    packed = "application/openmetrics-text;version=1.0;content-encoding=gzip"
    assert unpacked(gzip.compress(b"# HELP"), packed) == b"# HELP"
    assert unpacked(zlib.compress(b"hi"), "text/plain;content-encoding=deflate") == b"hi"
    assert unpacked(b"# HELP", "text/plain") is None
    assert unpacked(b"not packed", packed) is None
    bomb = gzip.compress(bytes(50 << 20))
    assert unpacked(bomb, packed) == bytes(MOST_UNPACKED)
