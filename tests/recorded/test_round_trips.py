"""A sample that was recorded comes back as the wire carried it, whichever way it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile
from pyspark.sql.datasource import CaseInsensitiveDict

import zenlake
from tests.api.sessions import connected, listening, until_matched
from tests.journal.ingest.test_columns import greeted
from tests.lake.journals import Here
from tests.waiting import SECONDS
from zenlake.clock import Hlc, ZenohId
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.ingest.columns import ColumnSink
from zenlake.journal.serving import recall
from zenlake.journal.serving.latest import Latest
from zenlake.journal.serving.past import COLUMNS, reply_latest, reply_rows
from zenlake.journal.transfer.export import to_mcap, to_parquet
from zenlake.journal.transfer.imports import from_mcap, from_parquet
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.history.file_reader import DataFiles, RowRange
from zenlake.lake.history.recorded_replies import RecordedReplies
from zenlake.lake.history.reply_columns import ReplyColumns
from zenlake.lake.table.location import LakeLocation
from zenlake.node.sample import wire_timestamp
from zenlake.recorded.encoding import schema_bytes
from zenlake.replay import MAX, Replay, find
from zenlake.replay.rows import from_answer
from zenlake.spark.source import ZenohSource
from zenlake.testing.network import Network
from zenlake.testing.strategies import integers, zids
from zenlake.values import CongestionControl, Priority, QoS
from zenlake.wire import Del, Frame, Push, Put, SourceInfo, Timestamp, write

U32 = 0xFFFF_FFFF
PARTITIONS = 2
CLOCK = bytes(range(1, 17))
NOW = 1_800_000_000_123_456_789
"""What the clock of the recorder says, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What the wire says of a sample."""

    key: str
    qos: int
    reliable: bool
    body: bytes
    """Kind, timestamp, encoding, source, attachment and payload, as a message has them."""


# ------------------------------------------------------------------------------------- samples

chunks = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/*$?#"), min_size=1, max_size=9
).filter(lambda chunk: not chunk.startswith("@"))
keys = st.lists(chunks, min_size=1, max_size=3).map("/".join)
schemas = st.one_of(
    st.just(b""),
    st.binary(max_size=9),
    st.text(max_size=9).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from([b"\xff" * 255, b"text/plain", "\N{REPLACEMENT CHARACTER}FF".encode()]),
)
common = {
    "timestamp": st.none()
    | st.builds(Timestamp, seconds=integers(U32), fraction=integers(U32), id=zids()),
    "source_info": st.none()
    | st.builds(SourceInfo, zid=zids(), eid=integers(U32), sn=integers(U32)),
    "attachment": st.none() | st.binary(max_size=20),
}
puts = st.builds(
    Put,
    encoding=st.sampled_from([0, 4, 5, 52, 53, 4000, 65535]) | st.integers(0, 65535),
    schema=schemas,
    payload=st.binary(max_size=40),
    **common,
)
qualities = st.builds(
    QoS, st.sampled_from(Priority), st.sampled_from(CongestionControl), st.booleans()
)
said = st.lists(
    st.tuples(keys, qualities, st.booleans(), puts | st.builds(Del, **common)),
    min_size=1,
    max_size=25,
)


def pushes(drawn: list[tuple[str, QoS, bool, Put | Del]]) -> list[tuple[bool, Push]]:
    """Messages, each under a key of its own, and whether each is sent reliably."""
    return [
        (reliable, Push(scope=0, suffix=f"{n}/{key}", qos=qos.byte, body=body))
        for n, (key, qos, reliable, body) in enumerate(drawn)
    ]


def carried(sent: list[tuple[bool, Push]], stamps: dict[str, Timestamp]) -> dict[str, Carried]:
    """What was sent, by key; with the time that the recorder gave where there was none."""
    found = {}
    for reliable, push in sent:
        if push.body.timestamp is None:
            push.body.timestamp = stamps[push.suffix]
            assert push.body.timestamp.id == CLOCK
        found[push.suffix] = Carried(push.suffix, push.qos, reliable, write(push.body))
    return found


def of_sample(sample: zenlake.Sample) -> Carried:
    """What the wire said of a sample that a program was given."""
    assert sample.timestamp is not None
    source, attachment = sample.source_info, sample.attachment
    more: dict[str, Any] = {
        "timestamp": wire_timestamp(sample.timestamp),
        "source_info": source
        and SourceInfo(
            zid=bytes(source.source_id.zid), eid=source.source_id.eid, sn=source.source_sn
        ),
        "attachment": None if attachment is None else attachment.to_bytes(),
    }
    body: Put | Del = Del(**more)
    if sample.kind is zenlake.SampleKind.PUT:
        encoding = sample.encoding
        body = Put(
            encoding=encoding.id,
            schema=encoding.schema or b"",
            payload=sample.payload.to_bytes(),
            **more,
        )
    qos = QoS(sample.priority, sample.congestion_control, sample.express)
    reliable = sample.reliability is zenlake.Reliability.RELIABLE
    return Carried(str(sample.key_expr), qos.byte, reliable, write(body))


def of_row(row: dict[str, Any]) -> Carried:
    """What the wire said of a sample that lies in a journal."""
    raw = row["hlc"] + (1 << 63)
    more: dict[str, Any] = {
        "timestamp": Timestamp(seconds=raw >> 32, fraction=raw & U32, id=row["stamp_id"]),
        "source_info": row["source_zid"]
        and SourceInfo(zid=row["source_zid"], eid=row["source_eid"], sn=row["source_sn"]),
        "attachment": row["attachment"],
    }
    body: Put | Del = Del(**more)
    if row["kind"] == 0:
        schema = schema_bytes(row["encoding_schema"])
        body = Put(encoding=row["encoding_id"], schema=schema, payload=row["value"], **more)
    qos = QoS(Priority(row["priority"]), CongestionControl(row["congestion"]), row["express"])
    return Carried(row["key"], qos.byte, row["reliable"], write(body))


# ------------------------------------------------------------------------------------- recorded


@pytest.fixture(scope="module")
def record() -> Callable[[list[tuple[bool, Push]], Path], dict[str, Timestamp]]:
    """Write messages that a neighbour sends into a journal; gives the times in it, by key."""
    network = Network()
    host = network.node("recorder")
    sink = ColumnSink(PARTITIONS)
    host.node.local.subscribe("**", sink.open(Hlc(ZenohId(CLOCK)), lambda: NOW))
    neighbour = greeted(network, host)
    numbers = {True: 0, False: 0}

    def recorded(sent: list[tuple[bool, Push]], folder: Path) -> dict[str, Timestamp]:
        for reliable, push in sent:
            neighbour.say(write(Frame(sn=numbers[reliable], reliable=reliable, messages=(push,))))
            numbers[reliable] += 1
        network.run(0.01)
        stamps = {}
        with JournalWriter.open(folder, partitions=PARTITIONS, fsync="never") as writer:
            for partition, batch in sink.take():
                writer.append(partition, batch)
                for key, hlc, id in zip(
                    *(batch[name].to_pylist() for name in ("key", "hlc", "stamp_id")), strict=True
                ):
                    raw = hlc + (1 << 63)
                    stamps[key] = Timestamp(seconds=raw >> 32, fraction=raw & U32, id=id)
        assert len(stamps) == len(sent)
        return stamps

    return recorded


@contextmanager
def folder() -> Iterator[Path]:
    """A place for one example."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def tabled(place: Path) -> None:
    """Take the journal `journal` into the lake `lake`, both in a folder."""
    Pipeline(str(place / "lake"), str(place / "journal"), Here(), LakeConfig()).step()


