"""A lake on the bus, asked by Eclipse's client; no Spark runs, for none of these needs it."""

from __future__ import annotations

import datetime
import json
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import zenoh

import zenlake
from tests.api.sessions import connected, listening, where
from tests.journal.recording import until_rows
from tests.lake.journals import Here, rows_of, table_of
from tests.routing.policies import access_control, applying, rule, subject
from tests.waiting import SECONDS, until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.lake import LakeConfig, Pipeline, Retention
from zenlake.lake.maintain.upkeep import compact, retain
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.bus import PARTIAL, BusAnswers
from zenlake.lake.service.service import Service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop]


class World:
    """A router that records, a lake on its bus, and a program of Eclipse's."""

    def __init__(
        self,
        node: zenlake.Session,
        recorder: Recorder,
        lake: Path,
        client: zenoh.Session,
        config: LakeConfig,
    ) -> None:
        self.node = node
        self.recorder = recorder
        self.client = client
        self.heard = 0
        self.lake = lake
        self.service: Service
        self.pipeline = Pipeline(str(lake), recorder.journal.path, Here(), config)

    def put(self, key: str, value: Any, **more: Any) -> None:
        payload = value if isinstance(value, bytes) else json.dumps(value).encode()
        # Every one is waited for: none may be dropped where the machine is busy.
        block = zenoh.CongestionControl.BLOCK
        self.client.put(key, payload, congestion_control=block, **more)
        self.heard += 1

    def settle(self) -> None:
        """Wait until all that was put is recorded."""
        until_rows(self.recorder, self.heard)

    def ask(self, selector: str, **more: Any) -> list[Any]:
        return list(self.client.get(selector, timeout=SECONDS, **more))

    def rows(self, selector: str) -> list[tuple[str, Any]]:
        found = []
        for reply in self.ask(selector):
            assert reply.ok is not None, reply.err.payload.to_string()
            text = reply.ok.payload.to_bytes()
            found.append((str(reply.ok.key_expr), json.loads(text) if text else None))
        # Where the client keeps one reply for each key, it gives them in an order of its own.
        return found if "_time" in selector else sorted(found, key=lambda row: row[0])

    def refusal(self, selector: str) -> str:
        (reply,) = self.ask(selector)
        assert reply.err is not None
        return str(json.loads(reply.err.payload.to_bytes())["error"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("bus")
    with opened(folder) as found:
        yield found


@contextmanager
def opened(
    folder: Path,
    *exprs: str,
    spark: SparkSession | None = None,
    rules: dict[str, object] | None = None,
    config: LakeConfig | None = None,
    **storages: object,
) -> Iterator[World]:
    config = config or LakeConfig()
    options = Options(
        exprs or ("robot/**", "count/**"), str(folder / "journal"), name="j", fsync="5ms"
    )
    with (
        listening(
            mode='"router"',
            plugins=json.dumps({"storage_manager": {"storages": storages}}),
            adminspace__enabled="true",
            **({} if rules is None else {"access_control": json.dumps(rules)}),
        ) as node,
        Recorder(node, options) as recorder,
        connected(node, mode='"client"') as bus,
    ):
        theirs = zenoh.Config()
        theirs.insert_json5("mode", '"client"')
        theirs.insert_json5("connect/endpoints", json.dumps([where(node)]))
        with zenoh.open(theirs) as client:
            found = World(node, recorder, folder / "lake", client, config)
            lake = Lake(found.pipeline.place, spark, config)
            service = found.service = Service(lake, [found.pipeline.journal], bus)
            service.add(BusAnswers(service, bus))
            until(lambda: recorder._answers is not None and recorder._answers.lake)
            try:
                yield found
            finally:
                service.close()


def test_samples_come_as_they_were_published_from_table_and_tail(world: World) -> None:
    for n in range(10):
        if n == 5:
            world.settle()
            world.pipeline.step()
        world.put("robot/1/battery", {"n": n, "level": 100 - n}, attachment=b"beside %d" % n,
                  encoding="application/json")  # fmt: skip
    replies = world.ask("robot/1/*?_time=[now(-1m)..]")
    assert [json.loads(r.ok.payload.to_bytes())["n"] for r in replies] == list(range(10))
    assert {str(r.ok.key_expr) for r in replies} == {"robot/1/battery"}
    assert {str(r.ok.encoding) for r in replies} == {"application/json"}
    assert [r.ok.attachment.to_bytes() for r in replies] == [b"beside %d" % n for n in range(10)]
    stamps = [r.ok.timestamp for r in replies]
    assert all(stamp is not None for stamp in stamps)
    assert world.rows("robot/1/*?_time=[now(-1m)..];_filter=level<94 AND n<9") == [
        ("robot/1/battery", {"n": n, "level": 100 - n}) for n in (7, 8)
    ]


def test_every_parameter_does_what_it_says(world: World) -> None:
    for robot in ("a", "b"):
        for n in range(4):
            world.put(f"robot/{robot}/temp", {"t": n * (1 if robot == "a" else 10)})
    get = world.rows
    assert get("robot/*/temp?_filter=t>=3 AND t<=30") == [
        ("robot/a/temp", {"t": 3}),
        ("robot/b/temp", {"t": 30}),
    ]
    assert get("robot/*/temp?_project=t,chunk(1)") == [
        ("robot/a/temp", {"t": 3, "chunk(1)": "a"}),
        ("robot/b/temp", {"t": 30, "chunk(1)": "b"}),
    ]
    assert get("robot/*/temp?_time=[now(-1m)..];_order=t desc;_limit=3") == [
        ("robot/b/temp", {"t": 30}),
        ("robot/b/temp", {"t": 20}),
        ("robot/b/temp", {"t": 10}),
    ]
    (answer,) = get("robot/*/temp?_agg=count(),count(t)")
    assert answer[1][0] == {"key": "robot/a/temp", "count()": 1, "count(t)": 1}
    (answer,) = get("robot/*/temp?_time=[now(-1m)..];_agg=avg(t),max(t),count(*)/1h")
    assert answer[0] == "robot/*/temp"
    totals: dict[str, tuple[float, float]] = {}
    for row in answer[1]:
        high, count = totals.get(row["key"], (0, 0))
        totals[row["key"]] = (max(high, row["max(t)"]), count + row["count(*)"])
    assert totals == {"robot/a/temp": (3, 4), "robot/b/temp": (30, 4)}
    (reply,) = world.ask("robot/*/temp?_agg=sum(t);_as=arrow")
    table = pa.ipc.open_stream(reply.ok.payload.to_bytes()).read_all()
    assert table.to_pylist() == [
        {"key": "robot/a/temp", "sum(t)": 3},
        {"key": "robot/b/temp", "sum(t)": 30},
    ]
    *data, proof = get("robot/*/temp?_time=[now(-1m)..];_limit=2;_proof=true")
    assert len(data) == 2
    assert proof[1]["partitions"][0]["journal_to"] >= world.heard - 10
    assert proof[1]["journal"] == world.recorder.journal.id
    # Nobody numbers these, so nobody knows; what is known of other keys is no proof of theirs.
    assert (proof[1]["complete"], proof[1]["sources"]) == (None, [])
    assert set(proof[1]["unprovable"]) == {"robot/a/temp", "robot/b/temp"}


def test_the_past_has_the_values_of_then_and_respects_deletions(world: World) -> None:
    world.put("robot/z/past/pose", {"x": 1})
    until(lambda: world.rows("robot/z/past/pose?_filter=x=1") != [])
    world.settle()
    world.pipeline.step()
    between = datetime.datetime.now(datetime.UTC)
    until(
        lambda: datetime.datetime.now(datetime.UTC) > between + datetime.timedelta(milliseconds=5)
    )
    world.put("robot/z/past/pose", {"x": 2})
    world.settle()
    after = datetime.datetime.now(datetime.UTC)
    until(lambda: datetime.datetime.now(datetime.UTC) > after + datetime.timedelta(milliseconds=5))
    world.client.delete("robot/z/past/*")
    world.heard += 1
    world.settle()

    def at(when: datetime.datetime) -> list[tuple[str, Any]]:
        return world.rows(f"robot/z/past/pose?_asof={when:%Y-%m-%dT%H:%M:%S.%fZ}")

    assert at(between) == [("robot/z/past/pose", {"x": 1})]
    assert at(after) == [("robot/z/past/pose", {"x": 2})]
    assert at(datetime.datetime.now(datetime.UTC)) == []
    assert world.rows("robot/z/past/pose?_filter=x>0") == []


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("_filter=a<", "'a<'"), ("_filter=foo(a)>1", "foo()"), ("_filter=" + "(" * 50 + "a", "32"),
        ("_agg=median(a)", "'median(a)'"), ("_agg=avg(a)/5x", "'5x'"),
        ("_limit=many", "_limit=many"), ("_limit=-1", "_limit=-1"), ("_limit=1e3", "_limit=1e3"),
        ("_proof=maybe", "_proof=maybe"), ("_proof=True", "_proof=True"),
        ("_as=arrow", "_as=arrow"), ("_limit=1;_limit=1", "'_limit' occurs 2 times"),
        ("_order=", "'_order' has no value"), ("_asof=yesterday", "'yesterday'"),
        ("_time=[now()..];_asof=now()", "_asof"), ("_as=xml", "_as=xml"),
        ("_filter=a=1;_filter=a=2", "'_filter' occurs 2 times"), ("_project=a,,b", "a,,b"),
        ("_filter=a LIKE '" + "%" * 5000 + "'", "at most 4096"), ("_time=yesterday", "brackets"),
        ("_filter=a=1;_agg=avg(key())", "key()"), ("_agg=avg(a);_project=b", "'_project'"),
        ("_tim=[now(-1h)..]", "'_time'"), ("_time=[now(-1h)..];_limt=1", "'_limit'"),
    ],
)  # fmt: skip
def test_errors_name_the_text_that_is_at_fault(world: World, parameters: str, named: str) -> None:
    assert named in world.refusal(f"robot/**?{parameters}")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("_limit=3;_sql=SELECT 1", "'_limit'"), ("_time=[now(-1m)..];_sql=SELECT 1", "'_time'"),
        ("_proof=maybe;_sql=SELECT 1", "_proof=maybe"), ("_as=xml;_sql=SELECT 1", "_as=xml"),
        ("_sql=SELECT 1;_sql=SELECT 2", "'_sql' occurs 2 times"), ("_sql=", "no question"),
    ],
)  # fmt: skip
def test_sql_is_refused_with_words_that_it_does_not_know(
    world: World, parameters: str, named: str
) -> None:
    assert named in world.refusal(f"@lake/sql?{parameters}")


