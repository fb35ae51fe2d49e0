"""Interests of this node's programs, shown to neighbours that declare only on interest."""

from __future__ import annotations

from typing import Final

from zenlake.node.core import Core
from zenlake.node.programs.declared import ProgramEntities
from zenlake.routing.face import BOTH, CURRENT, Face, InterestOut

#: Of what: flags, as interests have them.
SUBSCRIBERS: Final = 1
QUERYABLES: Final = 2
TOKENS: Final = 4


class ProgramInterest:
    """The interest of one entity of this node's programs."""

    __slots__ = ("key", "kinds", "mode")

    def __init__(self, kinds: int, key: str, mode: int) -> None:
        """`kinds`: of subscribers, queryables, tokens; `mode`: of now, of what comes, of both."""
        self.kinds: int = kinds
        self.key: str = key
        self.mode: int = mode


class ProgramInterests:
    """The interests of this node's programs, by the id of the entity that has them."""

    def __init__(self, node: Core, declared: ProgramEntities) -> None:
        """Nothing yet."""
        self.node: Core = node
        self.declared: ProgramEntities = declared
        self.open: dict[int, ProgramInterest] = {}

    def add(self, eid: int, interest: ProgramInterest) -> list[tuple[Face, InterestOut]]:
        """Send an Interest to each neighbour that declares only on interest."""
        self.open[eid] = interest
        tables = self.node.tables
        shown: list[tuple[Face, InterestOut]] = []
        for face in list(tables.faces.values()):
            if tables.needs_interest(face):
                key = self.declared.outside(interest.key)
                out = tables.send_interest(
                    face, interest.kinds, key, interest.mode, None, eid, self.node.now
                )
                shown.append((face, out))
        if shown:
            self.node.wake_by(self.node.now + tables.interest_timeout)
        return shown

    def remove(self, eid: int) -> None:
        """Withdraw an interest from the neighbours that it was sent to."""
        if self.open.pop(eid, None) is None:
            return
        tables = self.node.tables
        for face in list(tables.faces.values()):
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == eid:
                    tables.withdraw(face, out.id)

    def greet(self, face: Face, now: float) -> None:
        """Send a new neighbour all open interests."""
        tables = self.node.tables
        if tables.needs_interest(face):
            for eid, interest in list(self.open.items()):
                if interest.mode != CURRENT:
                    # After a reconnection the tokens of before are news again only if they are
                    # new: the tables know which.
                    tables.send_interest(
                        face,
                        interest.kinds,
                        self.declared.outside(interest.key),
                        BOTH,
                        None,
                        eid,
                        now,
                    )

    def forget(self, eid: int) -> None:
        """Drop an interest that has been answered; no Interest final is sent."""
        self.open.pop(eid, None)
        for face in self.node.tables.faces.values():
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == eid:
                    del face.interests_out[out.id]
                    self.node.tables.unanswered.over(out)
