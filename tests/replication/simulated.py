"""Replicas in a network that loses, delays and cuts, with clocks that disagree."""

from __future__ import annotations

from collections.abc import Callable

from tests.newest.oracle import Said
from zenlake.newest import Contents, Value
from zenlake.replication import Eras, Event, Replica
from zenlake.replication.events import Action
from zenlake.replication.messages import (
    AlignmentQuery,
    Discovery,
    DiscoveryReply,
    Retrieval,
    decode_digest,
    decode_query,
    decode_reply,
    encode_digest,
    encode_query,
    encode_reply,
)

ERAS = Eras("a/**", None, 1000, 5, 2, 3, 100)
#: The moment at which simulations begin, in milliseconds since 1970.
BEGIN = 1_000_000


def ntp64(milliseconds: int) -> int:
    """The first NTP64 of a millisecond."""
    return -(-(milliseconds << 32) // 1000)


class Node:
    """A storage in memory, its replica, and a clock that is wrong by some milliseconds."""

    def __init__(self, name: str, eras: Eras = ERAS, skew: int = 0) -> None:
        self.name = name
        self.eras = eras
        self.skew = skew
        self.contents = Contents(keeps=False)
        self.replica = Replica(eras, self.contents, name)

    def hear(self, said: Said) -> None:
        """Store a sample as a storage does."""
        if said.value is None:
            if self.contents.delete(said.key, said.time, said.id):
                self.replica.delete(said.key, said.time, said.id)
        elif self.contents.put(said.key, said.time, said.id, Value(said.value.encode())):
            self.replica.put(said.key, said.time, said.id)

    def restart(self) -> None:
        """Begin again with what a volume has kept."""
        kept = Contents(keeps=False)
        kept.load(self.contents.records(), self.contents.updates_of_many())
        self.contents = kept
        self.replica = Replica(self.eras, kept, self.name)

    def told(self) -> dict[str, tuple[int, bytes, str]]:
        """All that it answers."""
        return {
            entry.key: (entry.time, entry.id, (entry.value.payload or b"").decode())
            for entry in self.contents.matching("**")
            if entry.value is not None
        }

    def value_of(self, event: Event) -> Value | None:
        """What is replied with an event."""
        key = self.replica.key_of(event)
        assert key is not None
        if event.action is Action.PUT_MANY:
            update = self.contents.update_of_many(key)
            return None if update is None else update.value
        entry = self.contents.known(key)
        return None if entry is None else entry.value


def always(_what: str) -> bool:
    """A network without losses."""
    return True


def align(
    asker: Node,
    other: Node,
    first: AlignmentQuery,
    now: int,
    arrives: Callable[[str], bool] = always,
) -> int:
    """Ask, and go on asking, until nothing is left to ask; all of it in bytes. Gives how often."""
    waiting: list[AlignmentQuery] = [first]
    asked = 0
    while waiting:
        query = decode_query(encode_query(waiting.pop(0)))
        asked += 1
        if not arrives("query"):
            continue
        for reply in list(other.replica.answer(query, now + other.skew)):
            value = other.value_of(reply.event) if isinstance(reply, Retrieval) else None
            if arrives("reply"):
                heard = decode_reply(encode_reply(reply))
                waiting += asker.replica.heard_reply(heard, value)
                if isinstance(query, Discovery) and isinstance(heard, DiscoveryReply):
                    break
    return asked


def round_of_digests(
    nodes: list[Node],
    now: int,
    reaches: Callable[[int, int], bool] = lambda _a, _b: True,
    arrives: Callable[[str], bool] = always,
) -> int:
    """Let all publish their digests, and align with what they hear; gives how many asked."""
    asked = 0
    for at, node in enumerate(nodes):
        published = encode_digest(node.replica.digest(now + node.skew))
        for other_at, other in enumerate(nodes):
            if other_at == at or not reaches(at, other_at) or not arrives("digest"):
                continue
            digest = decode_digest(published, other.eras)
            diff = other.replica.heard_digest(digest, now + other.skew)
            if diff is not None:
                asked += 1
                align(other, node, diff, now, arrives)
    return asked
