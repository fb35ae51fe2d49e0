"""The column `json` of `samples` and `latest`: a payload as a VARIANT, parsed when it is asked for.

    SELECT key, json:percent::double FROM latest

The column is in no file. A question that names it finds it in the views that are made for the
question, so that no other question pays for it. It holds objects and arrays: of `application/json`
and `text/json`, of payloads without an encoding that are one (`expr/record.implied_value`), and of
CBOR and MessagePack, as texts of JSON (`decode/document_text`). All other payloads have null there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.lake.decode.document_text import DOCUMENT_TEXT, MOST_BYTES
from zenlake.values.encoding import CUSTOM_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "CUSTOM",
    "DOCUMENT",
    "ENCODING_NAME",
    "MEANING",
    "TYPE",
    "columns_in_sql",
    "has_document",
    "is_document_named",
    "with_document",
    "with_documents_as_text",
]

DOCUMENT: Final = "json"
TABLES: Final = frozenset({"samples", "latest"})
TYPE: Final = "variant"
MEANING: Final = (
    "the payload as a VARIANT if it is an object or array of JSON, CBOR or MessagePack, else null; "
    "only in SQL, and not in `*` unless the question names it"
)
_ENCODINGS: Final = ("application/json", "text/json", "zenoh/bytes", "")
"""Encodings of payloads that are looked at; a payload without one is recorded as `zenoh/bytes`."""
CUSTOM: Final = f"unknown({CUSTOM_ID});"
"""What stands before the text of a custom encoding that has the name of another one."""
ENCODING_NAME: Final = (
    f"substring_index(if(startswith(encoding, '{CUSTOM}'), substr(encoding, {len(CUSTOM) + 1}), "
    "encoding), ';', 1)"
)
"""In SQL, the name of a recorded encoding: without its schema, and without the number of a custom
encoding (`recorded/encoding.without_custom_id`)."""
_TEXT: Final = "cast(value AS string)"
_EXPRESSION: Final = f"""
    CASE WHEN {ENCODING_NAME} IN ({", ".join(f"'{name}'" for name in _ENCODINGS)})
        AND octet_length(value) <= {MOST_BYTES}
        AND left(trim(LEADING ' \\t\\r\\n' FROM {_TEXT}), 1) IN ('{{', '[')
        AND json_array_length(concat('[', {_TEXT}, ',0]')) = 2
    THEN try_parse_json(try_validate_utf8({_TEXT})) END
"""
# Spark's parser of VARIANT stops at the end of the first value and ignores what follows it, such
# as further lines of JSON; so the values of the text are counted, with one behind them.
_WORD: Final = re.compile(rf"\b{DOCUMENT}\b", re.IGNORECASE)
_WITHOUT_ALIASES: Final = frozenset({"where", "joins", "from", "from_", "laterals"})
"""Clauses of a SELECT in which its aliases are not known."""


def has_document(table: str, columns: Iterable[str]) -> bool:
    """Return True if a table with these columns of its own has the column `json` beside them."""
    return table in TABLES and DOCUMENT not in columns


def columns_in_sql(table: str, schema: pa.Schema) -> dict[str, str]:
    """Return the columns that a question can name in a table, with their types."""
    columns = {field.name: str(field.type) for field in schema}
    return columns | {DOCUMENT: TYPE} if has_document(table, columns) else columns


def is_document_named(
    query: str, trees: Iterable[Any], schemas: Mapping[str, Iterable[str]]
) -> bool:
    """Return True if a question reads the column `json` of `samples` or `latest`.

    Args:
        query: The text of the question.
        trees: Its statements as sqlglot reads them; none if sqlglot cannot.
        schemas: The columns that the tables of the question have of their own.
    """
    from sqlglot import exp

    if not any(has_document(table, columns) for table, columns in schemas.items()):
        return False
    parsed = list(trees)
    if not parsed:
        return _WORD.search(query) is not None
    elsewhere = any(DOCUMENT in columns for columns in schemas.values())
    return any(
        bool(column.table) or not (elsewhere or _is_alias(column))
        for tree in parsed
        for column in tree.find_all(exp.Column)
        if column.name.lower() == DOCUMENT
    )


def _is_alias(column: Any) -> bool:
    """Return True if a name without a table is that of an alias of its own SELECT."""
    from sqlglot import exp

    select = column.find_ancestor(exp.Select)
    if select is None:
        return False
    part = column
    while part.parent is not select:
        if _aliased(part):
            return False  # the alias is made of the column
        part = part.parent
    if part.arg_key in _WITHOUT_ALIASES or _aliased(part):
        return False
    return any(_aliased(one) for one in select.expressions)


def _aliased(part: Any) -> bool:
    from sqlglot import exp

    return isinstance(part, exp.Alias) and part.alias.lower() == DOCUMENT


def with_document(rows: DataFrame) -> DataFrame:
    """Return the rows of `samples` or `latest` with the column `json`.

    They may have a column `document_text`, which is taken away.
    """
    from pyspark.sql.functions import expr

    if DOCUMENT_TEXT not in rows.columns:
        return rows.withColumn(DOCUMENT, expr(_EXPRESSION))
    parsed = f"coalesce(try_parse_json({DOCUMENT_TEXT}), {_EXPRESSION})"
    return rows.withColumn(DOCUMENT, expr(parsed)).drop(DOCUMENT_TEXT)


def with_documents_as_text(answer: DataFrame) -> DataFrame:
    """Return an answer whose columns with a VARIANT are JSON texts: Arrow has no such type."""
    from pyspark.sql.functions import col, to_json

    fields = answer.schema.fields
    if not any(_is_variant(field.dataType) for field in fields):
        return answer
    # By places: two columns of an answer may have one name.
    places = [f"c{place}" for place in range(len(fields))]
    texts = [
        to_json(col(place), {"ignoreNullFields": "false"}) if _is_variant(field.dataType) else place
        for place, field in zip(places, fields, strict=True)
    ]
    return answer.toDF(*places).select(*texts).toDF(*(field.name for field in fields))


def _is_variant(kind: Any) -> bool:
    """Return True if a type is VARIANT, or has one inside of it."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, ArrayType):
        return _is_variant(kind.elementType)
    if isinstance(kind, MapType):
        return _is_variant(kind.keyType) or _is_variant(kind.valueType)
    if isinstance(kind, StructType):
        return any(_is_variant(field.dataType) for field in kind.fields)
    return isinstance(kind, VariantType)
