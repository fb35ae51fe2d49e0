"""What a node has dropped, by reason and key, as an operator may see it.

Only reads; the caller holds the node's lock. The rows of a reason add up to what was dropped; where
much was, what falls to a key is an estimate (`zenlake.transport.drops`).
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.node.inspection.view import Plain, links, sessions, whatami, zid_text
from zenlake.node.node import Node
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.regions import ROLE_NAMES
from zenlake.transport.drops import DropLog

#: How many sessions and subscribers are told, those that lost most first, and rows of each.
TOLD = 64
ROWS = 16


def drops(node: Node) -> Plain:
    """All of the node by reason and key, then whose outbox or channel it was."""
    return {
        "zid": zid_text(node.zid),
        "whatami": whatami(node),
        "now": node.now,
        "keys": rows_of(node.drops),
        "estimate": node.drops.sampled,
        "sessions": _most_first([_session(neighbour) for neighbour in sessions(node)]),
        "subscribers": _most_first(
            [
                {"key": subscriber.key, **_of(log)}
                for subscriber in list(node.local.subscribers.values())
                if (log := subscriber.sink.drop_log()) is not None
            ]
        ),
    }


def rows_of(log: DropLog, wanted: Callable[[str], bool] | None = None) -> list[Plain]:
    """The rows of a log, those that count most first; `wanted` says of which keys."""
    rows = [
        (many, reason, key)
        for reason, tally in list(log.tallies.items())
        for key, many in tally.most()
        if wanted is None or wanted(key)
    ]
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    return [{"reason": reason, "key": key, "dropped": many} for many, reason, key in rows]


def session_log(neighbour: Neighbour) -> DropLog | None:
    """What could not be sent in a session: its links have one log."""
    for link in links(neighbour):
        if link.unicast is not None and link.unicast.outbox.lost is not None:
            return link.unicast.outbox.lost
    return None


def _session(neighbour: Neighbour) -> Plain:
    face = neighbour.face
    assert face is not None
    log = session_log(neighbour)
    page: Plain = {"peer": zid_text(face.zid), "whatami": ROLE_NAMES[face.role]}
    return page | (_of(log) if log is not None else {"dropped": 0})


def _of(log: DropLog) -> Plain:
    rows = rows_of(log)
    dropped = 0
    for tally in list(log.tallies.values()):
        dropped += sum(list(tally.rows.values()))
    return {"dropped": dropped, "estimate": log.sampled, "keys": rows[:ROWS]}


def _most_first(pages: list[Plain]) -> list[Plain]:
    """Those that lost something."""
    lost = [(page, dropped) for page in pages if isinstance(dropped := page["dropped"], int)]
    lost.sort(key=lambda one: -one[1])
    return [page for page, dropped in lost[:TOLD] if dropped]
