"""Writing a journal, and reading it beside the writer."""

from __future__ import annotations

import pathlib
import pickle
import threading
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from tests.journal.rows import rows, told
from tests.waiting import SECONDS, until
from zenlake.errors import JournalError, JournalGap, JournalLocked, LocalError
from zenlake.journal import Journal, JournalWriter, Watermark


@pytest.fixture
def home(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "journal")


def test_flushed_rows_are_read_with_dense_offsets(home: str) -> None:
    with JournalWriter.open(home) as writer:
        writer.append(0, rows(["a/b", "a/c", "a/b"]))
        writer.append(0, rows(["a/d"], start=3))
        writer.flush()
        journal = Journal.open(home)
        assert journal.watermark().offsets == (4,)
        assert told(journal.scan()) == [
            (0, "a/b", b"0"),
            (1, "a/c", b"1"),
            (2, "a/b", b"2"),
            (3, "a/d", b"3"),
        ]
        assert not journal.segments(0)[0].sealed


def test_nothing_is_seen_before_it_is_durable(home: str) -> None:
    with JournalWriter.open(home, fsync="60s") as writer:
        writer.append(0, rows(["a"]))
        assert told(Journal.open(home).scan()) == []
        writer.flush()
        assert len(told(Journal.open(home).scan())) == 1


def test_a_journal_goes_on_where_it_ended(home: str) -> None:
    with JournalWriter.open(home, name="robots", partitions=2) as writer:
        writer.append(1, rows(["a"]))
        first = writer.id
    with JournalWriter.open(home) as writer:
        assert (writer.id, writer.name, writer.partitions) == (first, "robots", 2)
        writer.append(1, rows(["b"], start=1))
    assert told(Journal.open(home).scan()) == [(0, "a", b"0"), (1, "b", b"1")]
    assert Journal.open(home).watermark().offsets == (0, 2)


def test_a_sealed_segment_is_an_arrow_file(home: str) -> None:
    with JournalWriter.open(home, segment_bytes=1, fsync="batch") as writer:
        for start in range(0, 6, 2):
            writer.append(0, rows([f"k/{start}", "k/same"], start=start))
            writer.flush()
    journal = Journal.open(home)
    segments = journal.segments(0)
    assert [(segment.first, segment.end) for segment in segments] == [(0, 2), (2, 4), (4, 6)]
    assert all(segment.sealed for segment in segments)
    assert segments[1].keys == frozenset({"k/2", "k/same"})
    assert (segments[1].min_time, segments[1].max_time) == (2, 3)
    table = ipc.open_file(pa.memory_map(f"{home}/{segments[1].path}")).read_all()
    assert table.column("key").to_pylist() == ["k/2", "k/same"]
    assert table.column("offset").to_pylist() == [2, 3]
    assert [row[0] for row in told(journal.scan())] == list(range(6))


def test_keys_come_into_a_segment_block_by_block(home: str) -> None:
    with JournalWriter.open(home, fsync="batch") as writer:
        for start, keys in enumerate((["b"], ["a", "b"], ["c", "a"], ["b"])):
            writer.append(0, rows(keys, start=start * 10))
            writer.flush()
        unsealed = told(Journal.open(home).scan())
    with JournalWriter.open(home, segment_bytes=1) as writer:
        writer.flush()
    journal = Journal.open(home)
    assert journal.segments(0)[0].sealed
    assert told(journal.scan()) == unsealed
    assert [key for _, key, _ in unsealed] == ["b", "a", "b", "c", "a", "b"]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_scan_gives_what_was_asked_for(home: str, sealed: bool) -> None:
    with JournalWriter.open(home, segment_bytes=1 if sealed else 1 << 20) as writer:
        for start in range(0, 40, 4):
            writer.append(0, rows(["r/1/x", "r/2/x", "r/1/y", "q"], start=start))
            writer.flush()
    journal = Journal.open(home)
    assert [o for o, _, _ in told(journal.scan(3, 9))] == [3, 4, 5, 6, 7, 8]
    assert [o for o, _, _ in told(journal.scan({0: 38}))] == [38, 39]
    assert [o for o, _, _ in told(journal.scan(keys="r/*/x", end=9))] == [0, 1, 4, 5, 8]
    assert [o for o, _, _ in told(journal.scan(keys=["q", "r/2/**"], end=9))] == [1, 3, 5, 7]
    assert [o for o, _, _ in told(journal.scan(time=(5, 8)))] == [5, 6, 7]
    assert [o for o, _, _ in told(journal.scan(time=(None, 2)))] == [0, 1]
    assert [o for o, _, _ in told(journal.scan(time=(38, None)))] == [38, 39]
    assert told(journal.scan(keys="nobody")) == []
    assert told(journal.scan(100)) == []
    batches = list(journal.scan(keys="q", time=(3, 8), columns=["value", "offset"]))
    assert [batch.schema.names for batch in batches] == [["value", "offset"]] * len(batches)
    assert pa.Table.from_batches(batches).to_pylist() == [
        {"value": b"3", "offset": 3},
        {"value": b"7", "offset": 7},
    ]


