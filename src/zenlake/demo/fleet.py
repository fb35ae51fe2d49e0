"""A fleet of simulated robots: what each would say, and when.

A robot wanders over a floor, drains its battery and charges it again, warms up when it moves,
looks through a camera, meets faults and loses its network now and then. Time and chance are
arguments, so that the same seed tells the same story.

    robot/<id>/pose         application/json   {"x": 3.1, "y": 0.4, "theta": 1.2, "speed": 0.6}
    robot/<id>/battery      application/json   {"percent": 87.5, "charging": false}
    robot/<id>/temperature  text/plain         41.7
    robot/<id>/camera       image/jpeg         bytes of about the size of a small picture
    robot/<id>/fault        application/json   {"code": 17, "text": "wheel slips"}; deleted after
"""

from __future__ import annotations

import heapq
import json
import math
import random
from dataclasses import dataclass, field
from typing import Final

FLOOR: Final = 20.0
"""The side of the floor in metres; robots turn at the walls."""

FAULTS: Final = {
    11: "motor is hot",
    17: "wheel slips",
    23: "camera is dirty",
    42: "gripper lost its load",
}

SLOW: Final = 1.0
"""Seconds between two readings of battery and temperature."""

CAMERA_EVERY: Final = 10
"""One picture for so many poses."""


@dataclass(frozen=True, slots=True)
class Emission:
    """One thing that a robot says; without a payload, the key is deleted."""

    key: str
    payload: bytes | None
    encoding: str = "zenoh/bytes"


@dataclass(slots=True)
class Robot:
    """One robot; `step` tells what it says when its next moment has come."""

    name: str
    rate: float
    camera_bytes: int
    chance: random.Random
    due: float = 0.0
    x: float = FLOOR / 2
    y: float = FLOOR / 2
    theta: float = 0.0
    speed: float = 0.5
    percent: float = 100.0
    charging: bool = False
    celsius: float = 25.0
    fault: int | None = None
    steps: int = 0
    back_at: float | None = None
    """Until when the robot is out of reach; None while it is not."""
    _slow_due: float = 0.0

    def __post_init__(self) -> None:
        """Place it somewhere, so that no two robots begin alike."""
        self.x = self.chance.uniform(0, FLOOR)
        self.y = self.chance.uniform(0, FLOOR)
        self.theta = self.chance.uniform(-math.pi, math.pi)
        self.percent = self.chance.uniform(40, 100)

    @property
    def out_of_reach(self) -> bool:
        """Whether its network is gone for now."""
        return self.back_at is not None

    def step(self, now: float) -> list[Emission]:
        """Live until the next moment, and tell what is to be said now."""
        seconds = 1 / self.rate
        self.due = now + seconds
        self.steps += 1
        self._move(seconds)
        said = [self._say("pose", self._pose())]
        if now >= self._slow_due:
            self._slow_due = now + SLOW
            said.append(
                self._say(
                    "battery",
                    {"percent": round(self.percent, 1), "charging": self.charging},
                )
            )
            said.append(Emission(self._key("temperature"), b"%.1f" % self.celsius, "text/plain"))
            said.extend(self._meet_faults())
            self._meet_the_network(now)
        if self.camera_bytes and self.steps % CAMERA_EVERY == 0:
            said.append(Emission(self._key("camera"), self._picture(), "image/jpeg"))
        return said

    def _key(self, sensor: str) -> str:
        return f"robot/{self.name}/{sensor}"

    def _say(self, sensor: str, value: dict[str, object]) -> Emission:
        return Emission(self._key(sensor), json.dumps(value).encode(), "application/json")

    def _pose(self) -> dict[str, object]:
        return {
            "x": round(self.x, 3),
            "y": round(self.y, 3),
            "theta": round(self.theta, 3),
            "speed": round(self.speed, 2),
        }

    def _move(self, seconds: float) -> None:
        if self.charging:
            self.speed = 0.0
            self.percent = min(100.0, self.percent + 2.0 * seconds)
            self.celsius += (25.0 - self.celsius) * min(1.0, seconds / 20)
            self.charging = self.percent < 100.0
            return
        self.speed = min(1.5, max(0.1, (self.speed or 0.5) + self.chance.gauss(0, 0.05)))
        self.theta = math.remainder(self.theta + self.chance.gauss(0, 0.2), math.tau)
        x = self.x + self.speed * seconds * math.cos(self.theta)
        y = self.y + self.speed * seconds * math.sin(self.theta)
        if not (0 <= x <= FLOOR and 0 <= y <= FLOOR):
            self.theta = math.remainder(self.theta + math.pi, math.tau)
            x, y = min(FLOOR, max(0.0, x)), min(FLOOR, max(0.0, y))
        self.x, self.y = x, y
        self.percent = max(0.0, self.percent - 0.1 * seconds * (1 + self.speed))
        self.celsius += (30.0 + 15 * self.speed - self.celsius) * min(1.0, seconds / 20)
        self.charging = self.percent < 15.0

    def _meet_faults(self) -> list[Emission]:
        if self.fault is None and self.chance.random() < 0.01:
            self.fault = self.chance.choice(list(FAULTS))
            return [self._say("fault", {"code": self.fault, "text": FAULTS[self.fault]})]
        if self.fault is not None and self.chance.random() < 0.1:
            self.fault = None
            return [Emission(self._key("fault"), None)]
        return []

    def _meet_the_network(self, now: float) -> None:
        if self.back_at is not None and now >= self.back_at:
            self.back_at = None
        elif self.back_at is None and self.chance.random() < 0.003:
            self.back_at = now + self.chance.uniform(2, 8)

    def _picture(self) -> bytes:
        size = max(1, int(self.camera_bytes * self.chance.uniform(0.7, 1.3)))
        # Pictures do not compress; neither do these bytes.
        return b"\xff\xd8" + self.chance.randbytes(size)


@dataclass(slots=True)
class Fleet:
    """Robots on one clock: `due` says when a robot speaks next, `step` who and what."""

    robots: list[Robot]
    _order: list[tuple[float, int]] = field(default_factory=list)

    @classmethod
    def of(cls, robots: int, rate: float, camera_bytes: int, seed: int, now: float = 0.0) -> Fleet:
        """A fleet whose robots begin spread over one period, as nothing real begins at once."""
        fleet = cls([])
        for number in range(1, robots + 1):
            chance = random.Random(f"{seed}/{number}")
            robot = Robot(str(number), rate, camera_bytes, chance)
            robot.due = now + chance.uniform(0, 1 / rate)
            fleet.robots.append(robot)
        fleet._order = [(robot.due, index) for index, robot in enumerate(fleet.robots)]
        heapq.heapify(fleet._order)
        return fleet

    @property
    def due(self) -> float:
        """When the next robot speaks."""
        return self._order[0][0]

    def step(self, now: float) -> list[tuple[Robot, list[Emission]]]:
        """All that is said up to `now`."""
        said = []
        while self._order[0][0] <= now:
            _, index = self._order[0]
            robot = self.robots[index]
            said.append((robot, robot.step(max(robot.due, now - 1.0))))
            heapq.heapreplace(self._order, (robot.due, index))
        return said
