"""Refuses options that open what a configuration file closes: an option may only narrow it.

Both configurations become a table of the ways in (`zenlake.config.ways_in`). Each way of the second
has to be covered by one of the first: the same door, no further, no fewer demands, nobody else. A
door that the file says nothing about may be opened by an option to those who prove who they are,
and to everybody where the file lets everybody in. How much somebody may have (`limits`, sizes,
times) is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Final

from zenlake.config.config import Config
from zenlake.config.problem import InvalidConfig, Problem
from zenlake.config.ways_in import (
    HTTP,
    LISTENING,
    READING,
    SESSIONS,
    WRITING,
    DoorTable,
    Reach,
    Way,
    ways_in,
)
from zenlake.records import record

__all__ = ["Guards", "asks_who_connects", "refuse_more_open"]

#: What holds at doors that a file says nothing about, while it guards others.
UNSAID: Final = {
    READING: "only links within this machine see the admin space",
    WRITING: "nobody changes the configuration, and with it all that is closed",
}
ELSEWHERE: Final = "nobody gets in without showing who they are"


def refuse_more_open(said: Config, made: Config, source: str) -> None:
    """Raise if `made` lets in or allows more than `said`, what `source` says, does."""
    words = f"{source} says so, and an option would undo that"
    help = f"leave the option out, or change {source}"
    if source.startswith("-"):
        help = "leave one of the two out"
    problems = [
        Problem(path, f"{what}: {words}; {help}")
        for path, what in dict.fromkeys(_opened(ways_in(said), ways_in(made)))
    ]
    if problems:
        raise InvalidConfig(tuple(problems))


@record(frozen=True, slots=True)
class Guards:
    """What a file says, and the configuration that options have made of it so far."""

    said: Config
    made: Config
    source: str

    def refuse_change(self, key: str, value: str) -> None:
        """Raise if a further change, a value in JSON5, lets in or allows more than the file."""
        made = copy(self.made)
        made.insert_json5(key, value)
        refuse_more_open(self.said, made, self.source)


def asks_who_connects(config: Config) -> bool:
    """Return True if a router of this configuration asks strangers for a user, key or certificate.

    Or rules say what they may do.
    """
    settings = config.for_mode("router")
    auth = settings.transport.auth
    return (
        auth.usrpwd.dictionary_file is not None
        or auth.pubkey.private_key_file is not None
        or auth.pubkey.private_key_pem is not None
        or settings.transport.link.tls.enable_mtls is True
        or settings.access_control.enabled
    )


def _opened(said: DoorTable, made: DoorTable) -> Iterator[tuple[str, str]]:
    """Return the key and a sentence for each way that is open in `made` and not in `said`."""
    for way in made.ways:
        same = [one for one in said.ways if one.door == way.door and one.who in (None, way.who)]
        if _covers(said, same, way):
            continue
        wider = [one for one in same if one.reach >= way.reach]
        missing = min(map(way.lacks, wider or (same if way.has_proof else [])), key=len, default=())
        closed = said.closed.get(way.door, UNSAID.get(way.door, ELSEWHERE))
        if missing:
            yield from sorted((demand.path, demand.words) for demand in missing)
        elif way.door in LISTENING and not way.has_proof:
            yield way.door, f"{closed}, and {way.where} asks nobody for a user or a certificate"
        else:
            yield way.door, closed


def _covers(said: DoorTable, same: list[Way], way: Way) -> bool:
    """Return True if a table lets in all that a way does; `same`: its own ways at that door."""
    if any(one.reach >= way.reach and not way.lacks(one) for one in same):
        return True
    if way.door in said.closed:
        # A door of this machine may be opened to others who are asked, and for all that it asks.
        if way.door not in LISTENING or way.reach is Reach.MACHINE or not way.has_proof:
            return False
        if any(one.reach is Reach.OTHERS for one in same):
            return False
        return not same or any(not way.lacks(one) for one in same)
    if said.guards_nothing:
        return True
    if way.door in UNSAID:
        return False
    if way.has_proof or (way.reach is Reach.MACHINE and way.door.startswith(HTTP)):
        return True
    return any(
        one.door == SESSIONS and one.reach >= way.reach and not one.has_proof for one in said.ways
    )
