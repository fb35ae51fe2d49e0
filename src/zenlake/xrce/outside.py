"""What surrounds a broker: values that last, and whatever lies beyond."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from zenlake.xrce.names import Name, matches

if TYPE_CHECKING:
    from zenlake.xrce.member import Member
    from zenlake.xrce.tables import Subscription


class Outside:
    """What lies beyond the broker; this one is empty."""

    #: Whether there is anything that wants to be told of samples.
    wide = False

    def published(
        self, path: str, payload: bytes, reliable: bool, conduit: int, durability: int,
        source: bytes, sn: int,
    ) -> None:  # fmt: skip
        """A session published a sample."""

    def wanted(self, path: str, wanted: bool) -> None:
        """The first session wants what a path names, or the last one no longer does."""

    def publishing(self, path: str, publishing: bool) -> bool:
        """The first session publishes a path, or the last one stops; whether it has subscribers."""
        return False

    def ask(self, member: Member, one: Subscription, most: int | None) -> bool:
        """A selection is pulled: whether the outside is asked, and `Broker.answered` comes."""
        return False

    def children(self, member: Member, one: Subscription, most: int | None) -> bool:
        """A session wants the names below a path: whether `Broker.named` comes with more."""
        return False

    def late(self, member: Member, one: Subscription) -> None:
        """A session wants last values by tag: `Broker.remembered` comes with those outside."""

    def came(self, pid: bytes) -> None:
        """A session opened."""

    def went(self, pid: bytes) -> None:
        """A session closed."""

    def refuses(self, name: Name) -> int:
        """Why a resource of that name cannot be known outside, as a Result says it; 0: it can."""
        return 0


class Values(Protocol):
    """Where the last values of durable resources are kept."""

    @property
    def refused(self) -> int:
        """How many values there was no room for."""

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path."""

    def commit(self) -> None:
        """Make what was put last, before its arrival is acknowledged."""

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match: path, durability, payload."""


class DurableValues:
    """The last values of durable resources, for as long as the broker lives."""

    def __init__(self, limit: int = 65536, size: int = 1 << 26) -> None:
        """`limit`: how many paths; `size`: how many bytes."""
        self._limit = limit
        self._size = size
        self._used = 0
        self._values: dict[str, tuple[int, bytes]] = {}
        self.refused = 0

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path; what there is no room for is refused and counted.

        An older value of the path is given up then: it is no longer true.
        """
        known = self._values.pop(path, None)
        if known is not None:
            self._used -= len(known[1])
        if len(self._values) >= self._limit or self._used + len(payload) > self._size:
            self.refused += 1
            return
        self._values[path] = (durability, payload)
        self._used += len(payload)

    def commit(self) -> None:
        """Memory does not last."""

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match."""
        if "*" not in path and "?" not in path:
            known = self._values.get(path)
            return [] if known is None else [(path, *known)]
        return [
            (at, durability, payload)
            for at, (durability, payload) in self._values.items()
            if matches(path, at)
        ]
