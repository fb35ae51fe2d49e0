"""Columns from the wire hold what the plain way gives."""

from __future__ import annotations

import threading
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zenlake
from tests.api.sessions import config, connected, listening, until_matched
from tests.journal.ingest.plain import PlainSink
from tests.waiting import SECONDS
from zenlake.clock import Hlc, ZenohId
from zenlake.errors import ZError
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.ingest import columns as columns_module
from zenlake.journal.ingest.columns import (
    FRAME,
    PIECE_BYTES,
    PIECE_ROWS,
    ColumnSink,
    cuts,
    declare_columns,
)
from zenlake.journal.ingest.kernel import RowSink
from zenlake.journal.schema import UNNUMBERED
from zenlake.testing import spec
from zenlake.testing.network import Host, Network, Stranger
from zenlake.testing.strategies import messages
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    Del,
    Frame,
    InitAck,
    Message,
    OpenSyn,
    Push,
    Put,
    SourceInfo,
    Timestamp,
    UndeclareKeyExpr,
    read_batch,
    write,
)

ZID = bytes(range(1, 17))
NOW = 1_800_000_000_123_456_789
KEYS = ["a", "a/b", "robot/seven/" + "x" * 9, "robot/eight/" + "x" * 9, "é/" + "x" * 150]


def greeted(network: Network, host: Host) -> Stranger:
    """A client played by the test, with an open session."""
    client = network.stranger(host)
    client.say(bytes.fromhex("81090266812701"))
    network.run(0.01)
    [ack] = read_batch(client.heard()[0])
    assert isinstance(ack, InitAck)
    client.say(write(OpenSyn(lease=10_000, initial_sn=0, cookie=ack.cookie)))
    network.run(0.01)
    return client


class Twins:
    """Two peers that hear the same bytes: one makes columns, the other plain rows."""

    def __init__(self, partitions: int = 1) -> None:
        self.network = Network()
        self.columns = ColumnSink(partitions)
        self.rows: RowSink = self.columns.open(Hlc(ZenohId(ZID)), lambda: NOW)
        self.plain = PlainSink(Hlc(ZenohId(ZID)), partitions, lambda: NOW)
        self.sn = 0
        self.strangers: list[Stranger] = []
        self.hosts: list[Host] = []
        for name, sink in (("columns", self.rows), ("plain", self.plain)):
            host = self.network.node(name)
            self.hosts.append(host)
            host.node.local.subscribe("**", sink)
            self.strangers.append(greeted(self.network, host))

    def say(self, *said: Message, reliable: bool = True) -> None:
        """Say something to both."""
        self.say_bytes(write(Frame(sn=self.sn, reliable=reliable, messages=said)))

    def say_bytes(self, data: bytes) -> None:
        """Say these bytes to both, as the next frame."""
        self.sn += 1
        for client in self.strangers:
            client.say(data)
        self.network.run(0.01)

    def check(self) -> list[dict[str, object]]:
        """Both have the same rows; gives them."""
        expected = self.plain.take()
        found = self.columns.take()
        assert [partition for partition, _ in found] == [partition for partition, _ in expected]
        rows: list[dict[str, object]] = []
        for (_, batch), (_, wanted) in zip(found, expected, strict=True):
            batch.validate(full=True)
            assert batch.schema == UNNUMBERED
            assert batch.to_pylist() == wanted.to_pylist()
            rows.extend(batch.to_pylist())
        return rows


def pushes() -> st.SearchStrategy[Push]:
    """Push messages under a few keys; shared memory was never agreed."""

    def ready(push: Message, key: str) -> Push:
        assert isinstance(push, Push)
        push.scope, push.suffix, push.sender_mapping, push.node_id = 0, key, True, 0
        if isinstance(push.body, Put) and push.body.shm:
            push.body = Del()
        return push

    return st.builds(ready, messages(spec("Push")), st.sampled_from(KEYS))


