"""What the log of a Delta table demands of programs that read or write it.

A table may use features that other programs turned on. With one that is not understood nothing is
read or written there: rows that a constraint forbids would be committed. deltalake opens most of
these tables all the same. A version with deletion vectors is not read either, for the rows that
they delete would come back: the files are written anew without these (`lake/ingest/deletions`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deltalake import DeltaTable

from zenlake.errors import ZError
from zenlake.lake.table.data_files import read_checkpoint
from zenlake.lake.table.location import LakeLocation

__all__ = [
    "DELETIONS",
    "LOG",
    "TableDemands",
    "UnreadableTable",
    "UnsupportedTable",
    "deletions_refusal_of",
    "demands_in_log",
    "demands_of",
    "refusal_of",
]

LOG: Final = "_delta_log"

READER: Final = 3
WRITER: Final = 7
"""The newest versions of the protocol, in which features have names."""

DELETIONS: Final = "deletionVectors"
VARIANT: Final = "variantType"
_VARIANT_COLUMN: Final = re.compile(r'"(type|elementType|keyType|valueType)"\s*:\s*"variant"')

UNDERSTOOD: Final = frozenset(
    [
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        DELETIONS,
        "generatedColumns",
        "invariants",
        "timestampNtz",
        # delta-rs names it with a change of properties where there are times without a zone.
        VARIANT,
    ]
)
"""Features that a table may name. Most of them are refused where a property or a column uses them;
changes of rows are told to readers of the change data feed as they are to any reader of the log."""

PLAIN: Final = frozenset(["delta.columnMapping.id", "delta.columnMapping.physicalName"])
"""What a column may say of itself without consequence while no columns are mapped."""

CONSTRAINT: Final = "delta.constraints."


class UnreadableTable(ZError):
    """A table of which nothing is read or written; the message says why, and what to do."""


class UnsupportedTable(UnreadableTable):
    """A table with a feature of Delta that is not understood."""


@dataclass(frozen=True, slots=True)
class TableDemands:
    """The protocol of a table, its properties and its columns."""

    reader: int = 1
    writer: int = 2
    features: frozenset[str] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: str = "{}"
    """As the log has it, in JSON."""


def demands_of(table: DeltaTable) -> TableDemands:
    """Return what an open table demands."""
    protocol = table.protocol()
    return TableDemands(
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset([*(protocol.reader_features or ()), *(protocol.writer_features or ())]),
        table.metadata().configuration,
        table.schema().to_json(),
    )


def demands_in_log(place: LakeLocation) -> TableDemands:
    """Return what the log of a table demands that deltalake does not open."""
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    for action in _newest_first(place):
        protocol = protocol or action.get("protocol")
        metadata = metadata or action.get("metaData")
        if protocol and metadata:
            break
    protocol, metadata = protocol or {}, metadata or {}
    features = (protocol.get(f"{kind}Features") or () for kind in ("reader", "writer"))
    return TableDemands(
        protocol.get("minReaderVersion", 1),
        protocol.get("minWriterVersion", 2),
        frozenset(name for names in features for name in names),
        dict(metadata.get("configuration") or ()),
        metadata.get("schemaString", "{}"),
    )


def _newest_first(place: LakeLocation) -> Iterator[dict[str, Any]]:
    """The actions of commits and of the newest checkpoint, as far as they can be read."""
    names = sorted(
        (name for name, _, _ in place.files() if name.startswith(f"{LOG}/")), reverse=True
    )
    for name in names:
        if name.endswith(".json") and name[len(LOG) + 1 : -5].isdecimal():
            for line in place.read(name).splitlines():
                try:
                    action = json.loads(line)
                except ValueError:
                    continue
                if isinstance(action, dict):
                    yield action
    for name in names:
        if name.endswith(".checkpoint.parquet"):
            for column in ("protocol", "metaData"):
                for value in read_checkpoint(place, name, column):
                    if value is not None:
                        yield {column: value}
            return


def refusal_of(name: str, demands: TableDemands) -> str:
    """Return why a table is not read or written, and the way out; empty if it is understood."""
    found = next(_refusals(name, demands), None)
    if found is None:
        return ""
    what, way = found
    return f"table '{name}' {what}, so nothing in it is read or written; {way}"


def deletions_refusal_of(name: str) -> str:
    """Return why a version with deletion vectors is not read or written, and the way out."""
    return (
        f"table '{name}' has deletion vectors, so nothing in it is read or written until its files "
        "are written anew without the deleted rows: a running lake does that within a minute, "
        "`zenlake lake compact` where none runs, and in any table "
        f"`REORG TABLE {name} APPLY (PURGE)`"
    )


def _refusals(name: str, demands: TableDemands) -> Iterator[tuple[str, str]]:
    unknown = demands.features - UNDERSTOOD
    if _VARIANT_COLUMN.search(demands.schema):
        unknown |= {VARIANT}
    for feature in sorted(unknown):
        # Dropping others leaves this one behind, until the versions that had them are gone.
        history = " TRUNCATE HISTORY" if feature == "checkpointProtection" else ""
        yield (
            f"has the Delta feature {feature}, which is not understood",
            f"take it away with `ALTER TABLE {name} DROP FEATURE {feature}{history}`",
        )
    for kind, version, known in (
        ("reader", demands.reader, READER),
        ("writer", demands.writer, WRITER),
    ):
        if version > known:
            yield (
                f"wants a {kind} of Delta's protocol {version}, and {known} is understood",
                "make it again with an older protocol",
            )
    properties = demands.properties
    mode = properties.get("delta.columnMapping.mode", "none").lower()
    if mode != "none":
        yield (
            f"maps columns (delta.columnMapping.mode is '{mode}'), which is not understood",
            f"take it away with `ALTER TABLE {name} DROP FEATURE columnMapping`",
        )
    for key in sorted(properties):
        unset = f"take it away with `ALTER TABLE {name} UNSET TBLPROPERTIES ('{key}')`"
        if key.startswith(CONSTRAINT):
            constraint = key.removeprefix(CONSTRAINT)
            yield (
                f"has the constraint {constraint}, which rows are not checked by",
                f"take it away with `ALTER TABLE {name} DROP CONSTRAINT {constraint}`",
            )
        elif key == "delta.appendOnly" and properties[key].lower() == "true":
            yield "lets no row be removed (delta.appendOnly)", unset
        elif key == "delta.setTransactionRetentionDuration":
            yield f"forgets how far it is ({key})", unset
    for column, said in _told_of_columns(demands.schema):
        if said == "NOT NULL":
            yield (
                f"has a column '{column}' that is NOT NULL, which rows are not checked by",
                f"take it away with `ALTER TABLE {name} ALTER COLUMN {column} DROP NOT NULL`",
            )
        else:
            yield (
                f"has a column '{column}' with {said}, which is not understood",
                f"move its folder away: the table is made again, and `zenlake lake rebuild {name}` "
                "fills a typed one",
            )


def _told_of_columns(schema: str) -> Iterator[tuple[str, str]]:
    """What columns demand, the first of each: what is computed, checked or never null."""
    if '"delta.' not in schema and '"nullable":false' not in schema.replace(" ", ""):
        return
    for one in json.loads(schema).get("fields", ()):
        if not one.get("nullable", True):
            yield one["name"], "NOT NULL"
        for key in sorted(_keys_in(one)):
            if key.startswith("delta.") and key not in PLAIN:
                yield one["name"], key
                break


def _keys_in(node: Any) -> Iterator[str]:
    """The names of all that a column and the fields in it say of themselves."""
    if isinstance(node, dict):
        metadata = node.get("metadata")
        if isinstance(metadata, dict):
            yield from metadata
        for key in ("type", "elementType", "keyType", "valueType", "fields"):
            yield from _keys_in(node.get(key))
    elif isinstance(node, list):
        for one in node:
            yield from _keys_in(one)