@dataclass(slots=True)
class Bus:
    """Two nodes: one answers and replays, the other asks and listens."""

    here: zenlake.Session
    there: zenlake.Session
    subscriber: zenlake.Subscriber[Any]
    reply: Callable[[zenlake.Query], None] | None = None
    """Sends all replies to a query."""

    def answer(self, query: zenlake.Query) -> None:
        assert self.reply is not None
        self.reply(query)


@pytest.fixture(scope="module")
def bus() -> Iterator[Bus]:
    """Declared once, for what is declared anew is not known to the other side at once."""
    with listening() as here, connected(here) as there:
        bus = Bus(here, there, there.declare_subscriber("**"))
        here.declare_queryable("**", bus.answer)
        with here.declare_publisher("**") as publisher, there.declare_querier("**") as querier:
            until_matched(publisher)
            until_matched(querier)
        yield bus


def reply_from_tables(place: Path, query: zenlake.Query) -> None:
    """Reply with the rows of all data files."""
    files = LakeLocation(place / "lake" / "samples")
    for path in [name for name, _, _ in files.files() if name.endswith(".parquet")]:
        for rows in DataFiles(files).rows(path, RowRange("**")):
            columns = ReplyColumns(rows)
            replies = RecordedReplies(query, columns.keys, columns.kinds)
            replies.send(columns.stretch(0, rows.num_rows))


def reply_from_journal(place: Path, query: zenlake.Query) -> None:
    """Reply with the rows of the journal, as a recorder does."""
    for batch in Journal.open(place / "journal").scan(columns=COLUMNS):
        reply_rows(query, pa.Table.from_batches([batch]), lambda: False)


def latest_of(journal: Journal) -> Latest:
    """The latest values as a recorder knows them when it has read all rows."""
    latest = Latest()
    for partition in range(PARTITIONS):
        for batch in journal.scan(partition=partition, columns=COLUMNS):
            latest.enter(batch, partition)
    return latest


def reply_from_latest(place: Path, again: bool, query: zenlake.Query) -> None:
    """Reply with the latest values, as a recorder does; `again`: one that has put them aside."""
    journal = Journal.open(place / "journal")
    latest = latest_of(journal)
    if again:
        files = LocalFiles(str(place / "journal"))
        assert recall.write(files, journal.id, journal.watermark().offsets, latest)
        recalled = recall.read(files, journal)
        assert recalled is not None
        latest = Latest()
        for known in recalled.known():
            latest.restore(known)
    reply_latest(query, latest.matching("**"), lambda: False)


