"""What was recorded, back on the bus: heard by Eclipse's subscriber, steered over the bus."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import zenoh

import zenlake
from tests.api.sessions import connected, listening, where
from tests.cli.programs import run, run_alone
from tests.journal.recording import until_rows
from tests.lake.journals import Here
from tests.waiting import SECONDS, until
from zenlake.errors import LocalError
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import LakeConfig, Pipeline
from zenlake.replay import Replay, find

pytestmark = [pytest.mark.interop]

Said = tuple[str, str, bytes, str, bytes | None, str | None]
"""Key, kind, payload, encoding, attachment and timestamp of a sample."""


def said(sample: Any) -> Said:
    beside = sample.attachment
    return (
        str(sample.key_expr),
        str(sample.kind),
        sample.payload.to_bytes(),
        str(sample.encoding),
        None if beside is None else beside.to_bytes(),
        None if sample.timestamp is None else str(sample.timestamp),
    )


def without_prefix(heard: list[Said]) -> list[Said]:
    return [(one[0].removeprefix("ghost/"), *one[1:]) for one in heard]


class World:
    """A router that records everything, and a program of Eclipse's beside it."""

    def __init__(
        self,
        node: zenlake.Session,
        recorder: Recorder,
        client: zenoh.Session,
        listener: zenoh.Session,
    ) -> None:
        self.node = node
        self.recorder = recorder
        self.client = client
        self.listener = listener

    def hears(self, expr: str, heard: list[Said]) -> Any:
        """Subscribe; the router knows of it then, which a recorder that matches too says not."""
        subscriber = self.listener.declare_subscriber(expr, lambda one: heard.append(said(one)))
        assert list(self.listener.get("nothing/is/there")) == []
        return subscriber


@contextmanager
def world(folder: Path) -> Iterator[World]:
    options = Options(("robot/**", "ghost/**"), str(folder / "journal"), name="j", fsync="5ms",
                      partitions=2)  # fmt: skip
    with listening(mode='"router"') as node, Recorder(node, options) as recorder:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(node)]))
        # Two, for what a program hears of itself has no timestamp of the router.
        with zenoh.open(config) as client, zenoh.open(config) as listener:
            yield World(node, recorder, client, listener)


def drive(world: World, count: int) -> list[Said]:
    """Publish what robots would; gives it as a subscriber heard it."""
    heard: list[Said] = []
    before = sum(world.recorder.watermark().offsets)
    with world.hears("robot/**", heard), world.client.declare_publisher("robot/**") as robots:
        until(lambda: cast(Any, robots).matching_status.matching)
        for n in range(count):
            value = json.dumps({"n": n, "x": n / 8}).encode()
            world.client.put(f"robot/{n % 3}/pose", value, encoding="application/json;pose",
                             attachment=b"beside %d" % n)  # fmt: skip
            if n % 10 == 0:
                world.client.put("robot/0/raw", bytes(range(256)))
            if n % 25 == 24:
                world.client.delete(f"robot/{n % 3}/pose")
        total = count + len(range(0, count, 10)) + count // 25
        until(lambda: len(heard) == total)
        until_rows(world.recorder, before + total)
    return heard


def test_a_replay_is_heard_as_it_was_and_compares_as_the_same(tmp_path: Path) -> None:
    with world(tmp_path) as here, connected(here.node, mode='"client"') as session:
        live = drive(here, 60)
        # From tables and the journal's tail, without a Spark.
        pipeline = Pipeline(
            str(tmp_path / "lake"), here.recorder.journal.path, Here(), LakeConfig()
        )
        pipeline.step()
        live += drive(here, 40)
        heard: list[Said] = []
        with here.hears("ghost/**", heard):
            ghosts = session.declare_publisher("ghost/**")
            until(lambda: ghosts.matching_status.matching)
            source = find("robot/**", lake=tmp_path / "lake")
            replay = Replay(session, source, prefix="ghost", speed=100.0)
            replay.run()
            until(lambda: len(heard) == len(live))
        status = replay.status()
        # Its clock stands at the last sample, however long ago that was.
        assert status["ns"] == replay.status()["ns"]
        assert status["time"] == status["to"]
        assert (status["state"], status["samples"], status["lost"]) == ("ended", len(live), 0)
        # Each key in its order, byte by byte, timestamps too; a priority may overtake another.
        for key in {one[0] for one in live}:
            mine = [one for one in without_prefix(heard) if one[0] == key]
            recorded = [one for one in live if one[0] == key]
            # No router gives a time to a deletion; the recorder did.
            assert [one if then[5] else (*one[:5], None) for one, then in zip(
                mine, recorded, strict=True)] == recorded  # fmt: skip
        until_rows(here.recorder, 2 * len(live))
        code, lines = run_alone(
            "diff", "robot/**", "ghost/robot/**", "--lake", str(tmp_path / "lake")
        )
        assert code == 0, lines
        assert f"{len(live)} same, 0 missing, 0 extra, 0 different; matched by time" in lines[-1]

        # With new timestamps, from the journal alone, by the command.
        code, lines = run(
            "replay", "robot/**", "--journal", str(tmp_path / "journal"), "--prefix", "ghost/new",
            "--speed", "max", "--retime", "--json", "-m", "client", "-e", where(here.node),

        )  # fmt: skip
        assert code == 0, lines
        assert json.loads(lines[-1])["samples"] == len(live)
        until_rows(here.recorder, 3 * len(live))
        code, lines = run_alone("diff", "robot/**", "ghost/new/robot/**", "--json", "--journal",
                          str(tmp_path / "journal"))  # fmt: skip
        assert code == 0, lines
        found = json.loads(lines[-1])
        assert (found["equal"], found["by"], found["totals"]["same"]) == (True, "order", len(live))

        # One more of a key, and another number, are found.
        here.client.put("ghost/new/robot/1/pose", b'{"n": 1}')
        here.client.put("ghost/robot/1/extra", b"7")
        until_rows(here.recorder, 3 * len(live) + 2)
        code, lines = run_alone("diff", "robot/**", "ghost/robot/**", "--journal",
                          str(tmp_path / "journal"))  # fmt: skip
        assert code == 1, lines
        assert lines[0] == "robot/1/extra: 1 extra"


