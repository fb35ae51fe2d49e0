"""Every parameter of the table, asked of every service that answers for keys.

A lake, a recorder without a lake and a storage have the same samples under different keys; what one
obeys or refuses, and with which samples, is compared with a page that was written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journal.recording import until_rows
from tests.lake.service.test_bus import World, opened
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.keys.query_parameters import TABLE

pytestmark = [pytest.mark.interop]

SERVICES = {"lake": "robot", "recorder": "alone", "storage": "stored"}
#: What services for keys obey or pass over, and what only a lake does.
EVERYWHERE = {"_time", "_limit", "_anyke", "_max", "_sn", "_stats", "_raw", "_download", "_cut"}
ONLY_LAKE = {"_asof", "_filter", "_project", "_agg", "_order", "_as", "_proof"}
#: A question in SQL has a key of its own, an acknowledged put changes what is asked for after it,
#: and the last is written by routers.
ELSEWHERE = {"_sql", "_ack_put", "_readable"}
EXAMPLES = {one.name: one.example for one in TABLE} | {
    "_asof": "_asof=now()",
    "_filter": "_filter=battery<20",
    "_as": "_agg=count();_as=json",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("parameters")
    storage = {"key_expr": "stored/**", "volume": "memory"}
    with opened(folder, "robot/**", stored=storage) as world:
        options = Options(("alone/**",), str(folder / "alone"), name="alone", fsync="5ms")
        with Recorder(world.node, options) as alone:
            for root in SERVICES.values():
                for n in range(3):
                    world.put(f"{root}/{n}", {"battery": 10 * n, "temp": n, "pose": {"x": n}})
            until_rows(world.recorder, 3)
            until_rows(alone, 3)
            until(lambda: len(world.ask("stored/**")) == 3)
            world.pipeline.step()
            yield world


def test_every_parameter_is_in_one_of_the_lists() -> None:
    assert {one.name for one in TABLE} == EVERYWHERE | ONLY_LAKE | ELSEWHERE


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("name", sorted(EVERYWHERE - {"_time", "_limit"}))
def test_what_belongs_to_zenoh_or_http_changes_no_answer(
    world: World, service: str, name: str
) -> None:
    root = SERVICES[service]
    assert world.rows(f"{root}/*?{EXAMPLES[name]}") == world.rows(f"{root}/*")
    assert len(world.rows(f"{root}/*")) == 3


@pytest.mark.parametrize("service", SERVICES)
def test_time_and_limit_give_the_same_samples_everywhere(world: World, service: str) -> None:
    root = SERVICES[service]
    values = [{"battery": 10 * n, "temp": n, "pose": {"x": n}} for n in range(3)]
    assert world.rows(f"{root}/*?_time=[now(-1h)..]") == [
        (f"{root}/{n}", value) for n, value in enumerate(values)
    ]
    assert world.rows(f"{root}/*?_time=[now(-2h)..now(-1h)]") == []
    assert len(world.rows(f"{root}/*?_time=[now(-1h)..];_limit=2")) == 2


@pytest.mark.parametrize("name", sorted(ONLY_LAKE))
def test_only_a_lake_obeys_what_others_refuse_in_the_same_words(world: World, name: str) -> None:
    assert world.rows(f"robot/*?{EXAMPLES[name]}")
    refused = {
        world.refusal(f"{SERVICES[one]}/*?{EXAMPLES[name]}") for one in ("recorder", "storage")
    }
    assert len(refused) == 1
    assert "is answered by a lake" in refused.pop()


@pytest.mark.parametrize("service", SERVICES)
def test_a_misspelt_parameter_is_refused_by_every_service(world: World, service: str) -> None:
    words = world.refusal(f"{SERVICES[service]}/*?_tim=[now(-1h)..]")
    assert "did you mean '_time'?" in words
