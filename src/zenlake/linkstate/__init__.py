"""Link states: what nodes tell each other about the network, in `Oam` messages with id 1."""

from __future__ import annotations

from zenlake.linkstate.codec import (
    LINK_STATE,
    MAX_LOCATORS,
    KnownNode,
    NodeNames,
    NodeNumbers,
    Outgoing,
    read_entries,
    write_entries,
)

__all__ = [
    "LINK_STATE",
    "MAX_LOCATORS",
    "KnownNode",
    "NodeNames",
    "NodeNumbers",
    "Outgoing",
    "read_entries",
    "write_entries",
]