def test_a_query_without_a_parameter_of_the_lake_is_not_its_business(world: World) -> None:
    world.put("robot/plain", {"n": 1})
    world.settle()
    # The recorder answers it, once, as it did before.
    assert world.rows("robot/plain") == [("robot/plain", {"n": 1})]
    assert world.rows("robot/plain?other=1") == [("robot/plain", {"n": 1})]
    with world.client.declare_queryable("robot/mine", complete=True) as mine:
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.extend(world.ask("robot/mine")))
        asking.start()
        with mine.recv() as query:
            query.reply("robot/mine", b"of the application")
        asking.join()
    assert [reply.ok.payload.to_bytes() for reply in found] == [b"of the application"]


@pytest.mark.parametrize("history", ["latest", "all"])
def test_storage_recorder_and_lake_never_answer_twice_for_one_key(
    history: str, tmp_path: Path
) -> None:
    storage = {"key_expr": "robot/a/**", "volume": "memory", "history": history}
    with opened(tmp_path, "robot/**", s=storage) as world:
        for n in range(4):
            if n == 2:
                world.settle()
                world.pipeline.step()
            world.put("robot/a/x", {"n": n})
            world.put("robot/b", {"n": n})
        world.settle()

        def told(parameters: str) -> list[tuple[str, int]]:
            replies = world.ask(f"robot/**{parameters}", consolidation=zenoh.ConsolidationMode.NONE)
            assert all(reply.ok is not None for reply in replies)
            return sorted(
                (str(reply.ok.key_expr), json.loads(reply.ok.payload.to_bytes())["n"])
                for reply in replies
            )

        newest = [("robot/a/x", 3), ("robot/b", 3)]
        until(lambda: told("") == newest)
        everything = [(key, n) for key in ("robot/a/x", "robot/b") for n in range(4)]
        assert told("?_time=[now(-1h)..]") == everything
        assert told("?_asof=now()") == newest
        assert told("?_filter=n>2") == newest
        assert told("?_time=[now(-1h)..];_filter=n<2") == [
            (key, n) for key, n in everything if n < 2
        ]


