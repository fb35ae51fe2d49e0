"""One sample decoded for people: the fields that its payload would be in a typed table.

    @lake/decode/robot/1/pose       the payload is that of the query, its encoding too

The reply is `{"rows": [{…}], "table": …}`: the row, or rows, that the lake makes of it, by the
table of the key if there is one, else by the encoding, and ROS 2 by the type in the key, or by the
type that a ros2dds bridge told of it. So whoever shows values needs no decoders of its own, and no
definitions of types. What cannot be read is an error reply with the reason that the quarantine
would give.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.errors import LocalError, ZError
from zenlake.expr.record import implied_value
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import JSON, QueryService
from zenlake.lake.decode.arrow_rows import rows_for
from zenlake.lake.decode.key_columns import KeyParts
from zenlake.lake.decode.ros2_tables import DECODER
from zenlake.lake.model.json_values import plain
from zenlake.lake.model.sample_rows import DAY, SAMPLES
from zenlake.lake.model.typed_table import RESERVED, Columns, TypedTable
from zenlake.ros2.names import parse_key

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.lake.decode.ros2_tables import LearntTypes
    from zenlake.values import ZBytes

__all__ = ["ROOT", "SampleDecoder", "decoded", "table_for"]

ROOT: Final = "@lake/decode"
LARGEST: Final = 4 << 20
"""Bytes of a payload that is decoded for a page that shows it."""
MOST_ROWS: Final = 1000
MOST_ITEMS: Final = 200
"""Rows of one sample, and items of one list in it, that are shown."""
MOST_LETTERS: Final = 4000
WAITING: Final = 64
"""Queries that may wait, each with its payload."""


def table_for(
    specs: Iterable[TypedTable], key: str, bridged: tuple[str, str] | None = None
) -> TypedTable | None:
    """The typed table that a key belongs to; `bridged`: what a ros2dds bridge told of the key."""
    for one in specs:
        told = one
        if bridged is not None and one.ros2:
            told = replace(one, type={"bridged": {key: bridged}})
        if KeyParts(told).of(key) is not None:
            return one
    return None


def decoded(
    table: TypedTable, key: str, payload: bytes, encoding: str, attachment: bytes | None = None
) -> list[dict[str, Any]]:
    """The rows that a table makes of one sample; raises `LocalError` with the reason if none."""
    known = {"key": key, "value": payload, "encoding": encoding, "kind": "put"}
    sample = {**known, "attachment": attachment}
    columns = {field.name: pa.array([sample.get(field.name)], field.type) for field in SAMPLES}
    made = rows_for(table, Columns())
    made.add(pa.table(columns, schema=SAMPLES))
    rows = made.rows()
    if not rows.num_rows:
        refused = made.quarantine().to_pylist()
        why = refused[0] if refused else {"reason": "payload", "detail": "there is nothing in it"}
        raise LocalError(f"{why['reason']}: {why['detail']}")
    # What an attachment says, and there is none.
    absent = {n for n in rows.column_names if table.ros2 and rows[n].null_count == len(rows)}
    own = {*RESERVED, *table.chunks, DAY, *absent}
    shown = rows.select([name for name in rows.column_names if name not in own])
    return [
        {name: _short(plain(value)) for name, value in row.items()}
        for row in shown.slice(0, MOST_ROWS).to_pylist()
    ]


def _short(value: object) -> object:
    """A value as JSON has it, and no longer than a person can look at."""
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        return f"{value[:MOST_LETTERS]}… and {len(value) - MOST_LETTERS} more"
    if isinstance(value, list):
        items = [_short(one) for one in value[:MOST_ITEMS]]
        left = len(value) - len(items)
        return [*items, f"… and {left} more"] if left else items
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    return value


def _by_itself(key: str, bridged: bool) -> TypedTable:
    """What a key would be decoded as that no table is for."""
    data = parse_key(key)
    if data is None and not bridged:
        return TypedTable("decoded", key)
    topic = key if data is None else data.topic.strip("/")
    return TypedTable("decoded", topic, decoder=DECODER, ros2=True)


@final
class SampleDecoder:
    """Decodes what is asked, until it is closed."""

    def __init__(
        self, session: Session, types: LearntTypes, specs: Callable[[], Iterable[TypedTable]]
    ) -> None:
        """`specs` gives the typed tables that there are at the time."""
        self._session = session
        self._types = types
        self._specs = specs
        self._service = QueryService("decode", threads=1, most=WAITING)
        self._queryable = session.declare_queryable(f"{ROOT}/**", self._asked)

    def close(self) -> None:
        """Decode no more."""
        self._service.close([self._queryable], self._session)

    def _asked(self, query: Query) -> None:
        """Have a sample decoded; one that is too large does not wait in memory first."""
        try:
            demand_understood(query.parameters, ROOT)
            payload = query.payload
            if payload is None or len(payload) > LARGEST:
                raise LocalError(f"send the payload of a sample, of at most {LARGEST} bytes")
        except ZError as error:
            self._service.refuse(query, error)
        else:
            self._service.later(query, lambda query: self._answer(query, payload))

    def _answer(self, query: Query, payload: ZBytes) -> None:
        key = str(query.key_expr).removeprefix(f"{ROOT}/")
        bridged = self._types.bridged.get(key)
        table = table_for(self._specs(), key, bridged)
        attached = query.attachment
        sample, encoding = payload.to_bytes(), str(query.encoding or "")
        if table is None and bridged is None:
            _demand_readable(key, sample, encoding)
        rows = decoded(
            self._types.with_types(table or _by_itself(key, bridged is not None)),
            key,
            sample,
            encoding,
            None if attached is None else attached.to_bytes(),
        )
        document = {"rows": rows, "table": None if table is None else table.name}
        query.reply(query.key_expr, json.dumps(document), encoding=JSON)


def _demand_readable(key: str, payload: bytes, encoding: str) -> None:
    """Raise `LocalError` for bytes of which nothing says how they are to be read."""
    if parse_key(key) is not None or encoding.partition(";")[0] not in ("", "zenoh/bytes"):
        return
    if isinstance(implied_value(payload), bytes):
        raise LocalError(
            f"no table has '{key}', and nothing says what these bytes are; name their encoding"
        )