@given(st.lists(pushes(), min_size=1, max_size=12), st.booleans())
@settings(max_examples=40, deadline=None)
def test_columns_are_what_the_plain_way_gives(said: list[Push], reliable: bool) -> None:
    twins = Twins()
    twins.say(*[Push(scope=0, suffix=key, body=Put(payload=b"")) for key in KEYS])
    twins.say(*said, reliable=reliable)
    rows = twins.check()
    assert len(rows) == len(KEYS) + len(said)
    twins.say(*said, *said, reliable=reliable)
    assert len(twins.check()) == 2 * len(said)


@given(
    st.lists(pushes(), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0, 1 << 16),
)
@settings(max_examples=40, deadline=None)
def test_of_damaged_bytes_both_keep_the_same(
    said: list[Push], damage: list[tuple[int, int]], cut: int
) -> None:
    twins = Twins()
    twins.say(*[Push(scope=0, suffix=key, body=Put(payload=b"")) for key in KEYS])
    twins.check()
    frame = bytearray(write(Frame(sn=twins.sn, reliable=True, messages=tuple(said))))
    for at, value in damage:
        frame[2 + at % (len(frame) - 2)] = value
    twins.say_bytes(bytes(frame[: 2 + cut % len(frame)]))
    twins.check()
    one, other = (host.sessions for host in twins.hosts)
    assert one == other
    twins.say(*said)
    twins.check()


def test_usual_messages_make_no_sample() -> None:
    twins = Twins()
    stamp = Timestamp(seconds=1_800_000_000, fraction=77, id=b"\x01" * 16)
    source = SourceInfo(zid=b"\x02" * 16, eid=300, sn=70_000)
    twins.say(Declare(body=DeclareKeyExpr(id=300, scope=0, suffix="robot")))
    usual: list[Push] = [
        Push(scope=300, suffix=suffix, qos=qos, body=body)
        for suffix in ("", "/1", "/one/two/three")
        for qos in (5, 0x1D, 0x2A)
        for body in (
            Put(payload=b""),
            Put(payload=b"x" * 12),
            Put(payload=b"x" * 13, timestamp=stamp),
            Put(payload=b"x" * 300, encoding=40, schema=b"a.b", source_info=source),
            Put(payload=b"1", attachment=b"y" * 200, source_info=source, timestamp=stamp),
            Put(payload=b"1", attachment=b"", encoding=7),
            Del(timestamp=stamp),
            Del(attachment=b"why", source_info=source),
        )
    ]
    twins.say(*usual)
    twins.check()
    before = twins.rows.received
    twins.say(*usual, *usual)
    assert len(twins.check()) == 2 * len(usual)
    assert twins.rows.received - before == 2 * len(usual)
    # One stretch of rows for the whole frame: nothing was read in another way.
    twins.say(*usual)
    assert len(twins.rows.table.frames) == FRAME.itemsize
    twins.check()
    way = twins.hosts[0].node.neighbours[0].pushes.inbounds.all()
    assert sum(inbound.samples for inbound in way) == 4 * len(usual)


def test_a_number_that_changes_its_meaning_is_followed() -> None:
    twins = Twins()
    put = Push(scope=7, body=Put(payload=b"x"))
    twins.say(Declare(body=DeclareKeyExpr(id=7, scope=0, suffix="old")))
    twins.say(put, put)
    twins.say(
        Declare(body=UndeclareKeyExpr(id=7)),
        Declare(body=DeclareKeyExpr(id=7, scope=0, suffix="new")),
        put,
        put,
    )
    assert [row["key"] for row in twins.check()] == ["old", "old", "new", "new"]


def test_who_else_subscribes_hears_too() -> None:
    twins = Twins()
    put = Push(scope=0, suffix="a", body=Put(payload=b"x"))
    twins.say(put, put)
    other = twins.hosts[0].subscribe("a")
    twins.say(put, put)
    assert len(other.samples) == 2
    assert len(twins.check()) == 4


