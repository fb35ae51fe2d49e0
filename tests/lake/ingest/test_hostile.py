"""Nothing that a payload or a damaged table can be stops more than itself."""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import UTC
from pathlib import Path

import cbor2
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.plan import JournalRange, cut, ranges
from zenlake.lake.ingest.stopped_tables import StoppedTables
from zenlake.lake.ingest.task import IngestTask
from zenlake.lake.model.decoder import Reason
from zenlake.lake.model.typed_table import Columns, TypedTable
from zenlake.lake.service.loop import Loop

BYTES, TEXT, JSON, CBOR = 0, 1, 5, 8
POSE = TypedTable("pose", "robot/${id:*}/pose", type="map<string, float64>")
CONFIG = '{tables: {pose: {format: "robot/${id}/pose"}, other: {format: "other/${id}"}}}'

characters = st.text(st.characters(exclude_categories=()), max_size=4)
names = st.sampled_from(["x", "X", "y", "key", "day", "_metadata", "a b", ""]) | characters
scalars = st.none() | st.booleans() | st.integers() | st.floats() | characters


def trees(leaves: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=6,
    )


def as_cbor(value: object) -> bytes:
    try:
        return cbor2.dumps(value)
    except Exception:  # half a surrogate pair has no bytes in UTF-8
        return b"\x61\xff"