def test_a_counter_is_exact_over_tail_and_table_while_they_change(world: World) -> None:
    stop = threading.Event()
    total = 300

    world.put("count/gone", {"n": -1})

    def count() -> None:
        for n in range(total):
            world.put("count/up", {"n": n})
            if n % 60 == 30:
                world.pipeline.step()
            if n == 120:
                # Another driver takes over, as after a restart.
                world.pipeline = Pipeline(
                    world.pipeline.place.uri, world.pipeline.journal.path, Here(), LakeConfig()
                )
            if n in (170, 280):
                compact(table_of(world.lake, "samples"), Here(), LakeConfig(), full=True)
            if n == 230:
                retain(table_of(world.lake, "samples"), Here(), (Retention("count/gone", 0.0),))
        stop.set()

    counting = threading.Thread(target=count)
    counting.start()
    chance = random.Random(3)
    seen = 0
    while True:
        over = stop.is_set()
        found = [row["n"] for _, row in world.rows("count/up?_time=[now(-5m)..]")]
        assert found == list(range(len(found)))
        assert len(found) >= seen
        seen = len(found)
        ((_, sums),) = world.rows("count/up?_time=[now(-5m)..];_agg=sum(n),count(n)")
        for row in sums:
            assert row["sum(n)"] == row["count(n)"] * (row["count(n)"] - 1) // 2
        if chance.random() < 0.5:
            assert len(world.rows("count/up?_filter=n>=0")) <= 1
        if over:
            break
    counting.join()
    assert seen == total
    assert world.rows("count/gone?_time=[now(-5m)..]") == []


