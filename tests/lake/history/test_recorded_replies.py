"""Recorded samples as replies: what an asker gets is what was published, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.waiting import SECONDS
from zenlake.clock import ZenohId
from zenlake.errors import ZError
from zenlake.journal.reading.wire_times import wire_times
from zenlake.lake.history.recorded_replies import RecordedReplies, RecordedRows, RowKind
from zenlake.wire.codec_zenoh import SourceInfo, Timestamp, put_head

STAMP = bytes(range(1, 17))


def reply(
    query: zenlake.Query, keys: list[str], start: int = 1 << 24, *, plain: bool = False
) -> None:
    """A put with all that a put can have, plain puts, and last a deletion.

    `plain`: without attachment and source.
    """
    count = len(keys)
    raw = [(start + n) << 32 | n << 8 for n in range(count)]
    kinds = [
        RowKind(False, STAMP, 5, b"pose"),
        RowKind(False, STAMP, 0, b""),
        RowKind(True, STAMP, 0, b""),
    ]
    which = [0] + [1] * (count - 2) + [2]
    rows = RecordedRows(
        heads=[kind * count + n for n, kind in enumerate(which)],
        times=wire_times(np.array(raw, np.uint64)),
        values=[b'{"x": 1}'] + [b"%d" % n for n in range(1, count)],
        attachments=None if plain else [b"\x00note"] + [None] * (count - 1),
        sources=None
        if plain
        else [SourceInfo(zid=b"\x07" * 4, eid=3, sn=9)] + [None] * (count - 1),
        short=start < 1 << 24,
    )
    RecordedReplies(query, keys, kinds).send(rows)


@pytest.mark.parametrize("start", [1000, 1_700_000_000])
@pytest.mark.parametrize("remote", [False, True], ids=["own", "remote"])
def test_rows_come_as_they_were_published(remote: bool, start: int) -> None:
    keys = [f"robot/{n}" for n in range(2000)]
    with listening() as lake:
        lake.declare_queryable("robot/**", lambda query: reply(query, keys, start))
        asker = connected(lake) if remote else lake
        with asker:
            samples = [one.ok for one in asker.get("robot/**?_time=[..]", timeout=SECONDS)]
    rows = {str(one.key_expr): one for one in samples if one is not None}
    assert (len(samples), len(rows)) == (2000, 2000)
    first, second, last = (rows[f"robot/{n}"] for n in (0, 1, 1999))
    assert (first.payload.to_bytes(), str(first.encoding)) == (
        b'{"x": 1}',
        "application/json;pose",
    )
    assert first.attachment is not None
    assert first.attachment.to_bytes() == b"\x00note"
    assert first.source_info is not None
    assert first.source_info.source_sn == 9
    assert second.payload.to_bytes() == b"1"
    assert (second.attachment, second.source_info) == (None, None)
    assert last.kind == zenlake.SampleKind.DELETE
    for n in (0, 1, 1999):
        stamp = rows[f"robot/{n}"].timestamp
        assert stamp is not None
        assert int(stamp.get_time().timestamp()) == start + n


@pytest.mark.parametrize(("encoding", "schema"), [(0, b""), (5, b""), (700, b"pose")])
def test_plain_puts_are_written_as_their_messages_are(encoding: int, schema: bytes) -> None:
    kind = RowKind(False, STAMP, encoding, schema)
    stamp = Timestamp(seconds=1_700_000_000, fraction=7, id=STAMP)
    time = wire_times(np.array([1_700_000_000 << 32 | 7], np.uint64))
    head = put_head(timestamp=stamp, encoding=encoding, schema=schema)
    assert kind.before + time + kind.behind == head


def test_rows_without_more_are_answered_by_a_node_elsewhere_too() -> None:
    keys = [f"robot/{n}" for n in range(500)]

    with listening() as lake:
        lake.declare_queryable("robot/**", lambda query: reply(query, keys, plain=True))
        with connected(lake) as asker:
            samples = [one.ok for one in asker.get("robot/**?_time=[..]", timeout=SECONDS)]
    rows = {str(one.key_expr): one for one in samples if one is not None}
    assert len(rows) == 500
    assert str(rows["robot/0"].encoding) == "application/json;pose"
    for n, row in enumerate(rows[key] for key in keys):
        assert row.timestamp is not None
        assert int(row.timestamp.get_time().timestamp()) == (1 << 24) + n
        assert row.timestamp.get_id() == ZenohId(STAMP)
    assert rows["robot/499"].kind == zenlake.SampleKind.DELETE


def test_a_key_that_was_not_asked_for_is_refused() -> None:
    refused: list[str] = []

    def answer(query: zenlake.Query) -> None:
        try:
            reply(query, ["other/1", "robot/2"])
        except ZError as error:
            refused.append(str(error))

    with listening() as lake:
        lake.declare_queryable("robot/**", answer)
        assert [one for one in lake.get("robot/**", timeout=SECONDS) if one.ok is not None] == []
    assert len(refused) == 1
    assert "other/1" in refused[0]