SAMPLE = [
    *("key", "value", "kind", "encoding", "hlc", "stamp_id", "attachment"),
    *("source_zid", "source_eid", "source_sn"),
    *("priority", "congestion", "express", "reliable", "partition"),
]


def rows_of_source(place: Path) -> pa.Table:
    """What Spark is given of a journal by `format("zenoh")`, all that a sample is made of."""
    options = {"path": str(place / "journal"), "columns": ",".join(SAMPLE)}
    made = ZenohSource(CaseInsensitiveDict(options))
    reader = made.reader(made.schema())
    parts = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(parts).unify_dictionaries()


def rows_of_tables(place: Path) -> pa.Table:
    """What `SELECT * FROM samples` gives."""
    files = sorted((place / "lake" / "samples").rglob("*.parquet"))
    return pa.concat_tables([ParquetFile(file).read() for file in files])


few = settings(max_examples=15, deadline=None)


@few
@given(said, st.booleans())
def test_replies_are_the_samples_that_were_recorded(
    record: Any, bus: Bus, drawn: Any, lake: bool
) -> None:
    """But for the quality of service: a reply travels with that of its query."""
    sent = pushes(drawn)
    with folder() as place:
        wanted = carried(sent, record(sent, place / "journal"))
        if lake:
            tabled(place)
        bus.reply = partial(reply_from_tables if lake else reply_from_journal, place)
        for asker in (bus.here, bus.there):
            replies = [reply.ok for reply in asker.get("**?_time=[..]", timeout=SECONDS)]
            found = [of_sample(sample) for sample in replies if sample is not None]
            assert {one.key: one.body for one in found} == {
                key: one.body for key, one in wanted.items()
            }


@few
@given(said, st.booleans())
def test_latest_values_are_the_puts_that_were_recorded(
    record: Any, bus: Bus, drawn: Any, again: bool
) -> None:
    """Each key was put once, so that all puts are latest values."""
    sent = pushes(drawn)
    with folder() as place:
        wanted = carried(sent, record(sent, place / "journal"))
        puts = {push.suffix for _, push in sent if isinstance(push.body, Put)}
        bus.reply = partial(reply_from_latest, place, again)
        for asker in (bus.here, bus.there):
            replies = [reply.ok for reply in asker.get("**", timeout=20)]
            found = [of_sample(sample) for sample in replies if sample is not None]
            assert {one.key: one.body for one in found} == {key: wanted[key].body for key in puts}


@few
@given(said, st.booleans())
def test_rows_of_spark_are_replayed_as_the_samples_that_were_recorded(
    record: Any, drawn: Any, lake: bool
) -> None:
    """As `zenlake replay 'SELECT …'` reads them: rows of the table, and of `format("zenoh")`."""
    sent = pushes(drawn)
    with folder() as place:
        wanted = carried(sent, record(sent, place / "journal"))
        if lake:
            tabled(place)
        answer = rows_of_tables(place) if lake else rows_of_source(place)
        rows = from_answer(answer).to_pylist()
    assert {row["key"]: of_row(row) for row in rows} == wanted


@few
@given(said, st.booleans())
def test_an_exact_replay_publishes_the_samples_that_were_recorded(
    record: Any, bus: Bus, drawn: Any, lake: bool
) -> None:
    sent = pushes(drawn)
    with folder() as place:
        wanted = carried(sent, record(sent, place / "journal"))
        if lake:
            tabled(place)
        source = find("**", journal=place / "journal", lake=place / "lake" if lake else None)
        Replay(bus.here, source, prefix="", speed=MAX, exact=True).run()
        found = [of_sample(bus.subscriber.recv()) for _ in sent]
    assert {one.key: one for one in found} == wanted


@few
@given(said, st.sampled_from(["mcap", "parquet", "table"]))
def test_files_bring_the_samples_that_were_recorded(record: Any, drawn: Any, form: str) -> None:
    """Those of exports, and the data files of a table."""
    sent = pushes(drawn)
    with folder() as place:
        wanted = carried(sent, record(sent, place / "journal"))
        journal, files = Journal.open(place / "journal"), [place / f"rows.{form}"]
        if form == "mcap":
            to_mcap(journal, files[0])
        elif form == "parquet":
            to_parquet(journal, files[0])
        else:
            tabled(place)
            files = list((place / "lake" / "samples").rglob("*.parquet"))
        with JournalWriter.open(place / "back", partitions=PARTITIONS, fsync="never") as writer:
            for file in files:
                (from_mcap if form == "mcap" else from_parquet)(writer, file)
        rows = [row for batch in Journal.open(place / "back").scan() for row in batch.to_pylist()]
    assert {row["key"]: of_row(row) for row in rows} == wanted
