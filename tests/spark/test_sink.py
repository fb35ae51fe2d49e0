"""Publishing and asking as Spark's tasks do, without Spark."""

from __future__ import annotations

import json
import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

import zenlake
from tests.api.sessions import listening, where
from tests.waiting import SECONDS
from zenlake.errors import KeyExprError, LinkError, RemoteError
from zenlake.spark.network import configuration
from zenlake.spark.options import WRITE, OptionError, SourceOptions
from zenlake.spark.sink import Sink, StreamSink, checked_rows
from zenlake.spark.source import ZenohSource

ROWS = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


@pytest.fixture
def router() -> Iterator[zenlake.Session]:
    with listening(mode='"router"') as session:
        yield session


def batch(*rows: tuple[str | None, bytes | None]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([key for key, _ in rows], pa.string()),
            "value": pa.array([value for _, value in rows], pa.binary()),
        }
    )


def sink(router: zenlake.Session, **options: str) -> Sink:
    given = CaseInsensitiveDict({"zenoh.connect": where(router), **options})
    made = pickle.loads(pickle.dumps(ZenohSource(given).writer(ROWS, False)))
    assert isinstance(made, Sink)
    return made


def test_what_was_written_has_arrived(router: zenlake.Session) -> None:
    with router.declare_subscriber("a/**", zenlake.handlers.FifoChannel(5000)) as heard:
        rows = [(f"a/{n % 3}", b"%d" % n) for n in range(1000)]
        done = sink(router).write(iter([batch(*rows[:600]), batch(*rows[600:])]))
        assert (done.done, done.dropped) == (Counter(puts=1000), Counter())
        found = [heard.recv() for _ in range(1000)]
    # A task keeps the order of its rows.
    assert [(str(s.key_expr), s.payload.to_bytes()) for s in found] == rows


@pytest.mark.parametrize(
    ("text", "id", "schema"),
    [
        (None, 0, None),
        ("application/json;pose", 5, b"pose"),
        ("my/own;v2", 65535, b"my/own;v2"),
        ("unknown(4000);v2", 4000, b"v2"),
        ("unknown(65535);text/plain", 65535, b"text/plain"),
    ],
)
def test_rows_are_published_with_the_encodings_that_rows_are_read_with(
    router: zenlake.Session, text: str | None, id: int, schema: bytes | None
) -> None:
    given = CaseInsensitiveDict({"zenoh.connect": where(router)})
    schema_of_rows = StructType([*ROWS, StructField("encoding", StringType())])
    writer = ZenohSource(given).writer(schema_of_rows, False)
    assert isinstance(writer, Sink)
    rows = batch(("a", b"x")).append_column("encoding", pa.array([text], pa.string()))
    with router.declare_subscriber("a", zenlake.handlers.FifoChannel(2)) as heard:
        assert writer.write(iter([rows])).done == Counter(puts=1)
        encoding = heard.recv().encoding
    assert (encoding.id, encoding.schema) == (id, schema)


def test_a_row_without_a_value_deletes(router: zenlake.Session) -> None:
    with router.declare_subscriber("a/**", zenlake.handlers.FifoChannel(10)) as heard:
        assert sink(router).write(iter([batch(("a/b", None))])).done == Counter(deletes=1)
        assert heard.recv().kind is zenlake.SampleKind.DELETE


def test_rows_that_may_be_dropped_are_counted(router: zenlake.Session, tmp_path: Path) -> None:
    hold = threading.Event()
    with router.declare_subscriber("a", lambda _: hold.wait(SECONDS)):
        lossy = sink(router, congestion="drop", onInvalid="drop", report=str(tmp_path / "r"))
        done = lossy.write(iter([batch(("a//", b""), (None, b""), ("a", b"x"))]))
        hold.set()
    assert done.done["puts"] + done.dropped["no room on the way"] == 1
    assert done.dropped["KeyExprError"] == 1
    assert done.dropped["a row has no key"] == 1
    lossy.commit([done, None, done])
    told = json.loads((tmp_path / "r").read_text())
    assert told["dropped"]["KeyExprError"] == 2


def test_an_invalid_row_fails_the_task(router: zenlake.Session) -> None:
    with pytest.raises(KeyExprError):
        sink(router).write(iter([batch(("a//b", b""))]))


def test_a_connection_that_is_lost_fails_the_task(router: zenlake.Session) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(("a", b"1"))
        router.close()
        yield batch(("a", b"2"))

    with pytest.raises(LinkError, match="the task has to run again"):
        sink(router, timeout="5s").write(rows())


