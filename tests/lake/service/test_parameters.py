"""Every parameter of the table, asked of every service on the bus.

What a service says to each is compared with a page that was written by hand. A lake, a recorder
without a lake and a storage have the same samples under different keys.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import zenoh

from tests.journal.recording import until_rows
from tests.lake.service.test_bus import World, opened
from tests.waiting import until
from zenlake import ext
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.keys.query_parameters import SERVICES, TABLE
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.lake import LakeConfig
from zenlake.lake.continuous.manager import ContinuousQueries
from zenlake.lake.continuous.requests import ContinuousRequests
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.service.missing_tables import MissingTables
from zenlake.lake.service.sample_decoder import SampleDecoder

pytestmark = [pytest.mark.interop]

#: What is asked of each service. An HTTP server is not on the bus.
ASKED = {
    "recorder": "alone/*",
    "storage": "stored/*",
    "lake": "robot/*",
    "@lake/sql": "@lake/sql?_sql=SELECT count(*) FROM samples",
    "@lake/tables": "@lake/tables/**",
    "@lake/without_table": "@lake/without_table",
    "@lake/views": "@lake/views/**",
    "@lake/alerts": "@lake/alerts/**",
    "@lake/decode": "@lake/decode/robot/1",
    "@journal": "@journal/alone/stats",
    "@": "@/*/router",
    # Its samples have other keys than the cache.
    "cache": "cached/1/@adv/pub/**?_anyke",
}
KEYS = ("recorder", "storage", "lake")
#: Typed tables of the lake: their names and keys.
TABLES = (("every", "robot/${id:*}"), ("one", "robot/1"))
#: There are no views and alerts in this lake.
EMPTY = ("@lake/views", "@lake/alerts")
#: `+`: obeys it, `-`: passes over it, `!`: refuses it.
PAGE = """
           recorder storage lake @lake/sql @lake/tables @lake/without_table @lake/views @lake/alerts @lake/decode @journal @ cache
