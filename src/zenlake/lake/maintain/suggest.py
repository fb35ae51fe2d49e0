"""What tables the keys of a lake make by themselves, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from zenlake.keys import KeyFormat
from zenlake.lake.decode.key_router import KeyRouter
from zenlake.lake.decode.typed_rows import is_readable
from zenlake.lake.maintain.rebuild import known_tables
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.key_families import FamilyFinder, Refusal, why_varies
from zenlake.lake.table.data_files import read_table
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation
from zenlake.ros2.names import parse_key

__all__ = ["Suggestion", "Suggestions", "keys_of", "readable_keys", "suggest"]

MOST_KEYS: Final = 100_000
MOST_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A table, and the keys that it has or would have."""

    name: str
    format: str
    made: bool
    """The lake has this table."""
    keys: int
    examples: tuple[str, ...]
    why: tuple[str, ...]
    """Why each chunk varies that does, as far as the first key shows."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The tables of the keys, and the keys that get none."""

    tables: tuple[Suggestion, ...]
    without: tuple[Refusal, ...]


def keys_of(place: LakeLocation) -> list[str]:
    """Return the keys that a lake has had values of, in the order of letters, in bounds."""
    found: set[str] = set()
    for name in ("latest", "samples"):
        table = Table.open(place, name)
        if table is None:
            continue
        for file in table.files():
            column = read_table(table.place, file.path, table.file_schema, ["key"])["key"]
            found.update(pc.unique(column).to_pylist())
            if len(found) >= MOST_KEYS:
                break
    return sorted(found)[:MOST_KEYS]


def readable_keys(place: LakeLocation) -> list[str]:
    """Return the keys whose newest values have fields, in bounds."""
    table = Table.open(place, "latest")
    found: set[str] = set()
    if table is None:
        return []
    for file in table.files():
        wanted = ["key", "value", "encoding"]
        rows = read_table(table.place, file.path, table.file_schema, wanted)
        for key, value, encoding in zip(*(column.to_pylist() for column in rows), strict=True):
            if len(found) < MOST_KEYS and is_readable(value, encoding):
                found.add(key)
    return sorted(found)


def suggest(place: LakeLocation, config: LakeConfig, keys: Iterable[str]) -> Suggestions:
    """Return the tables of keys: those that there are, and those that would be made of the rest."""
    specs = known_tables(place, config)
    router = KeyRouter(specs.values())
    members: dict[str, list[str]] = {}
    rest: list[str] = []
    for key in keys:
        names = router.tables_of(key)
        if not names and (parse_key(key) is None):
            rest.append(key)
        for name in names:
            members.setdefault(name, []).append(key)
    finder = FamilyFinder(one.format for one in specs.values() if not one.ros2)
    finder.observe(rest, {}, 0.0)
    families = finder.find({*specs, *place.folders()}, 0.0, all=True)
    made = [
        _suggestion(name, spec.format, True, members.get(name, []))
        for name, spec in sorted(specs.items())
        if not spec.ros2
    ]
    for one in families:
        form = KeyFormat(one.format)
        mine = [key for key in rest if form.matches(key)]
        made.append(_suggestion(one.name, one.format, False, mine))
    return Suggestions(tuple(made), finder.refusals)


def _suggestion(name: str, form: str, made: bool, keys: list[str]) -> Suggestion:
    why: list[str] = []
    chunks = keys[0].split("/") if keys else []
    for place, part in enumerate(form.split("/")):
        if part.startswith("${") and place < len(chunks):
            reason = why_varies(chunks, place) or "other names stand there, too"
            why.append(f"{part[2:].partition(':')[0].rstrip('}')}: {chunks[place]}, {reason}")
    return Suggestion(name, form, made, len(keys), tuple(keys[:MOST_EXAMPLES]), tuple(why))
