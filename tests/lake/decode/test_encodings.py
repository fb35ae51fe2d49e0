"""From a published sample through journal and lake to an answer: its encoding stays what it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.journal.recording import until_heard, until_rows
from tests.lake.journals import Here, rows_of
from tests.waiting import SECONDS, until
from zenlake.journal import Journal
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.bus import BusAnswers
from zenlake.lake.service.service import Service
from zenlake.replay import Replay, find
from zenlake.values import Encoding

Told = tuple[int, bytes | None]
"""Id and schema of an encoding."""

ENCODINGS: dict[str, tuple[Told, str]] = {
    "robot/bytes": ((0, None), "zenoh/bytes"),
    "robot/json": ((5, b"pose"), "application/json;pose"),
    "robot/newer": ((4000, None), "unknown(4000)"),
    "robot/schema": ((4000, "v2;ä".encode()), "unknown(4000);v2;ä"),
    "robot/custom": ((65535, b"my/own;v2"), "my/own;v2"),
    "robot/named": ((65535, b"unknown(4000)"), "unknown(65535);unknown(4000)"),
    "robot/plain": ((65535, b"text/plain"), "unknown(65535);text/plain"),
    "robot/nothing": ((65535, None), "unknown(65535)"),
}
"""By key: what is published, and its text in the lake."""

PUBLISHED = {key: told for key, (told, _) in ENCODINGS.items()}


def told(sample: zenlake.Sample) -> Told:
    return sample.encoding.id, sample.encoding.schema


class World:
    """A router that records, and a lake that answers on its bus."""

    def __init__(self, recorder: Recorder, pipeline: Pipeline, session: zenlake.Session) -> None:
        self.recorder = recorder
        self.pipeline = pipeline
        self.session = session

    def ask(self, selector: str) -> dict[str, Told]:
        found: dict[str, Told] = {}
        for reply in self.session.get(selector, timeout=SECONDS):
            assert reply.ok is not None, reply.err
            found[str(reply.ok.key_expr)] = told(reply.ok)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(tmp_path_factory.mktemp("encodings")) as found:
        yield found


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    options = Options(("robot/**",), str(folder / "journal"), name="j", fsync="5ms")
    with (
        listening(mode='"router"') as node,
        Recorder(node, options) as recorder,
        connected(node, mode='"client"') as bus,
        connected(node, mode='"client"') as session,
    ):
        pipeline = Pipeline(str(folder / "lake"), recorder.journal.path, Here(), LakeConfig())
        service = Service(Lake(pipeline.place, None, LakeConfig()), [pipeline.journal], bus)
        service.add(BusAnswers(service, bus))
        until(lambda: recorder._answers is not None and recorder._answers.lake)
        with session.declare_publisher("robot/**") as robots:
            until_heard(robots)
            for key, (id, schema) in PUBLISHED.items():
                session.put(key, b"x", encoding=Encoding.from_wire(id, schema))
        until_rows(recorder, len(PUBLISHED))
        try:
            yield World(recorder, pipeline, session)
        finally:
            service.close()


def test_answers_have_the_encodings_of_the_samples_from_the_tail_and_from_the_table(
    world: World,
) -> None:
    assert world.ask("robot/*") == PUBLISHED
    assert world.ask("robot/*?_time=[now(-1h)..]") == PUBLISHED
    world.pipeline.step()
    rows = rows_of(world.pipeline.place.uri, "samples")
    assert {row["key"]: row["encoding"] for row in rows} == {
        key: text for key, (_, text) in ENCODINGS.items()
    }
    assert world.ask("robot/*") == PUBLISHED
    assert world.ask("robot/*?_time=[now(-1h)..]") == PUBLISHED


def test_predicates_see_the_name_that_live_subscribers_see(world: World) -> None:
    world.pipeline.step()
    asked = "robot/*?_time=[now(-1h)..];_filter=encoding()='text/plain'"
    assert world.ask(asked) == {"robot/plain": (65535, b"text/plain")}


@pytest.mark.parametrize("place", ["journal", "lake"])
def test_a_replay_has_the_encodings_of_the_samples(world: World, place: str) -> None:
    world.pipeline.step()
    source = (
        find("robot/**", journal=world.recorder.journal.path)
        if place == "journal"
        else find("robot/**", lake=world.pipeline.place.uri)
    )
    heard: dict[str, Told] = {}
    with world.session.declare_subscriber(
        "ghost/**", lambda sample: heard.update({str(sample.key_expr)[6:]: told(sample)})
    ):
        Replay(world.session, source, prefix="ghost", speed=100.0).run()
        until(lambda: len(heard) == len(PUBLISHED))
    assert heard == PUBLISHED


def test_the_journal_has_the_numbers_of_the_wire(world: World) -> None:
    rows = [row for batch in Journal.open(world.recorder.journal.path).scan()
            for row in batch.to_pylist()]  # fmt: skip
    assert {
        row["key"]: (
            row["encoding_id"],
            None if row["encoding_schema"] is None else row["encoding_schema"].encode(),
        )
        for row in rows
    } == PUBLISHED
