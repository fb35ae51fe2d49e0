"""Every parameter of the table, asked of every service on the bus.

What a service says to each is compared with a page that was written by hand. A lake, a recorder
without a lake and a storage have the same samples under different keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.journal.recording import until_rows
from tests.lake.service.test_bus import World, opened
from tests.waiting import until
from zenlake import ext
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.keys.query_parameters import SERVICES, TABLE
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.lake.continuous.manager import ContinuousQueries
from zenlake.lake.service.sample_decoder import SampleDecoder

pytestmark = [pytest.mark.interop]

#: What is asked of each service. An HTTP server is not on the bus.
ASKED = {
    "recorder": "alone/*",
    "storage": "stored/*",
    "lake": "robot/*",
    "@lake/sql": "@lake/sql?_sql=SELECT count(*) FROM samples",
    "@lake/tables": "@lake/tables/**",
    "@lake/views": "@lake/views/**",
    "@lake/alerts": "@lake/alerts/**",
    "@lake/decode": "@lake/decode/robot/1",
    "@journal": "@journal/alone/stats",
    "@": "@/*/router",
    # Its samples have other keys than the cache.
    "cache": "cached/1/@adv/pub/**?_anyke",
}
KEYS = ("recorder", "storage", "lake")
#: There are no views and alerts in this lake.
EMPTY = ("@lake/views", "@lake/alerts")
#: `+`: obeys it, `-`: passes over it, `!`: refuses it.
PAGE = """
           recorder storage lake @lake/sql @lake/tables @lake/views @lake/alerts @lake/decode @journal @ cache
_time      +        +       +    !         -            -           +            !            -        - +
_asof      !        !       +    !         !            !           !            !            !        ! -
_filter    !        !       +    !         !            !           !            !            !        ! -
_project   !        !       +    !         !            !           !            !            !        ! -
_agg       !        !       +    !         !            !           !            !            !        ! -
_order     !        !       +    !         !            !           !            !            !        ! -
_limit     +        +       +    !         !            !           !            !            !        ! -
_as        !        !       +    +         !            !           !            !            !        ! -
_proof     !        !       +    +         !            !           !            !            !        ! -
_sql       !        !       !    +         !            !           !            !            !        ! -
_ack_put   +        +       -    !         !            !           !            !            !        ! -
_anyke     -        -       -    -         -            -           -            -            -        - -
_max       -        -       -    -         -            -           -            -            -        - +
_sn        -        -       -    -         -            -           -            -            -        - +
_stats     -        -       -    -         -            -           -            -            -        + -
_raw       -        -       -    -         -            -           -            -            -        - -
_download  -        -       -    -         -            -           -            -            -        - -
_cut       -        -       -    -         -            -           -            -            -        - -
_readable  -        -       +    +         +            +           +            -            +        - -
_asker     +        +       +    +         +            +           +            +            +        + -
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
    "_sn": "_sn=0..1",
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
    with opened(folder, "robot/**", stored=stored, kept=kept) as world:
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
            service.add(ContinuousQueries(service, print))
            service.add(SampleDecoder(session, pipeline.types, lambda: tuple(pipeline.specs)))
            for root in ROOTS:
                for key, value in SAMPLES:
                    world.put(f"{root}/{key}", value)
            cached.put("{}")
            until_rows(world.recorder, len(SAMPLES))
            until_rows(alone, len(SAMPLES))
            pipeline.step()
            for one, selector in ASKED.items():
                until(lambda one=one, selector=selector: one in EMPTY or ask(world, selector))  # type: ignore[misc]
            yield world


def ask(world: World, selector: str) -> list[Any]:
    if selector.startswith("@lake/decode") or "_ack_put" in selector:
        return world.ask(selector, payload=b"{}", encoding="application/json")
    return world.ask(selector)


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


@pytest.mark.parametrize("root", ROOTS)
def test_time_and_limit_give_the_same_samples_everywhere(world: World, root: str) -> None:
    past = [(f"{root}/{key}", value) for key, value in (SAMPLES if ROOTS[root] else NEWEST)]
    newest = [(f"{root}/{key}", value) for key, value in NEWEST]
    assert world.rows(f"{root}/*?_time=[now(-1h)..]") == past
    assert world.rows(f"{root}/*?_time=[now(-2h)..now(-1h)]") == []
    for limit in range(len(past) + 2):
        assert world.rows(f"{root}/*?_time=[now(-1h)..];_limit={limit}") == past[:limit]
        # The client gives one value of each key in an order of its own.
        assert world.rows(f"{root}/*?_limit={limit}") == sorted(
            newest[:limit], key=lambda row: row[0]
        )
