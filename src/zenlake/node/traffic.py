"""How much passes, by key: exact for the keys of now, by prefix for all that ever passed.

Each counter adds to a row of its own: a `Tally` for each key that this node's programs speak
on, the routes of a neighbour (`Inbound`) for what that one says. Rows are bounded in number. Those
that must go are folded into the total of their prefix, the first chunks of the key; and when there
are too many prefixes, into one total for all others. So totals never shrink.
"""

from __future__ import annotations

from typing import Final

from zenlake.keys.matching import includes
from zenlake.transport.drops import DropLog

#: How many keys of its own programs a node counts one by one.
KEYS: Final = 4096

#: How many prefixes of dropped keys are counted one by one, for each reason.
DROPPED: Final = 32

#: The prefix of all prefixes that there was no room for; no key begins like this.
OTHER: Final = "*"


class Tally:
    """How many samples, and how many bytes of payload."""

    __slots__ = ("samples", "size")

    def __init__(self) -> None:
        """Nothing yet."""
        self.samples: int = 0
        self.size: int = 0

    def add(self, samples: int, size: int) -> None:
        """Count more."""
        self.samples += samples
        self.size += size


def prefix_of(key: str, depth: int) -> str:
    """The first chunks of a key."""
    end = -1
    for _ in range(depth):
        end = key.find("/", end + 1)
        if end < 0:
            return key
    return key[:end]


class Prefixes:
    """Totals by prefix, for one direction."""

    def __init__(self, depth: int, limit: int, filters: tuple[str, ...] = ()) -> None:
        """Prefixes of `depth` chunks, at most `limit` of them; `filters` are counted besides."""
        self.depth: int = depth
        self.limit: int = limit
        self.totals: dict[str, Tally] = {}
        self.filters: dict[str, Tally] = {text: Tally() for text in filters}

    def add(self, key: str, samples: int, size: int) -> None:
        """Count what passed on a key."""
        if samples:
            self.total(prefix_of(key, self.depth)).add(samples, size)
            for text, tally in self.filters.items():
                if includes(text, key):
                    tally.add(samples, size)

    def total(self, prefix: str) -> Tally:
        """The total of a prefix."""
        tally = self.totals.get(prefix)
        if tally is None:
            if len(self.totals) >= self.limit:
                prefix = OTHER
                tally = self.totals.get(prefix)
            if tally is None:
                tally = Tally()
                self.totals[prefix] = tally
        return tally

    def copy(self) -> Prefixes:
        """The same totals, to be added to."""
        other = Prefixes(self.depth, self.limit, tuple(self.filters))
        for prefix, tally in self.totals.items():
            other.total(prefix).add(tally.samples, tally.size)
        for text, tally in self.filters.items():
            other.filters[text].add(tally.samples, tally.size)
        return other


class Traffic:
    """What a node has counted by key."""

    def __init__(self, depth: int, limit: int, filters: tuple[str, ...] = ()) -> None:
        """Prefixes of `depth` chunks, at most `limit` of them in each direction.

        `filters`: expressions whose keys are counted besides, when they are heard.
        """
        #: What neighbours sent and is not counted in their routes any more.
        self.heard: Prefixes = Prefixes(depth, limit, filters)
        #: What this node's programs said on keys that are not counted one by one any more.
        self.said: Prefixes = Prefixes(depth, limit)
        self.own: dict[str, Tally] = {}
        #: Whether rows were folded since the routes were last found: who holds one must get
        #: another.
        self.folded: bool = False

    def tally(self, key: str) -> Tally:
        """Where what our programs say on a key is counted."""
        tally = self.own.get(key)
        if tally is None:
            if len(self.own) >= KEYS:
                self._fold()
            tally = Tally()
            self.own[key] = tally
        return tally

    def _fold(self) -> None:
        for key, tally in self.own.items():
            self.said.add(key, tally.samples, tally.size)
        self.own.clear()
        self.folded = True


class DropTotals(DropLog):
    """What all of a node has dropped, its sessions and programs that are gone included."""

    def __init__(self, depth: int) -> None:
        """Counted by key, and for metrics by prefixes of `depth` chunks, which never shrink."""
        super().__init__()
        self._depth: int = depth
        #: By reason.
        self.prefixes: dict[str, Prefixes] = {}

    def note(self, reason: str, key: str, many: int) -> None:
        """Count `many` under a key."""
        super().note(reason, key, many)
        prefixes = self.prefixes.get(reason)
        if prefixes is None:
            prefixes = Prefixes(self._depth, DROPPED)
            self.prefixes[reason] = prefixes
        prefixes.add(key, many, 0)
