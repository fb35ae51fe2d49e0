"""Who may begin to open a session while many others are at it: of crowds, those give way that wait.

A stranger who connects and says nothing must not keep others out. Each address may have so many
sessions that are not open yet, and all together so many. One more displaces the one that has waited
longest: of its own address if that has too many, else of the address that has most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zenlake.node.rejections import KEY, LIMIT, host_of
from zenlake.node.sessions.leases import Leases
from zenlake.node.sessions.neighbour import Neighbour

__all__ = ["illegal_key_reporter", "limit_reporter", "overflow_of", "room_for"]


def room_for(
    peer: str, opening: Iterable[Neighbour], of_address: int, of_all: int
) -> tuple[bool, Neighbour | None]:
    """Whether one more may begin, and who gives way to it.

    `opening`: those that have not opened yet, the first first; `of_address` and `of_all` may.
    """
    waiting: dict[str, list[Neighbour]] = {}
    many = 0
    for neighbour in opening:
        if not neighbour.attempt:
            waiting.setdefault(host_of(neighbour.dst), []).append(neighbour)
            many += 1
    host = host_of(peer)
    own = len(waiting.get(host, ()))
    if own < of_address and many < of_all:
        return True, None
    if own >= of_address:
        return True, waiting[host][0]
    largest = max(waiting.values(), key=len, default=[])
    # Only a crowd gives way: where each waits alone, all are as likely to be honest.
    return (True, largest[0]) if len(largest) > max(own, 1) else (False, None)


def limit_reporter(neighbour: Neighbour) -> Callable[[str], None]:
    """Takes what of a neighbour was refused because of a limit, or must wait."""
    node = neighbour.node

    def report(what: str) -> None:
        node.rejections.add(LIMIT, neighbour.dst, what, node.now, neighbour.user())

    return report


def illegal_key_reporter(neighbour: Neighbour) -> Callable[[str], None]:
    """Takes what is wrong with keys that a neighbour names."""
    node = neighbour.node

    def report(flaw: str) -> None:
        node.rejections.add(KEY, neighbour.dst, f"ignored: {flaw}", node.now, neighbour.user())

    return report


def overflow_of(neighbour: Neighbour, leases: Leases) -> Callable[[], None]:
    """Has a session closed soon, for which too much waits."""

    def overflow() -> None:
        unicast = neighbour.unicast
        if unicast is not None:
            leases.overflowed.append(neighbour)
            neighbour.node.wake_by(0.0)

    return overflow