def test_two_sinks_each_read_what_they_alone_hear() -> None:
    network = Network()
    host = network.node("columns")
    sinks = {expr: ColumnSink() for expr in ("a/**", "b/**")}
    tables = {}
    for expr, sink in sinks.items():
        tables[expr] = sink.open(Hlc(ZenohId(ZID)), lambda: NOW)
        host.node.local.subscribe(expr, tables[expr])
    client = greeted(network, host)
    said = [
        Push(scope=0, suffix=key, body=Put(payload=key.encode()))
        for key in ("a/1", "a/2", "b/1", "a/1", "b/2", "c")
    ]
    for sn in range(3):
        client.say(write(Frame(sn=sn, reliable=True, messages=tuple(said))))
        network.run(0.01)
        stretches = [len(table.table.frames) // FRAME.itemsize for table in tables.values()]
        found = {expr: sink.take()[0][1].to_pylist() for expr, sink in sinks.items()}
        assert [row["key"] for row in found["a/**"]] == ["a/1", "a/2", "a/1"]
        assert [row["value"] for row in found["b/**"]] == [b"b/1", b"b/2"]
    # In the end all neighbours in one frame that go to the same sink are read together.
    assert stretches == [2, 2]


def test_rows_go_to_the_partition_of_their_key_in_order() -> None:
    twins = Twins(partitions=4)
    keys = [f"robot/{number}" for number in range(20)]
    source = SourceInfo(zid=b"\x02" * 16, eid=3, sn=5)
    said = [
        Push(
            scope=0,
            suffix=key,
            body=Put(
                payload=f"{key}:{turn}".encode() * (1 + turn),
                attachment=b"z" * turn if turn % 2 else None,
                source_info=source if turn == 2 else None,
                encoding=1,
                schema=b"s" if turn == 1 else b"",
            ),
        )
        for turn in range(3)
        for key in keys
    ]
    twins.say(*said)
    twins.say(*said)
    rows = twins.check()
    assert len(rows) == 2 * len(said)
    parts = [partition_of(str(row["key"]), 4) for row in rows]
    assert set(parts) == {0, 1, 2, 3}
    assert parts == sorted(parts)
    assert partition_of("robot/1", 4) == zlib.crc32(b"robot/1") % 4


def test_a_schema_that_is_not_text_does_not_cost_its_row() -> None:
    twins = Twins()
    put = Push(scope=0, suffix="a", body=Put(payload=b"x", schema=b"\xff\xfe"))
    twins.say(put, put)
    assert [row["encoding_schema"] for row in twins.check()] == ["�FF�FE"] * 2


def test_numbering_begins_anew_when_there_are_too_many_keys() -> None:
    twins = Twins()
    generation = twins.rows.generation
    for key in range(70_000):
        twins.rows.key_number(f"k/{key}")
    put = Push(scope=0, suffix="a", body=Put(payload=b"x"))
    twins.say(put, put)
    assert [row["key"] for row in twins.check()] == ["a", "a"]
    assert twins.rows.generation == generation + 1
    twins.say(put, put)
    assert [row["key"] for row in twins.check()] == ["a", "a"]


# ------------------------------------------------------------------------------------ sessions


def collect(sink: ColumnSink, rows: int) -> pa.Table:
    """All batches until there are so many rows, taken on a thread of their own."""
    batches: list[pa.RecordBatch] = []

    def take() -> None:
        while sum(len(batch) for batch in batches) < rows and sink.wait():
            batches.extend(batch for _, batch in sink.take())

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), f"{sum(map(len, batches))} of {rows} rows"
    return pa.Table.from_batches(batches)


def test_a_session_feeds_columns() -> None:
    sink = ColumnSink()
    with listening() as near, declare_columns(near, "robot/**", sink) as declared:
        assert str(declared.key_expr) == "robot/**"
        with connected(near) as far:
            publisher = far.declare_publisher(
                "robot/1", congestion_control=zenlake.CongestionControl.BLOCK
            )
            until_matched(publisher)
            for number in range(2000):
                publisher.put(f"{number}".encode())
            publisher.put(b"big" * 100_000)
            publisher.delete()
            table = collect(sink, 2002)
    assert table.column("value").to_pylist()[:2000] == [str(n).encode() for n in range(2000)]
    assert table.column("value")[2000].as_py() == b"big" * 100_000
    assert table.column("kind").to_pylist() == [0] * 2001 + [1]
    assert (
        table.column("key").combine_chunks().dictionary_decode().to_pylist() == ["robot/1"] * 2002
    )
    hlc = table.column("hlc").to_pylist()
    assert hlc == sorted(set(hlc))
    assert sink.received == 2002
    assert sink.dropped == 0