def test_columns_that_do_not_exist_are_refused_with_those_that_do(home: str) -> None:
    JournalWriter.open(home).close()
    with pytest.raises(LocalError, match="no column 'payload'; it has offset, key, value"):
        Journal.open(home).scan(columns=["payload"])


def test_followers_get_what_comes_until_the_journal_is_closed(home: str) -> None:
    with JournalWriter.open(home, fsync="5ms", segment_bytes=4000) as writer:
        journal = Journal.open(home)
        got: list[tuple[int, str, bytes]] = []
        enough = threading.Event()

        def listen() -> None:
            for batch in journal.follow(poll=0.002):
                got.extend(told([batch]))
                if len(got) >= 100:
                    enough.set()

        listener = threading.Thread(target=listen)
        listener.start()
        for start in range(0, 100, 2):
            writer.append(0, rows(["a", "b"], start=start))
            if start % 10 == 0:
                writer.flush()
        assert enough.wait(SECONDS)
        journal.close()
        listener.join(SECONDS)
    assert [offset for offset, _, _ in got] == list(range(100))
    assert [value for _, _, value in got] == [str(i).encode() for i in range(100)]


def test_the_watermark_knows_the_last_number_of_each_source(home: str) -> None:
    seen: list[Watermark] = []
    with JournalWriter.open(home, fsync="batch") as writer:
        writer.on_durable(seen.append)
        writer.append(0, rows(["a"] * 5, start=10, source=(b"\x0b\x0a", 7)))
        writer.append(0, rows(["a"] * 2, start=3, source=(b"\x0b\x0a", 7)))
        writer.append(0, rows(["a"] * 2, start=3, source=(b"\x01", 1)))
        assert writer.flush().sources == {"a0b:7": 14, "1:1": 4}
    assert Journal.open(home).watermark().sources == {"a0b:7": 14, "1:1": 4}
    assert seen[-1].offsets == (9,)


def test_a_second_writer_is_told_who_the_first_is(home: str) -> None:
    import os

    with (
        JournalWriter.open(home),
        pytest.raises(JournalLocked, match=f"written by process {os.getpid()}"),
    ):
        JournalWriter.open(home)
    JournalWriter.open(home).close()


def test_old_segments_are_let_go_and_readers_are_told(home: str) -> None:
    with JournalWriter.open(home, segment_bytes=1, retain_bytes=20_000, fsync="batch") as writer:
        early = Journal.open(home)
        for start in range(0, 100, 10):
            writer.append(0, rows(["k"] * 10, start=start))
            writer.flush()
            if start == 0:
                held = early.scan(0)
                first = next(held)
    journal = Journal.open(home)
    (earliest,) = journal.earliest()
    assert 0 < earliest < 100
    assert [offset for offset, _, _ in told(journal.scan())] == list(range(earliest, 100))
    assert sum(segment.bytes for segment in journal.segments(0)) <= 20_000
    with pytest.raises(JournalGap, match="no longer kept") as gap:
        journal.scan(0)
    assert gap.value.earliest == earliest
    assert pickle.loads(pickle.dumps(gap.value)).earliest == earliest
    # What a reader holds stays readable.
    assert told([first])[0] == (0, "k", b"0")


def test_a_journal_is_pickled_by_its_place(home: str) -> None:
    with JournalWriter.open(home) as writer:
        writer.append(0, rows(["a"]))
    other = pickle.loads(pickle.dumps(Journal.open(home)))
    assert told(other.scan()) == [(0, "a", b"0")]
    assert told(Journal.open(f"file://{home}").scan()) == [(0, "a", b"0")]


