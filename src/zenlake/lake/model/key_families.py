"""Finds families of keys: keys that differ in names and numbers alone, and so belong in one table.

    robot/7/battery, robot/8/battery     robot/${id:*}/battery                     battery(id, ...)
    plant/a/line/3/motor/temp            plant/${plant:*}/line/${line:*}/motor/temp
                                                                              temp(plant, line, ...)

A chunk of a key varies

* if it is a number, a UUID, a date, an address, or one letter; or a name with a number at its end,
  unless it is the last chunk (`air/co2` and `air/pm25` are two tables);
* if the chunk before it names a collection, as `robot` and `lines` do, and it is not the last;
* if there are siblings: two names with the same chunks before and behind them (`home/*/temp`),
  eight at the beginning of keys, sixteen at their end.

The last chunk that does not vary names the table. A chunk that varies becomes a column: `id` if it
is the only one, else the name of the chunk before it.

New keys wait for two seconds, so that siblings which come together are seen together. A family
that was found is never changed. A later key that shows that more chunks vary makes a wider family
beside it. Time is an argument, and nothing is read or written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, final

from zenlake.errors import KeyExprError
from zenlake.keys import KeyFormat
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.typed_table import RESERVED
from zenlake.lake.model.value_types import column_name

__all__ = [
    "MOST_TABLES",
    "FamilyFinder",
    "KeyFamily",
    "Positions",
    "Refusal",
    "chunks_of",
    "earliest",
    "family_of",
    "format_of",
    "why_varies",
]

Chunks = tuple[str | None, ...]
"""The chunks of a family; None stands for one that varies."""

Positions = Mapping[str, int]
"""Offsets in journals, by the name under which a table's log knows each partition."""

MOST_TABLES: Final = 500
"""Tables that are made by themselves, at most."""
MOST_PENDING: Final = 10_000
"""New keys that wait, at most; more are looked at again when they come again."""
MOST_CHUNKS: Final = 16
LONGEST_KEY: Final = 500
SETTLE_SECONDS: Final = 2.0
"""How long a new key waits for its siblings."""
TABLES_AT_ONCE: Final = 60
TABLES_A_MINUTE: Final = 30.0
"""How fast tables appear after the first that came at once."""
MOST_EXAMPLES: Final = 10
MOST_REFUSED: Final = 10_000
"""Keys that are remembered for each reason why they get no table."""

INNER_SIBLINGS: Final = 2
FIRST_SIBLINGS: Final = 8
LAST_SIBLINGS: Final = 16

_NUMBER: Final = re.compile(r"[+-]?\d+([.,:_-]\d+)*")
_HEXADECIMAL: Final = re.compile(r"(?=.*\d)(0x)?[0-9a-fA-F]{8,}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ][\d:.,+Z-]*)?")
_NUMBERED: Final = re.compile(r"(?!v\d+$|ros2$).*[^\d]\d+", re.ASCII)
_NAME: Final = re.compile(r"[^a-z0-9_]+")

_COLLECTION_WORDS: Final = """
agent area boat bot building bus camera car cell client crane customer device drone edge factory
farm field fleet floor forklift gateway group host house line location machine node plant robot room
section sensor server ship site station tenant thing tractor train truck turbine uav unit user
vehicle vessel warehouse worker zone
"""
_COLLECTIONS: Final = frozenset(_COLLECTION_WORDS.split())
"""Words after which names vary, alone or with an `s` behind them."""

_SQL_TEXT: Final = """
all and anti any array as asc between both by case cast check collate column constraint create cross
cube current current_date current_time current_timestamp current_user delete desc describe distinct
drop else end escape except exists explain false fetch filter for foreign from full function grant
group grouping having in inner insert intersect interval into is join lateral leading left like
limit map merge minus natural not null offset on only or order outer overlaps partition percent
primary range references right rollup rows select semi session_user set show some struct table
tablesample then time timestamp to trailing true truncate union unique unknown update user using
values view when where window with
"""
_SQL_WORDS: Final = frozenset(_SQL_TEXT.split())
"""Names that not every engine reads without quotes."""

_PUBLISHED: Final = ("view", "alert")
"""The first chunks of what views and alerts publish, which has tables already."""


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """A family of keys, and the table that it gets."""

    name: str
    format: str
    keys: tuple[str, ...] = ()
    """Some of its keys."""
    since: Positions = field(default_factory=dict)
    """Where the first of these keys came."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Keys that get no table, for one reason."""

    reason: str
    count: int
    """How many, as far as they are remembered."""
    examples: tuple[str, ...]


@dataclass(slots=True)
class _Pending:
    """A new key that has no table yet."""

    chunks: Chunks
    seen: float
    since: Positions


def why_varies(chunks: Collection[str], place: int) -> str:
    """Return why a chunk of a key varies, as it is seen from this key alone; empty if not."""
    listed = list(chunks)
    chunk, last = listed[place], place == len(listed) - 1
    if _is_value(chunk):
        return "it is a number or an identifier"
    if last:
        return ""
    if len(chunk) == 1:
        return "it is one letter"
    if _NUMBERED.fullmatch(chunk):
        return "it ends with a number"
    if place and _is_collection(listed[place - 1]):
        return f"it comes after '{listed[place - 1]}'"
    return ""


