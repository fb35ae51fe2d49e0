"""What our programs want to be told by those who tell only when asked."""

from __future__ import annotations

from typing import Final

from zenlake.node.core import Core
from zenlake.node.programs.declared import Declared
from zenlake.routing.face import BOTH, CURRENT, Face, InterestOut

#: Of what: flags, as interests have them.
SUBSCRIBERS: Final = 1
QUERYABLES: Final = 2
TOKENS: Final = 4


class ProgramInterest:
    """What one of our programs wants neighbours to tell."""

    __slots__ = ("key", "kinds", "mode")

    def __init__(self, kinds: int, key: str, mode: int) -> None:
        """`kinds`: of subscribers, queryables, tokens; `mode`: of now, of what comes, of both."""
        self.kinds: int = kinds
        self.key: str = key
        self.mode: int = mode


class ProgramInterests:
    """All that is wished, by the entity that interests it."""

    def __init__(self, node: Core, declared: Declared) -> None:
        """Nothing yet."""
        self.node: Core = node
        self.declared: Declared = declared
        self.open: dict[int, ProgramInterest] = {}

    def add(self, eid: int, interest: ProgramInterest) -> list[tuple[Face, InterestOut]]:
        """Show interest to those who tell only when asked."""
        self.open[eid] = interest
        tables = self.node.tables
        asked: list[tuple[Face, InterestOut]] = []
        for face in list(tables.faces.values()):
            if tables.asks(face):
                key = self.declared.outside(interest.key)
                out = tables.ask(face, interest.kinds, key, interest.mode, None, eid, self.node.now)
                asked.append((face, out))
        if asked:
            self.node.wake_by(self.node.now + tables.interest_timeout)
        return asked

    def remove(self, eid: int) -> None:
        """Want it no more, and say so to those who were asked."""
        if self.open.pop(eid, None) is None:
            return
        tables = self.node.tables
        for face in list(tables.faces.values()):
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == eid:
                    tables.withdraw(face, out.id)

    def greet(self, face: Face, now: float) -> None:
        """Show a new neighbour all that is wished."""
        tables = self.node.tables
        if tables.asks(face):
            for eid, interest in list(self.open.items()):
                if interest.mode != CURRENT:
                    # After a reconnection the tokens of before are news again only if they are
                    # new: the tables know which.
                    tables.ask(
                        face,
                        interest.kinds,
                        self.declared.outside(interest.key),
                        BOTH,
                        None,
                        eid,
                        now,
                    )

    def forget(self, eid: int) -> None:
        """It has been answered: nobody need be told that it is wanted no more."""
        self.open.pop(eid, None)
        for face in self.node.tables.faces.values():
            for out in list(face.interests_out.values()):
                if out.owner is None and out.owner_id == eid:
                    del face.interests_out[out.id]
                    self.node.tables.unanswered.over(out)