def test_a_folder_that_is_no_journal_says_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(JournalError, match=r"is not a journal: it has no journal\.json"):
        Journal.open(tmp_path)


def test_rows_of_another_shape_are_refused_where_they_are_appended(home: str) -> None:
    with JournalWriter.open(home) as writer:
        with pytest.raises(LocalError, match="wanted key: dictionary"):
            writer.append(0, pa.record_batch({"key": ["a"]}))
        with pytest.raises(LocalError, match="no partition 1; it has 0 to 0"):
            writer.append(1, rows(["a"]))
        writer.append(0, rows([]))
    with pytest.raises(LocalError, match="is closed"):
        writer.append(0, rows(["a"]))
    with pytest.raises(LocalError, match="fixed when it is created"):
        JournalWriter.open(home, partitions=3)
    with pytest.raises(LocalError, match="is not a policy"):
        JournalWriter.open(home, fsync="sometimes")


def test_sealed_segments_move_to_another_filesystem(home: str, tmp_path: pathlib.Path) -> None:
    far = tmp_path / "far"
    options: dict[str, Any] = {"sealed_to": far.as_uri(), "segment_bytes": 1, "partitions": 2}
    with JournalWriter.open(home, fsync="batch", **options) as writer:
        for start in range(0, 30, 3):
            writer.append(start % 2, rows(["a", "b", "c"], start=start))
            writer.flush()
        journal = Journal.open(home)
        before = told(journal.scan())
        until(lambda: not list(pathlib.Path(home).rglob("*.arrow")))
        assert all("://" in segment.path for segment in journal.segments(0))
        assert told(journal.scan()) == before
        assert told(Journal.open(home).scan(keys="b")) == [row for row in before if row[1] == "b"]
    assert len(list(far.rglob("*.arrow"))) == 10
    # What is there is a journal of its own.
    other = Journal.open(far.as_uri())
    assert (other.id, other.partitions) == (journal.id, 2)
    assert told(other.scan()) == before
    with JournalWriter.open(home, retain_bytes=10_000, **options) as writer:
        writer.append(0, rows(["z"], start=99))
        writer.flush()
        until(lambda: len(list(far.rglob("*.arrow"))) < 5)
        until(lambda: Journal.open(far.as_uri()).earliest() == Journal.open(home).earliest())
    assert told(Journal.open(home).scan())[-1][2] in (b"99", b"29")
    assert told(Journal.open(far.as_uri()).scan())


def test_a_filesystem_that_nobody_knows_is_refused(home: str) -> None:
    with pytest.raises(LocalError, match="names no filesystem that pyarrow knows"):
        Journal.open("carrier-pigeon://roof/journal")
    with pytest.raises(LocalError, match="names no filesystem"):
        JournalWriter.open(home, sealed_to="carrier-pigeon://roof/journal")
    JournalWriter.open(home).close()  # and the lock is free


def test_large_blocks_are_sealed_as_they_are_and_small_ones_together(home: str) -> None:
    with JournalWriter.open(home, fsync="batch", segment_bytes=250_000) as writer:
        for start, keys in enumerate((["b"], ["a", "b"], ["c", "a"], ["b"])):
            large = [bytes([start]) * 80_000] * len(keys)
            writer.append(0, rows(keys, values=large, start=start * 10))
            writer.flush()
        for start in range(60):
            writer.append(0, rows([f"k/{start % 7}"], start=start))
            writer.flush()
    with JournalWriter.open(home, segment_bytes=1) as writer:
        writer.flush()
    first, second = Journal.open(home).segments(0)
    assert (first.rows, second.rows) == (5, 61)
    batches = [
        ipc.open_file(pa.memory_map(f"{home}/{segment.path}")).num_record_batches
        for segment in (first, second)
    ]
    assert batches == [3, 1]
    found = told(Journal.open(home).scan())
    assert [key for _, key, _ in found[:6]] == ["b", "a", "b", "c", "a", "b"]
    assert [row[1:] for row in found[6:]] == [(f"k/{i % 7}", str(i).encode()) for i in range(60)]
    assert [offset for offset, _, _ in found] == list(range(66))
