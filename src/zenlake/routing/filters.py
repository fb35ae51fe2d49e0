"""Filters of a neighbour's subscribers, which a router asks before it sends a sample there.

A subscriber of zenlake's may have a filter (`robot/**?_filter=battery<20`), and asks it itself, of
every sample, whichever router it has. Its declaration carries the filter too, in an extension that
others pass over. A router that knows it need not send what would be thrown away:

    subscriber ── DeclareSubscriber robot/** · battery<20 ──▶ router
    subscriber ◀───────── only what it is true of ─────────── router

So a router may always send more than the filter asks for, and never less. It sends everything to a
neighbour one of whose subscribers to the key has no filter, or has one that it does not ask: too
long, wrong, one too many, or about time, of which each node has its own idea; and whatever is too
large to look into, is CBOR or MessagePack, which subscribers may read and routers do not, or comes
when the time for looking is used up. Filters are asked of samples that
pass through, where they leave for the subscriber; routers do not tell each other of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from zenlake.errors import RemoteError

if TYPE_CHECKING:  # most nodes never meet a filter, and need not know the language
    from zenlake.expr.closure import Predicate, SampleFields

#: Characters of a filter, of all subscribers of a key together.
TEXT_MAX: Final = 1024
#: Bytes of a payload that is looked into.
PAYLOAD_MAX: Final = 1 << 14
#: What looking at a sample costs beside the bytes of its payload, in bytes.
SAMPLE: Final = 256
#: Bytes that are looked at in a second, for all neighbours together, and at once.
BUDGET: Final = 16 << 20
#: Characters with `_` among them that are compared in the time of one walk through a payload.
WILD: Final = 32
#: What a filter costs, in bytes of memory for each of its characters. Measured: 70 to 110.
CHARACTER: Final = 128


class FilterNotAsked(RemoteError, ValueError):
    """A filter of a subscriber that a router does not ask."""


class SubscriberFilter:
    """A filter of a subscriber, that a router may ask in its place."""

    __slots__ = ("_holds", "reads_payload", "text", "weight")

    def __init__(self, text: str) -> None:
        """Raises `FilterNotAsked` if it is none for routers."""
        from zenlake.expr.closure import compiled
        from zenlake.expr.parse import parse
        from zenlake.expr.tree import (
            ExprError,
            most_wild_of,
            patterns_of,
            reads_payload,
            reads_time,
        )

        if len(text) > TEXT_MAX:
            raise FilterNotAsked(f"a filter of {len(text)} characters: at most {TEXT_MAX}")
        try:
            tree = parse(text)
            self._holds: Predicate = compiled(tree)
        except ExprError as error:
            raise FilterNotAsked(str(error)) from error
        if reads_time(tree):
            raise FilterNotAsked(f"'{text}' is about time, of which each node has its own idea")
        self.text: str = text
        self.reads_payload: bool = reads_payload(tree)
        #: How often it may have to walk through the payload, or as long.
        self.weight: int = 1 + sum(1 + most_wild_of(one) // WILD for one in patterns_of(tree))

    def holds(self, fields: SampleFields) -> bool:
        """Whether it is true of a sample."""
        return self._holds(fields) is True


def asked_by_routers(text: str) -> SubscriberFilter | None:
    """A filter of a subscriber here, if a router may ask it too."""
    try:
        return SubscriberFilter(text)
    except FilterNotAsked:
        return None


def heard_filter(data: bytes) -> SubscriberFilter:
    """A filter that a neighbour declares; raises `FilterNotAsked` if it is none for routers."""
    try:
        return SubscriberFilter(data.decode())
    except UnicodeDecodeError as error:
        raise FilterNotAsked("it is not UTF-8") from error


def any_of(texts: Iterable[str]) -> str:
    """The filter that is true when one of these is; empty if that is too long."""
    several = list(dict.fromkeys(texts))
    if len(several) == 1:
        return several[0]
    text = " OR ".join([f"({one})" for one in several])
    return text if len(text) <= TEXT_MAX else ""


class SampleFilters:
    """Asks the filters of neighbours, within a budget, and counts."""

    __slots__ = ("_at", "_left", "held_back", "unasked")

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self._left: int = BUDGET
        self._at: float = 0.0
        #: Samples that were not sent to a neighbour.
        self.held_back: int = 0
        #: Samples that were sent without asking: too large, not to be read here, or the budget was
        #: used up.
        self.unasked: int = 0

    def affords(
        self, filters: list[SubscriberFilter], size: int, now: float, encoding: str = ""
    ) -> bool:
        """Whether these may be asked now of a payload of some size; it is paid for if so."""
        cost = 0
        reads = False
        for one in filters:
            cost += SAMPLE + (size * one.weight if one.reads_payload else 0)
            reads = reads or one.reads_payload
        if reads and encoding:
            from zenlake.expr.payload import read_everywhere

            if not read_everywhere(encoding):
                self.unasked += 1
                return False
        if now > self._at:
            self._left = min(BUDGET, self._left + int((now - self._at) * BUDGET))
            self._at = now
        if cost > self._left or size > PAYLOAD_MAX:
            self.unasked += 1
            return False
        self._left -= cost
        return True

    def lets(self, filters: list[SubscriberFilter], fields: SampleFields) -> bool:
        """Whether one of these is true of a sample."""
        for one in filters:
            if one.holds(fields):
                return True
        self.held_back += 1
        return False


def fields_of(key: str, put: bool, payload: bytes, encoding: str) -> SampleFields:
    """A sample that passes through, as filters look at it; its time is not looked at."""
    from zenlake.expr.closure import SampleFields
    from zenlake.expr.payload import seen_payload

    if not put:
        return SampleFields(None, key, 0, "delete", encoding, None)
    record, plain = seen_payload(payload, encoding)
    return SampleFields(record, key, 0, "put", encoding, plain)
