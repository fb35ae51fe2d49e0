"""The asker of a query, as routers name it: the parameter `_asker`.

A service that answers askers in turn sees a query through routers, which pass it on without the
session that it came from. So the router that an asker is a neighbour of adds a name for the asker,
and removes every name that the asker wrote. It does so where `_readable` may stand too: with
queries that a lake, a journal or the admin space may answer. Queries that only applications answer
are passed on as they are.

Routers believe each other, so a name is worth as much as the routers that it came through. It is a
random text that tells nobody who the asker is.
"""

from __future__ import annotations

from typing import Final

from zenlake.keys.readable import asks_of_many

__all__ = ["ASKER", "LONGEST", "named_asker", "with_asker"]

ASKER: Final = "_asker"

LONGEST: Final = 64
"""Characters of a name that are looked at."""


def with_asker(key: str, parameters: str, asker: str) -> str:
    """Return the parameters of a query with the name of its asker, and no other name."""
    others = parameters
    if ASKER in parameters:
        items = parameters.split(";")
        others = ";".join(item for item in items if item.partition("=")[0] != ASKER)
    if not asks_of_many(key, others):
        return others
    said = f"{ASKER}={asker}"
    return f"{said};{others}" if others else said


def named_asker(parameters: str) -> str:
    """Return the name of the asker in the parameters of a query, or an empty text."""
    if ASKER in parameters:
        for item in parameters.split(";"):
            name, _, asker = item.partition("=")
            if name == ASKER:
                return asker[:LONGEST]
    return ""
