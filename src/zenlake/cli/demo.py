"""`zenlake demo fleet`: simulated robots, as load that looks real."""

from __future__ import annotations

import json
import sys
import threading
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.liveliness import LivelinessToken
    from zenlake.api.session import Session
    from zenlake.config import Config
    from zenlake.demo import Emission, Robot
    from zenlake.ext import AdvancedPublisher

HERE = "tcp/localhost:7447"

LINE = 5.0
"""Seconds between two lines of progress."""


AGAIN = 1.0
"""Seconds between two attempts of a robot to find the router again."""


class Show(StrEnum):
    """What can be shown."""

    FLEET = "fleet"


@examples(
    "zenlake demo fleet",
    "zenlake demo fleet --robots 100 --rate 20 -e tcp/10.0.0.7:7447",
)
@networked
def demo(
    connection: Connection,
    show: Annotated[Show, typer.Argument(help="fleet: robots that move, charge and fail.")],
    robots: Annotated[
        int, typer.Option("--robots", min=1, max=1000, help="The number of robots.")
    ] = 10,
    rate: Annotated[
        float, typer.Option("--rate", metavar="HZ", min=0.1, help="Poses a second, for each robot.")
    ] = 10.0,
    camera: Annotated[
        int,
        typer.Option("--camera-bytes", min=0, help="The size of a picture, about; 0 for none."),
    ] = 20_000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulation.")] = 1,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration", metavar="SECONDS", help="Stop after this time.", show_default=False, min=0
        ),
    ] = None,
) -> None:
    """Simulate a fleet of robots that publish.

    They publish poses, batteries, temperatures, pictures and faults. Each robot has a session of
    its own, a client of tcp/localhost:7447 unless the options say otherwise. It numbers what it
    says and keeps the last hundred of each kind, so that a recorder can prove what it heard and
    heal what it did not. Now and then one is gone for some seconds, and comes back as new. A
    router that restarts is connected to again.
    """
    from zenlake.demo import Fleet

    config = _config(connection)
    stage = _Stage(config)
    pause = threading.Event()
    with until_interrupted():
        try:
            fleet = Fleet.of(robots, rate, camera, seed)
            stage.open(fleet.robots)
            if not connection.as_json:
                note(f"{robots} robots at {rate:g} Hz on robot/1 … robot/{robots}; Ctrl-C ends it")
            started, last_line = time.monotonic(), 0.0
            while duration is None or time.monotonic() - started < duration:
                now = time.monotonic() - started
                for robot, said in fleet.step(now):
                    stage.say(robot, said)
                if now - last_line >= LINE:
                    last_line = now
                    stage.tell(now, connection.as_json)
                pause.wait(max(0.0, fleet.due - (time.monotonic() - started)))
            stage.tell(time.monotonic() - started, connection.as_json)
        finally:
            stage.close()


def _config(connection: Connection) -> Config:
    config = connection.config()
    if connection.mode is None and connection.file is None:
        config.insert_json5("mode", '"client"')
    if not connection.asked():
        config.insert_json5("connect/endpoints", json.dumps([HERE]))
    return config


class _Stage:
    """The sessions of all robots, and what they have said."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._sessions: dict[str, Session] = {}
        self._publishers: dict[str, dict[str, AdvancedPublisher]] = {}
        self._alive: dict[str, LivelinessToken] = {}
        self._said = 0
        self._bytes = 0
        self._lost = 0
        #: When robots that found no router try again, and whether that was told.
        self._again: dict[str, float] = {}
        self._away = False

    def open(self, robots: list[Robot]) -> None:
        from rich.progress import track

        for robot in track(robots, "robots wake up", disable=not sys.stderr.isatty()):
            self._wake(robot)

    def say(self, robot: Robot, said: list[Emission]) -> None:
        if robot.out_of_reach:
            self._lost += len(said)
            if robot.name in self._sessions:
                self._publishers.pop(robot.name)
                self._sessions.pop(robot.name).close()
            return
        if not self._awake(robot):
            self._lost += len(said)
            return
        publishers = self._publishers[robot.name]
        for one in said:
            publisher = publishers.get(one.key)
            if publisher is None:
                publisher = publishers[one.key] = self._declare(robot, one.key)
            if one.payload is None:
                publisher.delete()
            else:
                publisher.put(one.payload, encoding=one.encoding)
                self._bytes += len(one.payload)
            self._said += 1

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _awake(self, robot: Robot) -> bool:
        """Whether a robot has a session; it tries to get one again, but not all the time."""
        from zenlake.errors import ZError

        if robot.name in self._sessions:
            return True
        now = time.monotonic()
        if now < self._again.get(robot.name, 0.0):
            return False
        try:
            self._wake(robot)
        except ZError as error:
            self._again[robot.name] = now + AGAIN
            if not self._away:
                self._away = True
                note(f"{error}; robots try again every {AGAIN:g} s")
            return False
        if self._away:
            self._away = False
            note("the router is back")
        return True

    def _wake(self, robot: Robot) -> None:
        import zenlake

        session = zenlake.open(self._config)
        self._sessions[robot.name] = session
        self._publishers[robot.name] = {}
        self._alive[robot.name] = session.liveliness().declare_token(f"robot/{robot.name}/alive")

    def _declare(self, robot: Robot, key: str) -> AdvancedPublisher:
        from zenlake.ext import CacheConfig, MissDetectionConfig, declare_advanced_publisher

        return declare_advanced_publisher(
            self._sessions[robot.name],
            key,
            cache=CacheConfig(max_samples=100),
            sample_miss_detection=MissDetectionConfig(heartbeat=1.0),
            publisher_detection=True,
        )

    def tell(self, seconds: float, as_json: bool) -> None:
        robots = len(self._sessions)
        if as_json:
            document = {
                "seconds": round(seconds, 1),
                "robots": robots,
                "samples": self._said,
                "bytes": self._bytes,
                "lost": self._lost,
            }
            typer.echo(json.dumps(document))
            return
        typer.echo(
            f"{seconds:7.1f} s  {robots} robots in reach  {self._said:>9} samples"
            f"  {self._bytes / 1e6:8.1f} MB  {self._lost} never said"
        )