def _is_value(chunk: str) -> bool:
    return any(form.fullmatch(chunk) for form in (_NUMBER, _HEXADECIMAL, _UUID, _MAC, _DATE))


def _is_collection(chunk: str) -> bool:
    word = chunk.lower()
    return word in _COLLECTIONS or word.removesuffix("s") in _COLLECTIONS


def family_of(key: str) -> Chunks:
    """Return the chunks of a key, with None for those that vary as far as the key itself shows."""
    chunks = key.split("/")
    return tuple(None if why_varies(chunks, n) else chunk for n, chunk in enumerate(chunks))


def generalised(families: Collection[Chunks]) -> dict[Chunks, Chunks]:
    """Return for each family the one that it belongs to when siblings are compared."""
    found = {one: one for one in families}
    changed = True
    while changed:
        changed = False
        wider: dict[Chunks, Chunks] = {}
        groups: dict[tuple[Chunks, Chunks], set[str | None]] = {}
        current = set(found.values())
        for one in current:
            for n in range(len(one)):
                groups.setdefault((one[:n], one[n + 1 :]), set()).add(one[n])
        for one in sorted(current, key=_order):
            for n in range(len(one)):
                siblings = groups[one[:n], one[n + 1 :]]
                if one[n] is not None and len(siblings) >= _needed(one, n):
                    wider[one] = (*one[:n], None, *one[n + 1 :])
                    break
        if wider:
            changed = True
            found = {one: wider.get(now, now) for one, now in found.items()}
    return found


def _needed(family: Chunks, place: int) -> int:
    """Return how many siblings show that a chunk varies."""
    if place == len(family) - 1:
        return LAST_SIBLINGS
    if place == 0:
        return FIRST_SIBLINGS
    # A chunk before one that varies names what varies: `robot` in `robot/7`.
    return FIRST_SIBLINGS if family[place + 1] is None else INNER_SIBLINGS


def _order(family: Chunks) -> tuple[str, ...]:
    return tuple("" if chunk is None else chunk for chunk in family)


def format_of(family: Chunks) -> str:
    """Return the format of the keys of a family: `robot/${id:*}/battery`."""
    names = iter(_part_names(family))
    return "/".join(f"${{{next(names)}:*}}" if chunk is None else chunk for chunk in family)


def _part_names(family: Chunks) -> list[str]:
    """Return the names of the columns of the chunks that vary, from left to right."""
    places = [n for n, chunk in enumerate(family) if chunk is None]
    if len(places) == 1:
        return ["id"]
    taken = {name.lower() for name in RESERVED}
    names: list[str] = []
    for number, place in enumerate(places, 1):
        before = family[place - 1] if place else None
        plain = f"part{number}" if before is None else _NAME.sub("_", before.lower()).strip("_")
        name = column_name(plain or f"part{number}")
        if name in taken:
            name = f"{name}_{number}"
        taken.add(name)
        names.append(name)
    return names


def table_name(family: Chunks, taken: Collection[str]) -> str:
    """Return a free name for the table of a family; the last chunk that does not vary decides."""
    words = [plain for chunk in family if chunk and (plain := _plain_name(chunk))]
    name = words[-1]
    for word in reversed(words[:-1]):
        if name not in taken and name not in FIXED and name not in _SQL_WORDS:
            break
        name = f"{word}_{name}"[:56]
    if name in FIXED or name in _SQL_WORDS:
        name = f"table_{name}"
    free, number = name, 2
    while free in taken:
        free = f"{name}_{number}"
        number += 1
    return free


def _plain_name(chunk: str) -> str:
    plain = _NAME.sub("_", chunk.lower()).strip("_")[:56]
    return plain if not plain or plain[0].isalpha() else f"n{plain}"


def why_wild(key: str) -> str:
    """Return why a key gets no table whatever comes beside it; empty if it may get one."""
    chunks = key.split("/")
    if len(key) > LONGEST_KEY or len(chunks) > MOST_CHUNKS:
        return f"keys of more than {MOST_CHUNKS} chunks or {LONGEST_KEY} characters"
    if "*" in key or any(chunk.startswith("@") for chunk in chunks):
        return "keys with wildcards or verbatim chunks"
    if not any(chunk and _plain_name(chunk) for chunk in family_of(key)):
        return "keys of which every chunk varies"
    return ""