cbors = trees(
    scalars
    | st.binary(max_size=3)
    | st.datetimes().map(lambda when: when.replace(tzinfo=UTC))
    | st.decimals()
    | st.fractions()
    | st.just(cbor2.undefined)
    | st.builds(cbor2.CBORTag, st.integers(0, 300), st.integers() | st.binary(max_size=4))
)
payloads = st.one_of(
    st.binary(max_size=12),
    trees(scalars).map(lambda value: json.dumps(value).encode()),
    cbors.map(as_cbor),
    characters.map(lambda text: text.encode("utf-8", "surrogatepass")),
    characters.map(lambda text: f"x={text};y=1".encode("utf-8", "replace")),
)
batches = st.lists(
    st.lists(st.tuples(st.integers(0, 20), payloads), min_size=1, max_size=8),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(batches)
def test_every_payload_is_a_row_of_its_table_or_of_quarantine_and_always_of_samples(
    told: list[list[tuple[int, bytes]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal, lake = Path(folder, "journal"), Path(folder, "lake")
        for batch in told:
            rows = [Row("robot/7/pose", value, encoding=encoding) for encoding, value in batch]
            write(journal, rows, partitions=1)
        count = sum(map(len, told))
        with Journal.open(journal) as opened:
            work = IngestTask(
                lake=str(lake),
                journal=str(journal),
                journal_id=opened.id,
                stretches=(JournalRange(0, count, {"samples": 0, "pose": 0}),),
                typed=((POSE, Columns()),),
            )
        done = work.run()
        assert done.typed["pose"].failed == ""
        samples = [pq.read_table(lake / "samples" / file.path) for file in done.samples]
        kept = [pq.read_table(lake / "pose" / file.path) for file in done.typed["pose"].files]
        held = [pq.read_table(lake / "quarantine" / f.path) for f in done.typed["pose"].refused]
        offsets = [
            sorted(n for one in part for n in one["offset"].to_pylist())
            for part in (samples, kept + held)
        ]
        assert offsets == [list(range(count))] * 2
        reasons = {word for one in held for word in one["reason"].to_pylist()}
        assert reasons <= {str(reason) for reason in Reason}
        for file in (*done.samples, *done.typed["pose"].files, *done.typed["pose"].refused):
            json.loads(file.stats)


def test_half_a_surrogate_pair_stops_nothing_and_is_in_quarantine(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    bad = Row("robot/7/pose", b'{"x": "\\ud800"}', encoding=JSON)
    good = Row("robot/8/pose", b'{"x": "fine"}', at=1, encoding=JSON)
    write(journal, [bad, good])
    pipeline = Pipeline(str(lake), str(journal), Here(), read_config(CONFIG))
    assert pipeline.step().quarantined == 1
    assert {row["key"] for row in rows_of(lake, "samples")} == {"robot/7/pose", "robot/8/pose"}
    assert [row["x"] for row in rows_of(lake, "pose")] == ["fine"]
    (held,) = rows_of(lake, "quarantine")
    assert (held["value"], held["reason"], held["field"]) == (bad.value, "text", "x")


def test_a_table_whose_log_is_torn_stops_alone_says_so_and_goes_on_when_it_is_whole(
    tmp_path: Path,
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    config = read_config(CONFIG)
    write(journal, [Row(f"robot/{n}/pose", b'{"x": 1}', encoding=JSON) for n in range(4)])
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    pipeline.step()
    newest = max((lake / "pose" / "_delta_log").glob("*.json"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-30])
    write(journal, [Row("other/1", b"1", at=2), Row("robot/1/pose", b'{"x": 2}', encoding=JSON)])
    said: list[str] = []
    pipeline = Pipeline(str(lake), str(journal), tasks := Here(), config)
    loop = Loop(pipeline, tasks, every=0.01, complain=said.append)
    loop.turn(1.0)
    assert len(rows_of(lake, "samples")) == 6
    assert len(rows_of(lake, "other")) == 1
    assert any("table 'pose' has stopped" in line for line in said)
    assert all(line.count("lake repair pose") <= 1 for line in said)
    status = loop.status(1.0, "running")
    (shown,) = [table for table in status.tables if table.name == "pose"]
    assert "cannot be read" in shown.stopped
    assert any("'pose' has stopped" in problem for problem in status.problems)
    assert pipeline.committed() == (0, 0)  # the journal keeps what the table lacks
    newest.write_bytes(whole)
    loop.turn(1000.0)  # though nothing new has come
    assert len(rows_of(lake, "pose")) == 5
    assert not pipeline.stopped.sentences()


def test_a_table_that_lacks_nothing_is_well_again_when_it_can_be_read(tmp_path: Path) -> None:
    journal, lake = tmp_path / "journal", tmp_path / "lake"
    config = read_config(CONFIG)
    write(journal, [Row("robot/1/pose", b'{"x": 1}', encoding=JSON)])
    Pipeline(str(lake), str(journal), Here(), config).step()
    newest = max((lake / "pose" / "_delta_log").glob("*.json"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-30])
    pipeline = Pipeline(str(lake), str(journal), tasks := Here(), config)
    loop = Loop(pipeline, tasks, every=0.01, complain=lambda line: None)
    loop.turn(1.0)
    assert pipeline.stopped.sentences()
    newest.write_bytes(whole)
    loop.turn(1000.0)
    assert not pipeline.stopped.sentences()


def test_once_names_the_table_that_stopped_after_the_others_are_done(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("robot/1/pose", b"{}", encoding=JSON)])
    (lake / "pose" / "_delta_log").mkdir(parents=True)
    (lake / "pose" / "_delta_log" / f"{0:020}.json").write_bytes(b"\0" * 64)
    pipeline = Pipeline(str(lake), str(journal), tasks := Here(), read_config(CONFIG))
    loop = Loop(pipeline, tasks, once=True)
    with pytest.raises(LocalError, match="table 'pose' has stopped"):
        loop.turn(1.0)
    assert len(rows_of(lake, "samples")) == 1


def test_samples_does_not_wait_for_a_table_that_is_far_behind(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    config = read_config(CONFIG.replace("tables:", "batch: {rows: 10}, tables:"))
    write(journal, [Row(f"robot/{n}/pose", b'{"x": 1}', encoding=JSON) for n in range(40)], 1)
    first = Pipeline(str(lake), str(journal), Here(), config)
    for _ in range(4):
        first.step()
    shutil.rmtree(lake / "pose")
    write(journal, [Row(f"robot/{n}/pose", b'{"x": 1}', encoding=JSON) for n in range(10)], 1)
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    pipeline.step()
    assert (len(rows_of(lake, "samples")), len(rows_of(lake, "pose"))) == (50, 10)
    while pipeline.step().behind:
        pass
    assert len(rows_of(lake, "pose")) == 50


@given(
    st.dictionaries(st.sampled_from(["samples", "a", "b"]), st.integers(0, 60), min_size=1),
    st.integers(0, 60),
    st.integers(1, 20),
)
def test_each_table_gets_its_next_rows_once_and_samples_always(
    starts: dict[str, int], durable: int, share: int
) -> None:
    found = ranges(0, starts, durable, share)
    for name, start in starts.items():
        mine = [span for span in found if name in span.starts]
        assert len(mine) <= 1
        assert all(span.starts[name] == start < span.end <= durable for span in mine)
    lead = starts.get("samples")
    if lead is not None and lead < durable:
        (span,) = [span for span in found if "samples" in span.starts]
        assert span.end == min(durable, lead + share)
    if any(start < durable for start in starts.values()):
        assert found
    assert all(span.rows <= 2 * share for span in found)


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 60), min_size=1), max_size=3),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(1, 40),
)
def test_tasks_have_each_row_of_a_plan_for_each_table_once(
    starts: list[dict[str, int]], parallel: int, least: int, most: int
) -> None:
    plan = [span for p, each in enumerate(starts) for span in ranges(p, each, 60, 30)]
    tasks = cut(plan, parallel=parallel, least=least, most=most)
    got = [
        (stretch.partition, name, offset)
        for task in tasks
        for stretch in task
        for name, start in stretch.starts.items()
        for offset in range(start, stretch.end)
    ]
    wanted = [
        (span.partition, name, offset)
        for span in plan
        for name, start in span.starts.items()
        for offset in range(start, span.end)
    ]
    assert sorted(got) == sorted(wanted)
    assert all(sum(one.end - one.first for one in task) <= most for task in tasks)


def test_a_table_that_keeps_failing_is_tried_less_and_less_often() -> None:
    stopped = StoppedTables()
    now, tries = 0.0, 0
    while now < 3600.0:
        if stopped.due("pose", now):
            stopped.stop("pose", "why", now)
            tries += 1
        now += 1.0
    assert tries < 25
    stopped.went_on("pose")
    assert stopped.due("pose", now)
    assert stopped.sentences() == ()
