"""Recorded samples as replies: what an asker gets is what was published, byte for byte."""

from __future__ import annotations

import pytest

import zenlake
from tests.api.sessions import connected, listening
from zenlake.errors import ZError
from zenlake.lake.recorded_replies import RecordedReplies
from zenlake.wire.codec_zenoh import SourceInfo

STAMP = bytes(range(1, 17))


def replies(keys: list[str]) -> RecordedReplies:
    """A put with all that a put can have, plain puts, and last a deletion."""
    count = len(keys)
    return RecordedReplies(
        keys=keys,
        seconds=[1000 + n for n in range(count)],
        fractions=[n << 8 for n in range(count)],
        stamps=[STAMP] * count,
        deleted=[False] * (count - 1) + [True],
        encodings=[5] + [0] * (count - 1),
        schemas=[b"pose"] + [b""] * (count - 1),
        values=[b'{"x": 1}'] + [b"%d" % n for n in range(1, count)],
        attachments=[b"\x00note"] + [None] * (count - 1),
        sources=[SourceInfo(zid=b"\x07" * 4, eid=3, sn=9)] + [None] * (count - 1),
    )


@pytest.mark.parametrize("remote", [False, True], ids=["own", "remote"])
def test_rows_come_as_they_were_published(remote: bool) -> None:
    keys = [f"robot/{n}" for n in range(2000)]
    with listening() as lake:
        lake.declare_queryable("robot/**", lambda query: replies(keys).send(query))
        asker = connected(lake) if remote else lake
        with asker:
            samples = [one.ok for one in asker.get("robot/**?_time=[..]", timeout=20)]
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
        assert int(stamp.get_time().timestamp()) == 1000 + n


def test_a_key_that_was_not_asked_for_is_refused() -> None:
    refused: list[str] = []

    def answer(query: zenlake.Query) -> None:
        try:
            replies(["other/1", "robot/2"]).send(query)
        except ZError as error:
            refused.append(str(error))

    with listening() as lake:
        lake.declare_queryable("robot/**", answer)
        assert [one for one in lake.get("robot/**", timeout=5) if one.ok is not None] == []
    assert len(refused) == 1
    assert "other/1" in refused[0]