def test_a_stream_reports_each_batch(router: zenlake.Session, tmp_path: Path) -> None:
    given = {"zenoh.connect": where(router), "report": str(tmp_path / "r")}
    made = ZenohSource(CaseInsensitiveDict(given)).streamWriter(ROWS, False)
    assert isinstance(made, StreamSink)
    for number in range(2):
        made.commit([made.write(iter([batch(("a", b"1"))]))], number)
    lines = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert lines == [{"batch": n, "puts": 1, "deletes": 0, "dropped": {}} for n in range(2)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": BinaryType()}, "no column 'key'"),
        ({"key": StringType()}, "no column 'value'"),
        ({"key": StringType(), "value": LongType()}, "'value' is bigint; cast it to binary"),
        ({"key": StringType(), "value": BinaryType(), "temperature": LongType()}, "temperature"),
        ({"key": StringType(), "value": BinaryType(), "knid": StringType()}, "did you mean 'kind'"),
    ],
)
def test_a_frame_that_cannot_be_published_is_refused(
    columns: dict[str, DataType], words: str
) -> None:
    schema = StructType([StructField(name, type) for name, type in columns.items()])
    with pytest.raises(OptionError, match=words):
        checked_rows(schema)


def test_what_a_read_has_more_is_let_go() -> None:
    schema = StructType([*ROWS.fields, StructField("offset", LongType())])
    assert checked_rows(schema) == ["key", "value"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "say where to"),
        ({"zenoh.connect": "tcp/a:1", "path": "/x"}, "not to a path"),
        ({"zenoh.connect": "tcp/a:1", "congestion": "maybe"}, "write one of block, drop"),
        ({"zenoh.connect": "tcp/a:1", "priority": "high"}, "write one of real_time"),
        ({"zenoh.connect": "tcp/a:1", "express": "yes"}, "write true or false"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Sink(SourceOptions(options, WRITE), ROWS, False)


def test_there_is_nothing_to_overwrite() -> None:
    with pytest.raises(OptionError, match=r"mode\('append'\)"):
        Sink(SourceOptions({"zenoh.connect": "tcp/a:1"}, WRITE), ROWS, True)


def test_the_configuration_is_what_the_options_say(tmp_path: Path) -> None:
    given = {"zenoh.connect": "tcp/a:1, tcp/b:2", "zenoh.transport.auth.usrpwd.user": "me"}
    config = configuration(SourceOptions(given, WRITE))
    assert json.loads(config.get_json("connect/endpoints")) == ["tcp/a:1", "tcp/b:2"]
    assert json.loads(config.get_json("transport/auth/usrpwd/user")) == "me"
    assert json.loads(config.get_json("mode")) == "client"
    (tmp_path / "c.json5").write_text('{mode: "peer"}')
    config = configuration(SourceOptions({"zenoh.config": str(tmp_path / "c.json5")}, WRITE))
    assert json.loads(config.get_json("mode")) == "peer"
    with pytest.raises(OptionError, match=r"zenoh\.nonsense"):
        configuration(SourceOptions({"zenoh.nonsense": "1"}, WRITE))


def live(router: zenlake.Session, selector: str) -> list[dict[str, object]]:
    given = CaseInsensitiveDict({"zenoh.connect": where(router), "get": selector})
    source = ZenohSource(given)
    found: list[dict[str, object]] = []
    for rows in source.reader(source.schema()).read(InputPartition(None)):
        found += pa.Table.from_batches([rows]).to_pylist()
    return found


def test_the_live_state_is_what_answers_now(router: zenlake.Session) -> None:
    now = router.new_timestamp()

    def answer(query: zenlake.Query) -> None:
        query.reply("robot/1", b"1", encoding="text/plain", timestamp=now)
        query.reply("robot/2", b"2")

    with router.declare_queryable("robot/**", answer):
        one, two = sorted(live(router, "robot/*"), key=lambda row: str(row["key"]))
    assert (one["key"], one["value"], one["encoding"]) == ("robot/1", b"1", "text/plain")
    assert one["hlc"] == int(now.get_time_as_ntp64()) - 2**63
    assert (two["time"], two["hlc"], two["partition"], two["offset"]) == (None,) * 4
    assert live(router, "nobody/**") == []


def test_an_error_for_an_answer_is_an_error(router: zenlake.Session) -> None:
    with (
        router.declare_queryable("robot/**", lambda query: query.reply_err(b"not today")),
        pytest.raises(RemoteError, match="not today"),
    ):
        live(router, "robot/*")


def test_a_network_that_is_not_there_is_said_in_words() -> None:
    made = Sink(SourceOptions({"zenoh.connect": "tcp/127.0.0.1:1"}, WRITE), ROWS, False)
    with pytest.raises(LinkError, match="Is a router running there"):
        made.write(iter([]))


def test_more_keys_than_are_declared_at_once_are_published_as_well(
    router: zenlake.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenlake.spark.sink.MOST_DECLARED", 3)
    rows = [(f"a/{n}", b"%d" % n) for n in range(10)] * 2
    with router.declare_subscriber("a/**", zenlake.handlers.FifoChannel(50)) as heard:
        assert sink(router).write(iter([batch(*rows)])).done == Counter(puts=20)
        found = [heard.recv() for _ in rows]
    assert [(str(sample.key_expr), sample.payload.to_bytes()) for sample in found] == rows
