from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import zenlake
from tests.api.sessions import joined
from tests.journal.recording import recording, until_heard, until_rows
from tests.waiting import until
from zenlake.errors import JournalError, JournalGap, LocalError, SelectorError, Timeout
from zenlake.journal import SCHEMA, Journal
from zenlake.journal.serving.bus import RemoteJournal
from zenlake.journal.serving.request import RowRequest
from zenlake.keys import Parameters
from zenlake.recorded.time_bounds import TimeBounds


def published(session: zenlake.Session, *keys: str, count: int = 10) -> None:
    for key in keys:
        with session.declare_publisher(key) as publisher:
            until_heard(publisher)
            for number in range(count):
                publisher.put(f"{key} {number}")


def table(batches: Any) -> Any:
    return pa.Table.from_batches(list(batches), SCHEMA).unify_dictionaries()


def test_a_journal_reads_the_same_from_afar(tmp_path: Path) -> None:
    with recording(tmp_path, partitions=2) as (recorder, other):
        published(other, "r/a", "r/b", "r/d")
        until_rows(recorder, 30)
        here, there = Journal.open(tmp_path), RemoteJournal.open(other, "j")
        assert (there.id, there.name, there.partitions) == (here.id, "j", 2)
        assert there.watermark() == here.watermark()
        assert there.earliest() == here.earliest()
        assert [s.to_page() for s in there.segments(1)] == [s.to_page() for s in here.segments(1)]
        assert table(there.scan()).equals(table(here.scan()))
        middle = dict.fromkeys(range(2), 3)
        assert table(there.scan(middle)).equals(table(here.scan(middle)))
        assert table(there.scan(1, 4)).equals(table(here.scan(1, 4)))
        for keys in ("r/a", ["r/b", "r/d"], "nothing/**"):
            assert table(there.scan(keys=keys)).equals(table(here.scan(keys=keys)))
        chosen = ["key", "value"]
        assert next(there.scan(columns=chosen)).schema.names == chosen
        assert [sum(b.num_rows for b in there.scan(partition=p)) for p in (0, 1)] == [10, 20]
        times = [row["time"] for row in table(here.scan()).to_pylist()]
        low = int(sorted(times)[15].timestamp() * 1_000_000)
        assert table(there.scan(time=(low, None))).equals(table(here.scan(time=(low, None))))
        assert there.ledger()["totals"]["rows"] == 30