def test_twenty_ask_at_once_and_some_vanish(world: World) -> None:
    for n in range(50):
        world.put(f"robot/many/{n}", {"n": n})
    world.settle()
    answers: list[int] = []

    def ask() -> None:
        answers.append(len(world.ask("robot/many/**?_time=[now(-5m)..]")))

    asking = [threading.Thread(target=ask) for _ in range(20)]
    for thread in asking:
        thread.start()
    # Who goes away without reading is nobody's problem.
    for _ in range(5):
        del_me = world.client.get("robot/many/**?_time=[now(-5m)..]", timeout=0.001)
        del del_me
    for thread in asking:
        thread.join()
    assert answers == [50] * 20


def test_clients_that_do_not_read_delay_nobody_else(world: World) -> None:
    for n in range(200):
        world.put(f"robot/large/{n}", json.dumps({"n": n}).encode() + b" " * 100_000)
    world.put("robot/small", {"n": 1})
    world.settle()
    stuck = threading.Event()
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([where(world.node)]))
    with ExitStack() as slow:
        for _ in range(5):
            session = slow.enter_context(zenoh.open(config))
            # Sessions close when their callbacks have ended, whatever happens here.
            slow.callback(stuck.set)
            session.get(
                "robot/large/**?_time=[now(-5m)..]", lambda reply: stuck.wait(), timeout=3600
            )
        # None of the others has read its answer, and none will before this one is here.
        assert world.rows("robot/small?_time=[now(-5m)..]") == [("robot/small", {"n": 1})]


@contextmanager
def guest(at: zenlake.Session) -> Iterator[zenoh.Session]:
    """A program of Eclipse's that the rules call a guest."""
    config = zenoh.Config()
    for key, value in (
        ("id", "9e57"),
        ("mode", "client"),
        ("connect/endpoints", [where(at)]),
    ):
        config.insert_json5(key, json.dumps(value))
    with zenoh.open(config) as session:
        yield session


def guarded(*rules: dict[str, object]) -> dict[str, object]:
    """Rules for the guest alone."""
    names = [str(one["id"]) for one in rules]
    return access_control(
        "allow", list(rules), [subject("guests", zids=["9e57"])], [applying(names, ["guests"])]
    )


def told(session: zenoh.Session, selector: str, **more: Any) -> list[Any]:
    """What is replied: JSON, key and payload, or the error."""
    found: list[Any] = []
    for reply in session.get(selector, timeout=SECONDS, **more):
        if reply.ok is None:
            found.append(str(json.loads(reply.err.payload.to_bytes())["error"]))
        else:
            found.append((str(reply.ok.key_expr), reply.ok.payload.to_bytes()))
    return found


SECRET = rule("no secrets", "deny", "robot/secret/**", messages=["query", "reply"])


