"""What the properties of a table say of its rows on the bus.

"zenlake.publish": "fleet/${id}/energy"        the key of a row: columns stand in ${…}
"zenlake.publish.columns": "energy, at"        what the JSON of a row has; all columns otherwise
"zenlake.publish.value": "payload"             or one column of text or bytes, as it is
"zenlake.publish.encoding": "image/png"        and what that is
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from zenlake.config.nearest import nearest
from zenlake.errors import EncodingError, KeyExprError
from zenlake.keys import KeyExpr
from zenlake.lake.continuous.publishing import JSON
from zenlake.lake.model.json_values import plain
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.values import Encoding

if TYPE_CHECKING:
    from pyspark.pipelines.output import MaterializedView, StreamingTable
    from pyspark.sql.types import DataType

__all__ = ["RowRefused", "TablePublication", "publication_of"]

PUBLISH: Final = "zenlake.publish"
COLUMNS: Final = f"{PUBLISH}.columns"
VALUE: Final = f"{PUBLISH}.value"
ENCODING: Final = f"{PUBLISH}.encoding"
_PROPERTIES: Final = (PUBLISH, COLUMNS, VALUE, ENCODING)

_PART: Final = re.compile(r"\$\{([^}]*)\}")
_IN_KEYS: Final = (
    StringType, BooleanType, ByteType, ShortType, IntegerType, LongType, DecimalType, DateType,
    TimestampType, TimestampNTZType,
)  # fmt: skip
"""Types of columns that a key can be made of: those with one way to write each value."""
_NOT_IN_CHUNKS: Final = frozenset("/*$?#")


class RowRefused(Exception):
    """A row that has no key or no value; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class TablePublication:
    """How the rows of a table are put on the bus."""

    #: The key with columns as `${name}`.
    template: str
    #: The columns of the JSON of a row.
    columns: tuple[str, ...]
    #: The column whose text or bytes are the value; empty: the value is JSON.
    value: str
    encoding: str

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that keys are made of."""
        return tuple(dict.fromkeys(_PART.findall(self.template)))

    def key(self, row: Mapping[str, Any]) -> str:
        """Return the key of a row; raises `RowRefused` if a value can be no part of a key."""
        at_start = {found[1]: _begins_chunk(found) for found in _PART.finditer(self.template)}
        texts = {name: _chunk(name, row[name], at_start[name]) for name in at_start}
        return _PART.sub(lambda found: texts[found[1]], self.template)

    def payload(self, row: Mapping[str, Any]) -> str | bytes:
        """Return the value of a row; raises `RowRefused` if there is none."""
        if not self.value:
            document = {name: plain(row[name]) for name in self.columns}
            return json.dumps(document, ensure_ascii=False)
        found: str | bytes | None = row[self.value]
        if found is None:
            raise RowRefused(f"the column '{self.value}', which is the value, is null")
        return found


def publication_of(
    output: StreamingTable | MaterializedView, schema: StructType
) -> TablePublication | None:
    """Return how a table is published, or None; raises `PipelineError` if that cannot be."""
    at = output.source_code_location
    told = {
        name: str(value)
        for name, value in output.table_properties.items()
        if name.startswith(PUBLISH)
    }
    for name in told:
        if name not in _PROPERTIES:
            raise PipelineError(
                f"'{output.name}' has the property '{name}'; did you mean "
                f"'{nearest(name, _PROPERTIES) or PUBLISH}'?",
                at,
            )
    if not told:
        return None
    kinds = {one.name: one.dataType for one in schema.fields}

    def demand_column(name: str, told_by: str) -> DataType:
        if name not in kinds:
            meant = nearest(name, kinds)
            hint = f"; did you mean '{meant}'?" if meant else f"; it has {', '.join(kinds)}"
            raise PipelineError(f"{told_by}: '{output.name}' has no column '{name}'{hint}", at)
        return kinds[name]

    template = told.get(PUBLISH)
    if template is None:
        raise PipelineError(f"{', '.join(told)} without {PUBLISH}: the key", at)
    for name in _PART.findall(template):
        kind = demand_column(name, PUBLISH)
        if not isinstance(kind, _IN_KEYS):
            raise PipelineError(
                f"{PUBLISH}: the column '{name}' is {kind.simpleString()}: no key is made of such; "
                "add a column with a text of it",
                at,
            )
    _demand_key(template, at)
    value, columns = told.get(VALUE, ""), told.get(COLUMNS, "")
    if value and columns:
        raise PipelineError(f"write {VALUE} or {COLUMNS}, not both", at)
    if value and not isinstance(demand_column(value, VALUE), StringType | BinaryType):
        raise PipelineError(
            f"{VALUE}: the column '{value}' is {kinds[value].simpleString()}; it must be string or "
            "binary. Without this property a row is published as JSON",
            at,
        )
    chosen = tuple(name.strip() for name in columns.split(",") if name.strip()) or tuple(kinds)
    for name in chosen:
        demand_column(name, COLUMNS)
    encoding = told.get(ENCODING, "")
    if encoding and not value:
        raise PipelineError(f"{ENCODING} goes with {VALUE}; JSON is {JSON}", at)
    try:
        Encoding(encoding)
    except EncodingError as error:
        raise PipelineError(f"{ENCODING}: {error}", at) from error
    if value and not encoding:
        encoding = "text/plain" if isinstance(kinds[value], StringType) else "zenoh/bytes"
    return TablePublication(template, chosen, value, encoding or JSON)


def _demand_key(template: str, at: Any) -> None:
    """Raise `PipelineError` unless the template makes keys of ordinary values."""
    # A number is legal in any chunk, so that what is left is to blame.
    tried = _PART.sub("1", template)
    wild = next((sign for sign in "*$?#" if sign in tried), "")
    try:
        KeyExpr(tried)
    except KeyExprError as error:
        raise PipelineError(f"{PUBLISH}: '{template}' makes no keys: {error}", at) from error
    if wild:
        raise PipelineError(
            f"{PUBLISH}: '{template}' has '{wild}'; a row is put under one key, whose parts are "
            "texts and ${column}",
            at,
        )


def _begins_chunk(found: re.Match[str]) -> bool:
    return found.start() == 0 or found.string[found.start() - 1] == "/"


def _chunk(name: str, value: Any, begins: bool) -> str:
    """Return a value as a part of a key; raises `RowRefused` if it cannot be."""
    if value is None:
        raise RowRefused(f"the column '{name}' is null, and a key needs it")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    text = str(value)
    if not isinstance(value, int | Decimal) and (
        not text
        or not _NOT_IN_CHUNKS.isdisjoint(text)
        or not text.isprintable()
        or (begins and text.startswith("@"))
    ):
        raise RowRefused(f"the column '{name}' is {text[:80]!r}, which can be no part of a key")
    return text