@final
class FamilyFinder:
    """Finds families among keys that have no table."""

    def __init__(self, formats: Iterable[str] = ()) -> None:
        """`formats`: of the families that there are."""
        self._families: set[Chunks] = {chunks for one in formats if (chunks := chunks_of(one))}
        self._pending: dict[str, _Pending] = {}
        self._refused: dict[str, dict[str, None]] = {}
        self._credit = float(TABLES_AT_ONCE)
        self._credited: float | None = None
        self.made = len(self._families)
        """How many tables were made by themselves."""

    def observe(self, keys: Iterable[str], since: Positions, now: float) -> None:
        """Take keys that have no table; `since`: the positions from which on they are read."""
        for key in keys:
            if key.split("/", 1)[0] in _PUBLISHED:
                continue
            if key in self._pending:
                continue
            self._forgive(key)
            if why := why_wild(key):
                self.refuse(key, why)
            elif len(self._pending) >= MOST_PENDING:
                self.refuse(key, f"more than {MOST_PENDING:,} new keys at once")
            else:
                self._pending[key] = _Pending(family_of(key), now, since)

    def refuse(self, key: str, reason: str) -> None:
        """Note that a key gets no table."""
        known = self._refused.setdefault(reason, {})
        if key in known:
            return
        if len(known) < MOST_REFUSED:
            known[key] = None

    def forgive(self, has_table: Callable[[str], bool]) -> None:
        """Forget the refusals of keys that have a table now."""
        for key in [key for keys in self._refused.values() for key in keys if has_table(key)]:
            self._forgive(key)

    def _forgive(self, key: str) -> None:
        for reason, known in list(self._refused.items()):
            if key in known:
                del known[key]
                if not known:
                    del self._refused[reason]

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The keys that get no table, by reason."""
        return tuple(
            Refusal(reason, len(keys), tuple(islice(keys, MOST_EXAMPLES)))
            for reason, keys in sorted(self._refused.items())
        )

    @property
    def refused(self) -> dict[str, tuple[str, ...]]:
        """The keys that are remembered, by the reason why they get no table."""
        return {reason: tuple(keys) for reason, keys in sorted(self._refused.items())}

    @property
    def pending(self) -> Mapping[str, Positions]:
        """The keys that wait, and where each came first."""
        return {key: one.since for key, one in self._pending.items()}

    def due_at(self) -> float | None:
        """Return when the next family may be found; None while no key waits."""
        if not self._pending or self.made >= MOST_TABLES:
            return None
        return min(one.seen for one in self._pending.values()) + SETTLE_SECONDS

    def find(self, taken: Collection[str], now: float, *, all: bool = False) -> list[KeyFamily]:
        """Return the families that are due, each with a free name; `all`: wait for nothing.

        `taken`: names of tables that there are.
        """
        if not self._pending:
            return []
        self._refill(now)
        wider = generalised({*self._families, *(one.chunks for one in self._pending.values())})
        members: dict[Chunks, list[str]] = {}
        for key, one in self._pending.items():
            members.setdefault(wider[one.chunks], []).append(key)
        found: list[KeyFamily] = []
        names = set(taken)
        for chunks in sorted(members, key=_order):
            keys = members[chunks]
            if chunks in self._families:  # its table reads them already
                for key in keys:
                    del self._pending[key]
                continue
            first = min(self._pending[key].seen for key in keys)
            if not all and first + SETTLE_SECONDS > now:
                continue
            if self.made >= MOST_TABLES:
                self._drop(keys, f"more than {MOST_TABLES} tables; `tables` names those wanted")
                continue
            if self._credit < 1 and not all:
                break
            name = table_name(chunks, names)
            try:
                form = format_of(chunks)
                fits = all_match(form, keys)
            except KeyExprError:
                fits = False
            if not fits:
                self._drop(keys, "keys that no format describes")
                continue
            since = earliest([self._pending[key].since for key in keys])
            found.append(KeyFamily(name, form, tuple(sorted(keys)[:MOST_EXAMPLES]), since))
            names.add(name)
            self._families.add(chunks)
            self.made += 1
            self._credit -= 1
            for key in keys:
                del self._pending[key]
        return found

    def _drop(self, keys: Iterable[str], reason: str) -> None:
        for key in keys:
            self.refuse(key, reason)
            del self._pending[key]

    def _refill(self, now: float) -> None:
        before = now if self._credited is None else self._credited
        more = max(0.0, now - before) * TABLES_A_MINUTE / 60.0
        self._credit = min(float(TABLES_AT_ONCE), self._credit + more)
        self._credited = now


def all_match(form: str, keys: Iterable[str]) -> bool:
    """Return True if a format describes each of the keys."""
    known = KeyFormat(form)
    return all(known.matches(key) for key in keys)


def earliest(positions: Iterable[Positions]) -> dict[str, int]:
    """Return the least offset of each partition."""
    least: dict[str, int] = {}
    for one in positions:
        for name, at in one.items():
            least[name] = min(at, least.get(name, at))
    return least


def chunks_of(form: str) -> Chunks | None:
    """Return the chunks of a format; None if a part of it may be several chunks."""
    chunks: list[str | None] = []
    for chunk in form.split("/"):
        if "**" in chunk or ("$" in chunk and not chunk.endswith(":*}")):
            return None
        chunks.append(None if chunk.startswith("${") else chunk)
    return tuple(chunks)