def test_no_answer_tells_of_keys_that_access_control_denies_to_the_asker(tmp_path: Path) -> None:
    with (
        opened(tmp_path, "robot/**", rules=guarded(SECRET)) as world,
        guest(world.node) as stranger,
    ):
        for n, key in enumerate(["robot/a", "robot/secret/x", "robot/b", "robot/secret/y"]):
            world.put(key, {"n": n})
            if n == 1:
                world.settle()
                world.pipeline.step()
        world.settle()
        many = "robot/**?_time=[now(-1h)..];_agg=count(*)"
        assert [row["key"] for row in world.rows(many)[0][1]] == [
            "robot/a",
            "robot/b",
            "robot/secret/x",
            "robot/secret/y",
        ]
        for span in ("_time=[now(-1h)..]", "_asof=now()", "_filter=n>=0"):
            ((key, payload),) = told(stranger, f"robot/**?{span};_agg=count(*),max(n)")
            assert key == "robot/**"
            assert [row["key"] for row in json.loads(payload)] == ["robot/a", "robot/b"]
        # The first of those that it may see, not of all.
        limited = told(stranger, "robot/**?_time=[now(-1h)..];_filter=n>0;_limit=1")
        assert [key for key, _ in limited] == ["robot/b"]
        # What it says itself of what it may read adds nothing.
        forged = ReadableKeys(((ReadableChoice(("**",)),),)).restrict("_asof=now();_agg=count(*)")
        ((_, payload),) = told(stranger, f"robot/**?{forged}")
        assert b"secret" not in payload
        assert told(stranger, "robot/**?_time=[now(-1h)..];_proof=true") == [PARTIAL]
        assert told(stranger, "robot/secret/**?_asof=now();_agg=count(*)") == []
        # The journal itself, in every way that it tells of keys.
        rows = told(stranger, "@journal/j/rows/0/**", consolidation=zenoh.ConsolidationMode.NONE)
        batches = [one for _, payload in rows for one in pa.ipc.open_stream(payload)]
        keys = [key for one in batches if one.num_rows for key in one["key"].to_pylist()]
        assert keys == ["robot/a", "robot/b"]
        documents = told(stranger, "@journal/j/*")
        assert {key.rpartition("/")[2] for key, _ in documents} >= {"manifest", "ledger", "stats"}
        for key, payload in [*rows, *documents]:
            assert b"secret" not in payload, key
        (refusal,) = told(stranger, "@journal/j/segments/0/0/**")
        assert "segments have the rows of all keys" in refusal
        assert b"secret" in dict(told(world.client, "@journal/j/*"))["@journal/j/ledger"]


UNTOUCHED = rule("no writes", "deny", "robot/secret/**", messages=["put", "delete"])


@pytest.mark.parametrize("expr", ["**", "robot/**", "robot/*/x"])
def test_a_write_of_many_keys_changes_those_alone_that_its_sender_may_write(
    tmp_path: Path, expr: str
) -> None:
    """Of the recorder, and of the lake that reads it."""
    secret = ("robot/secret/x", {"n": 1})
    with (
        opened(tmp_path, "robot/**", rules=guarded(UNTOUCHED)) as world,
        guest(world.node) as stranger,
    ):

        def demand(after: list[tuple[str, Any]]) -> None:
            world.heard += 1
            world.settle()
            assert world.rows("robot/**") == after, "of the recorder"
            world.pipeline.step()
            world.pipeline.finish()
            world.service.committed()
            for question in ("robot/**?_asof=now()", "robot/**?_filter=n>=0"):
                assert world.rows(question) == after
            assert latest(world) == [key for key, _ in after]

        for key, value in (("robot/free/x", {"n": 0}), secret):
            world.put(key, value)
        world.settle()
        world.pipeline.step()
        blocking = zenoh.CongestionControl.BLOCK
        stranger.put(expr, json.dumps({"n": 666}), congestion_control=blocking)
        demand([("robot/free/x", {"n": 666}), secret])
        stranger.delete(expr, congestion_control=blocking)
        demand([secret])
        stranger.put("robot/free/y", json.dumps({"n": 2}), congestion_control=blocking)
        after = [("robot/free/y", {"n": 2}), secret]
        demand(after)
        # Who may write all of them changes all.
        world.client.delete(expr, congestion_control=blocking)
        world.heard += 1
        world.settle()
        world.pipeline.step()
        world.pipeline.finish()
        world.service.committed()
        left = [row for row in after if row[0].endswith("y") and expr.endswith("x")]
        assert world.rows("robot/**?_asof=now()") == left
        assert world.rows("robot/**") == left
        assert latest(world) == [key for key, _ in left]


def latest(world: World) -> list[str]:
    """The keys in the table of the newest values."""
    return sorted(row["key"] for row in rows_of(world.lake, "latest"))


def test_the_router_of_the_asker_speaks_for_it_across_other_routers(tmp_path: Path) -> None:
    rules = guarded(rule("no poses", "deny", "robot/*/pose", flows=["egress"]))
    with (
        opened(tmp_path, "robot/**") as world,
        connected(
            world.node,
            mode='"router"',
            listen__endpoints='["tcp/127.0.0.1:0"]',
            access_control=json.dumps(rules),
        ) as border,
        guest(border) as stranger,
    ):
        world.put("robot/a", {"n": 1})
        world.put("robot/b/pose", {"n": 2})
        world.settle()
        selector = "robot/**?_asof=now();_agg=count(*)"
        until(lambda: bool(told(stranger, selector)))
        assert [row["key"] for row in world.rows(selector)[0][1]] == ["robot/a", "robot/b/pose"]
        ((_, payload),) = told(stranger, selector)
        assert [row["key"] for row in json.loads(payload)] == ["robot/a"]