def test_it_pauses_steps_seeks_and_changes_its_speed_over_the_bus(tmp_path: Path) -> None:
    with world(tmp_path) as here, connected(here.node, mode='"client"') as session:
        live = drive(here, 30)
        heard: list[Said] = []
        clock: list[Any] = []
        with (
            here.hears("ghost/**", heard),
            here.client.declare_subscriber(
                "time/of/replay", lambda s: clock.append(json.loads(s.payload.to_bytes()))
            ),
        ):
            ghosts = session.declare_publisher("ghost/**")
            until(lambda: ghosts.matching_status.matching)
            source = find("robot/**", journal=tmp_path / "journal")
            replay = Replay(session, source, prefix="ghost", paused=True, clock="time/of/replay")
            running = threading.Thread(target=replay.run)
            running.start()

            def tell(command: str) -> dict[str, Any]:
                for reply in here.client.get(
                    "ghost/@replay/control", payload=command, timeout=SECONDS
                ):
                    told: Any = reply.ok if reply.ok is not None else reply.err
                    found: dict[str, Any] = json.loads(told.payload.to_bytes())
                    return found
                return {}

            def status(holds: Callable[[dict[str, Any]], bool]) -> None:
                def ask() -> bool:
                    replies: list[Any] = list(
                        here.client.get("ghost/@replay/status", timeout=SECONDS)
                    )
                    return bool(replies) and holds(json.loads(replies[0].ok.payload.to_bytes()))

                until(ask)

            status(lambda told: told["state"] == "paused" and told["samples"] == 0)
            assert heard == []
            assert "is no command" in tell('{"do": "dance"}')["error"]
            assert tell('{"do": "step", "count": 3}')["state"] == "paused"
            until(lambda: len(heard) == 3)
            # Back to the beginning: the first sample comes again.
            assert replay.span is not None
            tell(json.dumps({"do": "seek", "to": replay.span[0]}))
            tell("step")
            until(lambda: len(heard) == 4)
            assert heard[3] == heard[0]
            # Behind a put, with nobody waiting for an answer; then to the end.
            here.client.put("ghost/@replay/control", '{"do": "speed", "to": "max"}')
            status(lambda told: told["speed"] == "max")
            here.client.put("ghost/@replay/control", "resume")
            running.join(SECONDS)
            assert not running.is_alive()
            until(lambda: len(heard) == 3 + len(live))
            assert [one[:5] for one in without_prefix(heard)[3:]] == [one[:5] for one in live]
            until(lambda: bool(clock) and clock[-1]["state"] == "ended")
            assert {"paused", "ended"} <= {one["state"] for one in clock}
            # It is gone from the bus.
            assert tell("pause") == {}


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        drive(here, 5)
        source = find("nothing/**", journal=tmp_path / "journal")
        with pytest.raises(LocalError, match="has a wildcard"):
            Replay(here.node, source, prefix="a/*")
        told = run("replay", "nothing/**", "--journal", str(tmp_path / "journal"), "--prefix", "g")
        assert told[0] == 3, told
        told = run("replay", "robot/**", "--journal", str(tmp_path / "journal"))
        assert told[0] == 2, told
        assert "--prefix" in "\n".join(told[1])
        told = run_alone("diff", "a/**", "b/**", "--journal", str(tmp_path / "journal"))
        assert told[0] == 3, told
        told = run_alone("diff", "a/**?_filter=x", "b/**", "--journal", str(tmp_path / "journal"))
        assert told[0] == 2, told