_time      +        +       +    !         -            -                   -           +            !            -        - +
_asof      !        !       +    !         !            !                   !           !            !            !        ! -
_filter    !        !       +    !         !            !                   !           !            !            !        ! -
_project   !        !       +    !         !            !                   !           !            !            !        ! -
_agg       !        !       +    !         !            !                   !           !            !            !        ! -
_order     !        !       +    !         !            !                   !           !            !            !        ! -
_limit     +        +       +    !         !            !                   !           !            !            !        ! -
_as        !        !       +    +         !            !                   !           !            !            !        ! -
_proof     !        !       +    +         !            !                   !           !            !            !        ! -
_sql       !        !       !    +         !            !                   !           !            !            !        ! -
_ack_put   +        +       -    !         !            !                   !           !            !            !        ! -
_anyke     -        -       -    -         -            -                   -           -            -            -        - -
_max       -        -       -    -         -            -                   -           -            -            -        - +
_sn        -        -       -    -         -            -                   -           -            -            -        - +
_stats     -        -       -    -         -            -                   -           -            -            -        + -
_raw       -        -       -    -         -            -                   -           -            -            -        - -
_download  -        -       -    -         -            -                   -           -            -            -        - -
_cut       -        -       -    -         -            -                   -           -            -            -        - -
_readable  -        -       +    +         +            +                   +           +            -            +        - -
_asker     +        +       +    +         +            +                   +           +            +            +        + -
"""  # noqa: E501

#: What is put below each root, in this order: the newest values are not in the order of keys.
SAMPLES = [
    (key, {"battery": 10 * n, "temp": key, "pose": {"x": -n}})
    for n, key in enumerate([2, 0, 1, 1, 2, 0])
]
NEWEST = SAMPLES[3:]
#: The first chunk of keys, and whether past values of them are kept.
ROOTS = {"alone": True, "stored": False, "kept": True, "robot": True}
HEAD, *ROWS = [line.split() for line in PAGE.strip().splitlines()]
MARKS = [
    (service, name, mark)
    for name, *marks in ROWS
    for service, mark in zip(HEAD, marks, strict=True)
]
EXAMPLES = {one.name: one.example for one in TABLE} | {
    "_asof": "_asof=now()",
    "_filter": "_filter=battery<50",
    "_as": "_as=json;_agg=count()",
    "_sn": "_sn=2..3",
    "_readable": f"_readable={ReadableKeys(((ReadableChoice(('**',)),),)).text()}",
}
#: What is said of a parameter that only a lake obeys, by services for keys.
NO_LAKE = (
    "is answered by a lake, and none serves these keys here; start `zenlake up`, or "
    "`zenlake lake run -e` with this router"
)
REFUSALS = {
    "_sql": "is a question in SQL; ask @lake/sql",
    "_ack_put": "is for puts on keys that are recorded or stored; leave it out",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("parameters")
    stored = {"key_expr": "stored/**", "volume": "memory"}
    sqlite = {"id": "sqlite", "dir": str(folder)}
    kept = {"key_expr": "kept/**", "volume": sqlite, "history": "all"}
    tables = LakeConfig(tables=tuple(TypedTable(*one) for one in TABLES))
    with opened(folder, "robot/**", config=tables, stored=stored, kept=kept) as world:
        options = Options(("alone/**",), str(folder / "alone"), name="alone", fsync="5ms")
        numbered = ext.MissDetectionConfig()
        with (
            Recorder(world.node, options) as alone,
            ext.declare_advanced_publisher(
                world.node, "cached/1", cache=ext.CacheConfig(3), sample_miss_detection=numbered
            ) as cached,
        ):
            service, session, pipeline = world.service, world.service.session, world.pipeline
            assert session is not None
            queries = ContinuousQueries(service, print)
            service.add(queries)
            service.add(ContinuousRequests(service, queries))
            service.add(SampleDecoder(session, pipeline.types, lambda: tuple(pipeline.specs)))
            service.add(MissingTables(session, pipeline.found))
            half = len(SAMPLES) // 2
            for some, rows in ((SAMPLES[:half], half), (SAMPLES[half:], len(SAMPLES))):
                for key, value in some:
                    for root in ROOTS:
                        world.put(f"{root}/{key}", value)
                until_rows(world.recorder, rows)
                until_rows(alone, rows)
                if rows == half:
                    # Some of what the lake tells is in tables, the rest is in the journal.
                    pipeline.step()
                    MIDDLE.append(pause())
            for n in range(5):
                cached.put(str(n))
            for one, selector in ASKED.items():
                until(lambda one=one, selector=selector: one in EMPTY or ask(world, selector))  # type: ignore[misc]
            yield world


def pause() -> str:
    """Return an instant that is later than all that was put, and earlier than all that will be."""
    after = datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=2)
    until(lambda: datetime.datetime.now(datetime.UTC) > after + datetime.timedelta(milliseconds=2))
    return f"{after:%Y-%m-%dT%H:%M:%S.%fZ}"


def ask(world: World, selector: str) -> list[Any]:
    more: dict[str, Any] = {"consolidation": zenoh.ConsolidationMode.NONE}
    if selector.startswith("@lake/decode") or "_ack_put" in selector:
        more |= {"payload": b"{}", "encoding": "application/json"}
    return world.ask(selector, **more)


def told(world: World, selector: str) -> list[tuple[str, Any]]:
    """Keys and values as they come, without the consolidation of the client."""
    return [
        (str(reply.ok.key_expr), json.loads(reply.ok.payload.to_bytes()))
        for reply in ask(world, selector)
    ]


def with_parameter(service: str, given: str) -> str:
    """What is asked of a service, with one more parameter."""
    keys, mark, own = ASKED[service].partition("?")
    return f"{keys}?{own};{given}" if mark else f"{keys}?{given}"


def selectors(service: str, name: str) -> tuple[str, str]:
    """What is asked of a service without a parameter, and with it."""
    without, given = ASKED[service], EXAMPLES[name]
    if f"?{name}" in without:
        return without, without
    if service == "@lake/sql":  # what is to be aggregated is said in the SELECT
        given = given.partition(";")[0]
    if name == "_ack_put" and service in KEYS:
        without = without.replace("*", "acknowledged/1")
        return without, f"{without}?{given}"
    return without, with_parameter(service, given)


def test_the_page_has_every_parameter_and_every_service_on_the_bus() -> None:
    assert [name for name, *_ in ROWS] == [one.name for one in TABLE]
    assert [*HEAD, "http"] == list(SERVICES) == [*ASKED, "http"]


@pytest.mark.parametrize(("service", "name", "mark"), MARKS)
def test_each_service_obeys_passes_over_or_refuses_as_the_page_says(
    world: World, service: str, name: str, mark: str
) -> None:
    without, asked = selectors(service, name)
    replies = ask(world, asked)
    if mark == "!":
        (reply,) = replies
        assert reply.err is not None
        words = json.loads(reply.err.payload.to_bytes())["error"]
        only_lake = NO_LAKE if service in KEYS else "means nothing here; leave it out"
        if service == "@lake/sql":
            only_lake = "is for questions about keys; say it in the SELECT"
        assert words == f"'{name}' {REFUSALS.get(name, only_lake)}"
        return
    assert [reply.err for reply in replies if reply.err is not None] == []
    assert replies or service in EMPTY
    if mark == "-":
        assert {str(reply.ok.key_expr) for reply in replies} == {
            str(reply.ok.key_expr) for reply in ask(world, without)
        }


@pytest.mark.parametrize("service", [one for one in ASKED if one != "cache"])
def test_a_misspelt_parameter_is_refused_by_every_service(world: World, service: str) -> None:
    (reply,) = ask(world, with_parameter(service, "_tim=[now(-1h)..]"))
    assert reply.err is not None
    assert "did you mean '_time'?" in json.loads(reply.err.payload.to_bytes())["error"]


@pytest.mark.parametrize("service", ASKED)
def test_a_parameter_of_an_application_is_refused_by_none(world: World, service: str) -> None:
    replies = ask(world, with_parameter(service, "tim=[now(-1h)..]"))
    assert [reply.err for reply in replies if reply.err is not None] == []
    assert replies or service in EMPTY


# --- what each parameter does to the answer -------------------------------------------------------

MIDDLE: list[str] = []
"""The instant between the first samples and the newest ones."""
FIRST, LATER = SAMPLES[:3], NEWEST
ONLY_1 = f"_readable={ReadableKeys(((ReadableChoice(('robot/1', '@lake/**')),),)).text()}"


def of(root: str, samples: list[tuple[int, Any]]) -> list[tuple[str, Any]]:
    return [(f"{root}/{key}", value) for key, value in samples]


@pytest.mark.parametrize("root", ROOTS)
def test_time_and_limit_give_the_same_samples_everywhere(world: World, root: str) -> None:
    past = of(root, SAMPLES if ROOTS[root] else NEWEST)
    newest = of(root, NEWEST)
    first = of(root, FIRST if ROOTS[root] else [])
    assert told(world, f"{root}/*?_time=[now(-1h)..]") == past
    assert told(world, f"{root}/*?_time=[now(-2h)..now(-1h)]") == []
    assert told(world, f"{root}/*?_time=[..{MIDDLE[0]}]") == first
    assert told(world, f"{root}/*?_time=[{MIDDLE[0]}..]") == newest
    for limit in range(len(past) + 2):
        assert told(world, f"{root}/*?_time=[now(-1h)..];_limit={limit}") == past[:limit]
        assert told(world, f"{root}/*?_limit={limit}") == newest[:limit]


ROBOT = of("robot", SAMPLES)
NEW = of("robot", NEWEST)
ALL = "_time=[now(-1h)..]"
#: What parameters are given to the lake, and what it tells.
TOLD_BY_LAKE = [
    ("_asof={middle}", of("robot", FIRST)),
    ("_asof=now()", NEW),
    ("_filter=battery<50", NEW[:2]),
    (f"{ALL};_filter=battery>=10 AND temp>0", [ROBOT[2], ROBOT[3], ROBOT[4]]),
    (
        "_project=battery,pose.x",
        [
            (key, {"battery": value["battery"], "pose.x": value["pose"]["x"]})
            for key, value in NEW
        ],
    ),
    ("_order=battery desc", NEW[::-1]),
    ("_order=temp;_limit=2", [NEW[2], NEW[0]]),
    (
        f"{ALL};_agg=avg(battery),count()",
        [("robot/*", [
            {"key": "robot/0", "avg(battery)": 30, "count()": 2},
            {"key": "robot/1", "avg(battery)": 25, "count()": 2},
            {"key": "robot/2", "avg(battery)": 20, "count()": 2},
        ])],
    ),
    (
        "_agg=max(battery);_as=json",
        [("robot/*", [{"key": f"robot/{n}", "max(battery)": 50 - n * 20 % 30} for n in range(3)])],
    ),
    (f"{ALL};{ONLY_1}", [ROBOT[2], ROBOT[3]]),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "expected"), TOLD_BY_LAKE)
def test_the_lake_gives_the_rows_that_are_asked_for(
    world: World, parameters: str, expected: list[tuple[str, Any]]
) -> None:
    assert told(world, f"robot/*?{parameters.format(middle=MIDDLE[0])}") == expected


def test_answers_come_as_arrow_too(world: World) -> None:
    for selector, column in (
        ("robot/*?_agg=count();_as=arrow", {"key": ["robot/0", "robot/1", "robot/2"]}),
        ("@lake/sql?_sql=SELECT count(*) AS n FROM samples;_as=arrow", {"n": [3]}),
    ):
        (reply,) = ask(world, selector)
        table = pa.ipc.open_stream(reply.ok.payload.to_bytes()).read_all()
        assert table.select(list(column)).to_pydict() == column


def test_a_proof_tells_up_to_where_table_and_journal_were_read(world: World) -> None:
    *rows, (key, proof) = told(world, f"robot/*?{ALL};_proof=true")
    assert (rows, key) == (ROBOT, "robot/*")
    ((_, answer),) = told(world, f"{ASKED['@lake/sql']};_proof=true")
    for one in (proof, answer["proof"]):
        (partition,) = one["partitions"]
        # One more may have been put meanwhile, under a key that nobody asks for here.
        assert partition["table_to"] == 3
        assert partition["journal_to"] in (6, 7)
        assert one["complete"] is None
        assert one["unprovable"].items() >= {f"robot/{n}": 2 for n in range(3)}.items()


def test_sql_reads_the_keys_that_may_be_read(world: World) -> None:
    question = "@lake/sql?_sql=SELECT DISTINCT key FROM samples ORDER BY key"
    assert told(world, question) == [
        ("@lake/sql", [{"key": "robot/0"}, {"key": "robot/1"}, {"key": "robot/2"}])
    ]
    assert told(world, f"{question};{ONLY_1}") == [("@lake/sql", [{"key": "robot/1"}])]


def test_tables_of_keys_that_may_not_be_read_are_not_told_of(world: World) -> None:
    every, some = (
        {key for key, _ in told(world, f"@lake/tables/**{more}")} for more in ("", f"?{ONLY_1}")
    )
    assert every - some == {"@lake/tables/every"}
    assert "@lake/tables/one" in some


def test_the_description_of_a_table_of_keys_has_its_format(world: World) -> None:
    told_of = {key.rpartition("/")[2]: value for key, value in told(world, "@lake/tables/*")}
    formats = {name: facts["format"] for name, facts in told_of.items() if "format" in facts}
    assert formats == dict(TABLES)
    assert not any("found" in told_of[name] for name in formats)


def test_a_journal_gives_rows_and_sources_of_keys_that_may_be_read(world: World) -> None:
    ((_, ledger),) = told(world, f"@journal/j/ledger?{ONLY_1}")
    assert ledger["unprovable"] == {"robot/1": 2}
    rows = [
        key
        for reply in ask(world, f"@journal/j/rows/**?{ONLY_1}")
        for batch in pa.ipc.open_stream(reply.ok.payload.to_bytes())
        if batch.num_rows
        for key in batch["key"].to_pylist()
    ]
    assert rows == ["robot/1", "robot/1"]


@pytest.mark.parametrize("root", ["alone", "stored", "kept"])
def test_an_acknowledged_put_is_what_is_told_next(world: World, root: str) -> None:
    ((key, receipt),) = told(world, f"{root}/put/1?_ack_put=true")
    assert receipt.keys() >= ({"partition", "offset"} if root == "alone" else {"storage"})
    assert told(world, f"{root}/put/1") == [(key, {})]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (ALL, [2, 3, 4]),
        ("_time=[..now(-1h)]", []),
        ("_max=2", [3, 4]),
        ("_max=9", [2, 3, 4]),
        ("_sn=2..3", [2, 3]),
        ("_sn=0..0", []),
    ],
)
def test_a_cache_gives_the_samples_that_are_asked_for(
    world: World, parameters: str, expected: list[int]
) -> None:
    assert [n for _, n in told(world, f"{ASKED['cache']};{parameters}")] == expected


def test_the_summary_of_a_node_counts_where_that_is_asked_for(world: World) -> None:
    for more, counted in (("", False), ("?_stats=false", False), ("?_stats=true", True)):
        for _, summary in told(world, f"@/{world.node.zid()}/router{more}"):
            assert all(("stats" in one) is counted for one in summary["sessions"])


#: Pairs of the table whose effect needs views, alerts, or Spark for them, or several askers.
ELSEWHERE = {
    **{
        (one, name): "tests/ext/test_askers.py"
        for one, name, mark in MARKS
        if (name, mark) == ("_asker", "+")
    },
    ("@lake/alerts", "_time"): "tests/lake/continuous/test_views_and_alerts.py",
    ("@lake/alerts", "_readable"): "tests/web/test_rules_on_page.py",
    ("@lake/views", "_readable"): "tests/web/test_rules_on_page.py",
    ("@lake/without_table", "_readable"): "tests/lake/service/test_missing_tables.py",
}
COMPARED = {
    *((one, name) for one in KEYS for name in ("_time", "_limit")),
    *(("lake", name) for name in ("_asof", "_filter", "_project", "_order", "_agg", "_as")),
    *(("lake", name) for name in ("_proof", "_readable")),
    *(("@lake/sql", name) for name in ("_sql", "_as", "_proof", "_readable")),
    *(("cache", name) for name in ("_time", "_max", "_sn")),
    *((one, "_readable") for one in ("@lake/tables", "@journal")),
    *((one, "_ack_put") for one in ("recorder", "storage")),
    ("@", "_stats"),
}
"""Pairs of service and parameter whose answers the tests above compare."""


def test_every_effect_of_a_parameter_is_compared() -> None:
    assert {(one, name) for one, name, mark in MARKS if mark == "+"} == COMPARED | set(ELSEWHERE)
    assert not COMPARED & set(ELSEWHERE)