def test_many_replies_carry_what_one_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut into small replies, and asked again for more than one question is given."""
    monkeypatch.setattr("zenlake.journal.serving.offsets.REPLY_BYTES", 400)
    monkeypatch.setattr("zenlake.journal.serving.offsets.MOST_REPLIED", 4000)
    with recording(tmp_path) as (recorder, other):
        published(other, "r/a", count=200)
        until_rows(recorder, 200)
        there = RemoteJournal.open(other, "j")
        offsets = [n for batch in there.scan() for n in batch.column("offset").to_pylist()]
        assert offsets == list(range(200))


def test_a_sealed_segment_comes_whole(tmp_path: Path) -> None:
    with recording(tmp_path, segment_bytes=1) as (recorder, other):
        published(other, "r/a", count=3)
        until_rows(recorder, 3)
        there = RemoteJournal.open(other, "j")
        until(lambda: any(segment.sealed for segment in there.segments(0)))
        sealed = next(segment for segment in there.segments(0) if segment.sealed)
        data = there.segment_bytes(0, sealed.first)
        assert data == (tmp_path / sealed.path).read_bytes()
        assert pa.ipc.open_file(data).read_all().num_rows == sealed.rows
        (whole,) = other.get(f"@journal/j/segments/0/{sealed.first}")
        assert whole.ok is not None
        assert whole.ok.payload.to_bytes() == data
        with pytest.raises(JournalError, match="no sealed segment"):
            there.segment_bytes(0, 999)


def test_following_gives_what_comes(tmp_path: Path) -> None:
    with recording(tmp_path) as (_, other):
        there = RemoteJournal.open(other, "j")
        found: list[int] = []

        def follow() -> None:
            for batch in there.follow():
                found.extend(batch.column("offset").to_pylist())

        following = threading.Thread(target=follow)
        following.start()
        published(other, "r/a", count=3)
        until(lambda: len(found) == 3)
        published(other, "r/a", count=2)
        until(lambda: len(found) == 5)
        there.close()
        following.join()
        assert found == list(range(5))


def test_rows_that_are_no_longer_kept_are_a_gap(tmp_path: Path) -> None:
    with recording(tmp_path, segment_bytes=1, retain_bytes=1) as (recorder, other):
        published(other, "r/a", count=5)
        published(other, "r/a", count=5)
        until_rows(recorder, 10)
        there = RemoteJournal.open(other, "j")
        until(lambda: there.earliest() > (0,))
        with pytest.raises(JournalGap) as refused:
            there.scan(0)
        assert refused.value.earliest == there.earliest()[0]
        (reply,) = other.get("@journal/j/rows/**?start=0")
        assert reply.err is not None
        assert b'"earliest"' in reply.err.payload.to_bytes()


def test_a_partition_that_there_is_not_is_refused_here_as_there(tmp_path: Path) -> None:
    with recording(tmp_path) as (_, other):
        for journal in (Journal.open(tmp_path), RemoteJournal.open(other, "j")):
            with pytest.raises(LocalError, match="has no partition 9"):
                journal.scan(partition=9)
            with pytest.raises(LocalError, match="has no partition -1"):
                journal.follow(partition=-1)


def test_nobody_of_that_name_is_told_in_time() -> None:
    with joined() as (here, _), pytest.raises(Timeout, match="zenlake record --name nobody"):
        RemoteJournal.open(here, "nobody", timeout=0.2)


@pytest.mark.parametrize(
    "asked",
    [
        "rows/**?partition=7",
        "rows/**?start=-1",
        "rows/**?start=x",
        "segments/0",
        "segments/x/y",
        "segments/0/1/**",
    ],
)
def test_questions_that_make_no_sense_are_answered_with_an_error(
    tmp_path: Path, asked: str
) -> None:
    with recording(tmp_path) as (_, other):
        with other.declare_querier("@journal/j/**") as querier:
            until_heard(querier)
        (reply,) = other.get(f"@journal/j/{asked}")
        assert reply.err is not None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("partiton=1", "did you mean 'partition'?"),
        ("partition=0;strat=1", "did you mean 'start'?"),
        ("to=1", "write partition, start, end"),
        ("partition=0;partition=1", "occurs 2 times"),
        ("partition=", "no number of rows"),
    ],
)
def test_rows_are_asked_for_by_no_other_names(tmp_path: Path, parameters: str, words: str) -> None:
    with recording(tmp_path) as (_, other):
        with other.declare_querier("@journal/j/**") as querier:
            until_heard(querier)
        (reply,) = other.get(f"@journal/j/rows/**?{parameters}")
        assert reply.err is not None
        assert words in reply.err.payload.to_string()


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff",
        b"[]",
        b'{"start": 1.5}',
        b'{"start": true}',
        b'{"keys": "a"}',
        b'{"keys": ["a//b"]}',
        b'{"columns": ["nothing"]}',
        b'{"time": [1]}',
        b'{"time": ["a", "b"]}',
        b'{"stamps": 5}',
        b'{"partition": 99999999999999999999}',
        b"[" * 100_000,
    ],
)
def test_requests_that_do_not_parse_are_refused(payload: bytes) -> None:
    with pytest.raises((SelectorError, zenlake.ZError)):
        RowRequest.parse(Parameters(), payload)


def test_a_request_survives_its_journey() -> None:
    bounds = TimeBounds(7, (1 << 64) - 2)
    request = RowRequest(1, 2, 3, ("a/**", "b"), bounds, ("key",), "id")
    assert RowRequest.parse(Parameters(), request.to_json().encode()) == request
    assert RowRequest.parse(Parameters("partition=1;start=2"), None) == RowRequest(1, 2)
    assert RowRequest.parse(Parameters(), RowRequest(0, 0).to_json().encode()) == RowRequest(0, 0)


def test_a_range_of_a_request_may_be_in_microseconds() -> None:
    asked = RowRequest.parse(Parameters(), b'{"time": [1000000, null]}')
    assert asked.time.micros == (1_000_000, None)
