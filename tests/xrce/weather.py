"""Two sessions and the weather between them: packets are lost, doubled, delayed and overtaken."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import Any

from zenlake import xrce
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.session import CLOSED, OPEN, XrceSession


@dataclass
class Weather:
    loss: float = 0.0
    double: float = 0.0
    delay: float = 0.005
    #: Up to so much more delay for some packets, which others then overtake.
    jitter: float = 0.0


@dataclass
class Side:
    session: XrceSession
    got: list[xrce.XrceMessage] = field(default_factory=list)


class Pair:
    """An initiator and an acceptor, with time of their own."""

    def __init__(
        self,
        weather: Weather | None = None,
        random: Random | None = None,
        near: dict[str, Any] | None = None,
        far: dict[str, Any] | None = None,
    ) -> None:
        self.weather = weather or Weather()
        self.random = random or Random(0)
        self.now = 0.0
        # In the worst weather two of three questions are in vain: what is tested there begins when
        # the two have met.
        patience: dict[str, Any] = {"open_tries": 60} if self.weather.loss else {}
        self.near = Side(XrceSession(SessionOptions(b"near", **{**patience, **(near or {})}), True))
        self._far_options = SessionOptions(b"far", **{**patience, **(far or {})})
        self.far: Side | None = None
        self._flying: list[tuple[float, int, bool, bytes]] = []
        self._count = 0
        self.packets: list[tuple[bool, bytes]] = []
        self.near.session.open(0.0)
        self.flush()

    @property
    def a(self) -> XrceSession:
        return self.near.session

    @property
    def b(self) -> XrceSession:
        assert self.far is not None
        return self.far.session

    @property
    def heard(self) -> list[xrce.XrceMessage]:
        return self.far.got if self.far is not None else []

    def flush(self) -> None:
        for side, forward in ((self.near, True), (self.far, False)):
            if side is None:
                continue
            for packet in side.session.packets(self.now):
                assert len(packet) <= side.session.options.mtu
                self.packets.append((forward, packet))
                for _ in range(2 if self.random.random() < self.weather.double else 1):
                    if self.random.random() < self.weather.loss:
                        continue
                    at = self.now + self.weather.delay + self.random.random() * self.weather.jitter
                    self._count += 1
                    heapq.heappush(self._flying, (at, self._count, forward, packet))

    def _arrive(self, forward: bool, packet: bytes) -> None:
        if not forward:
            self.near.got += self.near.session.receive(packet, self.now)
            return
        if self.far is None:
            (first, *_) = xrce.read_packet(packet)
            if isinstance(first, xrce.Open):
                session = XrceSession(self._far_options, False)
                assert session.accept(first, self.now) == 0
                self.far = Side(session)
            return
        self.far.got += self.far.session.receive(packet, self.now)

    def step(self, until: float) -> bool:
        """The next thing that happens; False: nothing does before `until`."""
        sides = [side for side in (self.near, self.far) if side is not None]
        due = min(side.session.deadline for side in sides)
        if self._flying and self._flying[0][0] <= due:
            at = self._flying[0][0]
            if at > until:
                return False
            _, _, forward, packet = heapq.heappop(self._flying)
            self.now = max(self.now, at)
            self._arrive(forward, packet)
        else:
            if due > until:
                return False
            self.now = max(self.now, due)
            for side in sides:
                side.session.tick(self.now)
        self.flush()
        return True

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.step(until):
            pass
        self.now = until

    def opened(self) -> Pair:
        """Wait until both sides are open."""
        until = self.now + 60
        while self.a.state != OPEN or self.far is None:
            assert self.step(until), "they never met"
        return self

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until all is acknowledged, or one side is closed."""
        until = self.now + seconds
        while not (self.a.quiet and self.b.quiet):
            if CLOSED in (self.a.state, self.b.state) or not self.step(until):
                return

    def send(self, payload: bytes, reliable: bool = True, conduit: int = 0) -> bool:
        message = xrce.StreamData(reliable=reliable, sn=0, id=2, payload=payload)
        sent = self.a.send(message, reliable, conduit)
        self.flush()
        return sent


def payloads(messages: list[xrce.XrceMessage]) -> list[bytes]:
    return [m.payload for m in messages if isinstance(m, xrce.StreamData | xrce.WriteData)]