def test_samples_of_this_very_session_are_rows_too() -> None:
    sink = ColumnSink()
    with zenlake.open(config()) as session, declare_columns(session, "a", sink):
        session.put("a", b"here", attachment=b"note")
        [row] = collect(sink, 1).to_pylist()
        assert (row["value"], row["attachment"], row["stamped"]) == (b"here", b"note", True)
        assert row["stamp_id"] == bytes(session.zid())


def test_undeclared_it_ends_and_what_came_can_be_taken() -> None:
    sink = ColumnSink()
    with zenlake.open(config()) as session:
        declared = declare_columns(session, "a", sink)
        session.put("a", b"1")
        declared.undeclare()
        session.put("a", b"2")
        assert sink.wait()
        assert [len(batch) for _, batch in sink.take()] == [1]
        assert not sink.wait()
        assert sink.take() == []
        with pytest.raises(ZError, match="Undeclared"):
            _ = declared.key_expr
        with pytest.raises(ZError, match="declared already"):
            declare_columns(session, "a", sink)


def test_a_sink_that_nobody_takes_from_holds_up_the_publisher() -> None:
    sink = ColumnSink(linger=0)
    payload = bytes(30_000)
    with listening() as near, declare_columns(near, "a", sink), connected(near) as far:
        publisher = far.declare_publisher("a", congestion_control=zenlake.CongestionControl.BLOCK)
        until_matched(publisher)
        sent = 0
        done = threading.Event()

        def publish() -> None:
            nonlocal sent
            while sent < 4000:  # 120 MB, of which a channel holds about 64
                publisher.put(payload)
                sent += 1
            done.set()

        threading.Thread(target=publish, daemon=True).start()
        channel = sink.channel
        waiting = threading.Event()
        for _ in range(600):
            if channel.is_full() or waiting.wait(0.05):
                break
        assert channel.is_full()
        assert not done.is_set()
        rows = 0
        while rows < 4000 and sink.wait():
            rows += sum(len(batch) for _, batch in sink.take())
        assert done.wait(SECONDS)
        assert (rows, sink.dropped) == (4000, 0)


def test_no_partition_holds_no_rows() -> None:
    with pytest.raises(ZError, match="give 1 or more"):
        ColumnSink(0)


@given(st.lists(st.sampled_from([0, 1, 1000, 9000, PIECE_BYTES // 3, PIECE_BYTES + 1]), min_size=1))
def test_rows_are_cut_where_their_values_are_enough(sizes: list[int]) -> None:
    found = cuts(np.array(sizes * 20, np.int32))
    assert [start for start, _ in found] == [0, *[stop for _, stop in found[:-1]]]
    assert found[-1][1] == 20 * len(sizes)
    for start, stop in found:
        assert stop == start + 1 or sum((sizes * 20)[start:stop]) <= PIECE_BYTES


def test_where_there_are_many_rows_they_are_cut_at_whole_bytes_of_bitmaps() -> None:
    found = cuts(np.full(100_000, 1000, np.int32))
    assert len(found) > 10
    assert all(start % PIECE_ROWS == 0 for start, _ in found)


@given(st.lists(pushes(), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_batches_that_are_cut_hold_what_the_plain_way_gives(said: list[Push]) -> None:
    twins = Twins()
    twins.say(*[Push(scope=0, suffix=key, body=Put(payload=b"")) for key in KEYS])
    twins.say(*said)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(columns_module, "PIECE_BYTES", 16)
        found = twins.columns.take()
    [(_, wanted)] = twins.plain.take()
    rows = []
    for partition, batch in found:
        batch.validate(full=True)
        assert partition == 0
        rows += batch.to_pylist()
    assert rows == wanted.to_pylist()
