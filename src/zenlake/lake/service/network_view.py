"""What a network looks like from its admin space, and what changed since the last look.

A fact is that something is there: a node, a session between two, a link of it, a declaration of
a node for a key, a publisher with a subscriber that matches it. Two looks differ by the facts
that came and those that went. Nothing here opens a session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, final

from zenlake.errors import KeyExprError
from zenlake.keys.matching import intersects

__all__ = ["Fact", "FactChange", "Measured", "NetworkView", "facts_of", "metrics_of"]

MOST_FACTS: Final = 100_000
"""More are left out, and counted."""
MOST_MATCHED: Final = 1000
"""Keys of publishers, and of subscribers, that are compared with each other."""
MOST_METRICS: Final = 20_000

DECLARED: Final = ("subscriber", "publisher", "queryable", "querier", "token")
_SAMPLE: Final = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Fact(NamedTuple):
    """Something that is there; `node` says so."""

    node: str
    whatami: str
    what: str
    """`node`, `session`, `link`, a kind of declaration, or `matching`."""
    key: str | None
    """The key that was declared."""
    peer: str | None
    """Who is at the other end, or who declared it."""
    detail: str | None
    """Of a link its two addresses, of a session its region, of a node its version."""


class FactChange(NamedTuple):
    """A fact, and whether it was `there` when watching began, `came` or `went`."""

    fact: Fact
    state: str


class Measured(NamedTuple):
    """One sample of one metric."""

    name: str
    labels: list[tuple[str, str]]
    value: float


@final
class NetworkView:
    """The facts of the last look."""

    def __init__(self) -> None:
        """Nothing was looked at yet."""
        self._facts: dict[Fact, None] = {}
        self._began = False
        self.left_out = 0
        """Facts beyond the bound, in the last look."""

    def seen(self, facts: Iterable[Fact]) -> list[FactChange]:
        """What changed, now that these are the facts."""
        now: dict[Fact, None] = {}
        self.left_out = 0
        for fact in facts:
            if len(now) < MOST_FACTS:
                now[fact] = None
            else:
                self.left_out += fact not in now
        new = "came" if self._began else "there"
        changes = [FactChange(fact, "went") for fact in self._facts if fact not in now]
        changes += [FactChange(fact, new) for fact in now if fact not in self._facts]
        self._facts, self._began = now, True
        return changes


def facts_of(records: Iterable[tuple[str, bytes]]) -> Iterator[Fact]:
    """The facts that records of the admin space tell, by their keys and JSON; others are none."""
    published: dict[str, None] = {}
    subscribed: dict[str, None] = {}
    for key, payload in records:
        chunks = key.split("/", 4)
        if len(chunks) < 3 or chunks[0] != "@":
            continue
        node, whatami = chunks[1], chunks[2]
        if len(chunks) == 3:
            yield from _node(node, whatami, _read(payload))
        elif len(chunks) == 5 and chunks[3] in DECLARED:
            what, declared = chunks[3], chunks[4]
            for peers in _read(payload).values():
                for peer in peers if isinstance(peers, list) else ():
                    yield Fact(node, whatami, what, declared, str(peer), None)
            if what == "publisher":
                published[declared] = None
            elif what == "subscriber":
                subscribed[declared] = None
    some = list(subscribed)[:MOST_MATCHED]
    for declared in list(published)[:MOST_MATCHED]:
        if any(_meet(declared, other) for other in some):
            yield Fact("", "", "matching", declared, None, None)


def _node(node: str, whatami: str, said: dict[str, Any]) -> Iterator[Fact]:
    yield Fact(node, whatami, "node", None, None, str(said.get("version")))
    for session in said.get("sessions") or ():
        if not isinstance(session, dict):
            continue
        peer = str(session.get("peer"))
        yield Fact(node, whatami, "session", None, peer, str(session.get("region")))
        for link in session.get("links") or ():
            if isinstance(link, dict):
                ends = f"{link.get('src')} {link.get('dst')}"
                yield Fact(node, whatami, "link", None, peer, ends)


def _read(payload: bytes) -> dict[str, Any]:
    try:
        said = json.loads(payload)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _meet(one: str, other: str) -> bool:
    try:
        return intersects(one, other)
    except KeyExprError:
        return False


def metrics_of(text: str) -> Iterator[Measured]:
    """The samples of OpenMetrics text; lines that are none are passed over."""
    count = 0
    for line in text.splitlines():
        sample = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if sample is None:
            continue
        try:
            value = float(sample[3])
        except ValueError:
            continue
        count += 1
        if count > MOST_METRICS:
            return
        labels = _LABEL.findall(sample[2] or "")
        yield Measured(sample[1], [(name, _plain(word)) for name, word in labels], value)


def _plain(word: str) -> str:
    return re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), word)
