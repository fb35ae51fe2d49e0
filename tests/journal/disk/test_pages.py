"""Pages of a journal, as docs/reference/journal-format.md has them: any version must read them."""

from __future__ import annotations

import zlib

import pytest

from zenlake.errors import JournalCorrupt, JournalError
from zenlake.journal.disk.layout import JournalInfo, partition_of
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import Watermark


def page(name: str, text: str) -> bytes:
    """A line of JSON with the CRC-32 of its second field."""
    return f'{{"crc": {zlib.crc32(text.encode())}, "{name}": {text}}}\n'.encode()


def test_what_a_journal_is() -> None:
    info = JournalInfo("ab" * 16, "fleet", 2, 1700000000.5)
    written = (
        b'{"format": 1, "id": "abababababababababababababababab", "name": "fleet", '
        b'"partitions": 2, "created": 1700000000.5}\n'
    )
    assert info.to_json() == written
    assert JournalInfo.from_json(written, "") == info
    with pytest.raises(JournalError, match="a journal of format 2; this zenlake reads format 1"):
        JournalInfo.from_json(written.replace(b'"format": 1', b'"format": 2'), "dir")


def test_what_is_durable() -> None:
    watermark = Watermark((3, 5), {"b0a:7": 9}, False)
    text = '{"offsets": [3, 5], "sources": {"b0a:7": 9}, "synced": false}'
    assert watermark.to_json() == page("watermark", text)
    assert Watermark.from_json(page("watermark", text), "") == watermark
    with pytest.raises(JournalCorrupt):
        Watermark.from_json(page("watermark", text).replace(b"[3, 5]", b"[3, 6]"), "watermark.json")


def test_what_segments_there_are() -> None:
    listed = Segment(
        5, 9, 100, "p0000/x.arrow", True, 1, 2, -3, 4, frozenset({"b", "a"}), "a", "b", 6.5
    )
    many = Segment(9, 10, 7, "s3://b/y.arrow", True, 1, 2, 3, 4, None, "a", "z", 7.0, 2,
                   frozenset({"k"}))  # fmt: skip
    text = (
        '{"earliest": 5, "segments": [{"first": 5, "end": 9, "bytes": 100, '
        '"path": "p0000/x.arrow", "min_time": 1, "max_time": 2, "min_hlc": -3, "max_hlc": 4, '
        '"keys": ["a", "b"], "min_key": "a", "max_key": "b", "closed": 6.5}, '
        '{"first": 9, "end": 10, "bytes": 7, "path": "s3://b/y.arrow", "min_time": 1, '
        '"max_time": 2, "min_hlc": 3, "max_hlc": 4, "keys": null, "min_key": "a", '
        '"max_key": "z", "closed": 7.0, "retired": 2, "retired_keys": ["k"]}]}'
    )
    manifest = Manifest(5, (listed, many))
    assert manifest.to_json() == page("manifest", text)
    assert Manifest.from_json(page("manifest", text), "") == manifest


@pytest.mark.parametrize(
    ("key", "partitions", "partition"),
    # CRC-32 as zlib, PNG and Ethernet have it: e8b7be43 and 352441c2.
    [("a", 1 << 20, 0x7BE43), ("abc", 1 << 20, 0x441C2), ("a", 16, 3), ("abc", 16, 2)],
)
def test_where_the_rows_of_a_key_are(key: str, partitions: int, partition: int) -> None:
    assert partition_of(key, partitions) == partition
