"""Which way things may flow between the kinds of neighbours that a node has.

Seen from a node, a neighbour lies *south* (the node serves it, as it serves its own programs) or
*north* (towards the infrastructure, or its own kind). What comes from the south goes anywhere;
what comes from the north goes south only. Peers are expected to talk to each other directly, so
nothing is relayed between two of them, unless a router is told to be their broker (see `Tables`).

    node \\ neighbour   router    peer      client
    router              north     south     south
    peer                north     north     south
    client              north     north     (refused)
"""

from __future__ import annotations

from typing import Final

ROUTER: Final = 0
PEER: Final = 1
CLIENT: Final = 2
#: The programs of this very node.
LOCAL: Final = 3

ROLE_NAMES: Final[tuple[str, ...]] = ("router", "peer", "client", "local")


def is_south(mode: int, role: int) -> bool:
    """Whether a node of `mode` serves a neighbour of `role`."""
    if role in (LOCAL, CLIENT):
        return True
    return mode == ROUTER and role == PEER


def may_flow(mode: int, source: int, target: int) -> bool:
    """Whether a node of `mode` passes on to a `target` what a `source` has or says."""
    if target in (LOCAL, CLIENT):
        return True
    if source in (LOCAL, CLIENT):
        return True
    if mode == ROUTER:
        # Peers of one router mesh among themselves; routers are served by their own trees.
        return source != target
    return False


def is_pushed(mode: int, target: int) -> bool:
    """Whether declarations go to a `target` neighbour unasked; if not, it must show interest."""
    return not is_south(mode, target)
