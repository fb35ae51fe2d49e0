"""JSON that is read in columns becomes the rows that it becomes one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.lake.rowsof import Row, batch
from zenlake.lake.decode import json_columns, typed_rows
from zenlake.lake.decode.json_columns import JsonColumns
from zenlake.lake.decode.typed_rows import TypedRows
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.model.typed_table import Columns, TypedTable

POSE = TypedTable("pose", "robot/${id:*}/pose", rename={"old": "n"}, drop=frozenset(["gone"]))
JSON, TEXT, NO_ENCODING = 5, 1, 0

NAMES = st.sampled_from(["x", "X", "n", "old", "gone", "key", "a b", "a_b", "pose", "é", ""])
WHOLE = st.integers(-5, 5) | st.sampled_from([1 << 53, (1 << 53) + 1, -(1 << 62), 1 << 64])
NUMBERS = WHOLE | st.floats(-4, 4) | st.sampled_from([0.0, -0.0, 1e300, 9007199254740993.0])
TEXTS = st.sampled_from(["", "a", "2026-11-17", "2026-11-17T05:00:00Z", "ü", "\ud800", "\0", "1"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
ALIKE = st.fixed_dictionaries(
    {"x": NUMBERS, "name": st.sampled_from(["a", "b"])},
    optional={"pose": st.fixed_dictionaries({"z": st.floats(-2, 2)}), "l": st.lists(NUMBERS)},
)
OBJECTS = st.one_of(ALIKE, ALIKE, st.dictionaries(NAMES, VALUES, max_size=4))
ODD = st.sampled_from(
    [b"", b" ", b"{", b"}", b"{}{}", b'{"x":', b'{"x":1}{"x":2}', b'{"x":1,"x":2}', b"[1]", b"7",
     b'{"x":NaN}', b'{"x":1e999}', b'{"x":01}', b'{"x":"\xff"}', b'{"x":\n1}', b'{"x":1}\r',
     b'{"x":"\\ud800"}', b'{"x":' + b"[" * 300 + b"]" * 300 + b"}", b'\xef\xbb\xbf{"x":1}',
     '{"x":1}'.encode("utf-16"), b'{"x":1}\0', b'{"n":{}\n', b'{"x":[}', b'{"x":"}']
)  # fmt: skip
PAYLOADS = st.one_of(
    *[OBJECTS.map(lambda one: json.dumps(one).encode())] * 6,
    ALIKE.map(lambda one: json.dumps(one, indent=1).encode()),
    ODD,
)
LISTS = st.lists(PAYLOADS, max_size=30)


def rows_for(
    payloads: list[bytes], worth: int, known: Columns, cuts: int, encoding: int = JSON
) -> TypedRows:
    """What a table gets, with payloads in so many pieces."""
    typed = TypedRows(POSE, known)
    before = typed_rows.WORTH
    typed_rows.WORTH = worth  # type: ignore[misc]
    try:
        each = -(-len(payloads) // cuts) or 1
        for start in range(0, len(payloads), each):
            some = payloads[start : start + each]
            rows = [
                Row(
                    f"robot/{n % 2}/pose",
                    payload,
                    float(start + n),
                    encoding=TEXT if payload == b"7" else encoding,
                    kind=int(payload == b" "),
                )
                for n, payload in enumerate(some)
            ]
            typed.add(sample_rows(batch(rows), "j", 0))
    finally:
        typed_rows.WORTH = before  # type: ignore[misc]
    return typed


def told(rows: pa.Table) -> list[Any]:
    """Rows without an order of columns."""
    return [sorted(row.items(), key=str) for row in rows.to_pylist()]


@given(
    LISTS,
    st.sampled_from([{}, {"x": "bigint"}, {"x": "double", "l": "array<bigint>"}, {"x": "string"}]),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([JSON, NO_ENCODING]),
)
@example([b'{"x":1}', b'{"x":{}}', b'{"a":', b'{"b":1}}', b'{"c":1}{"d":2}'], {}, False, 1, JSON)
@example([b'{"old":null,"n":1}'] * 3, {}, False, 1, JSON)
@example([b'{"old":null,"n":1}', b'{"old":{"z":1}}'] * 3, {}, False, 1, JSON)
@example([b'{"x":1}{"x":5}', b'{"x":[', b'{"y":1}]}', b'{"x":3}'], {}, False, 1, JSON)
@example([b'{"x":1,"x":2}', b'{"x":NaN}', b'{"x":"\xff"}', b"7"], {}, False, 1, NO_ENCODING)
def test_it_is_what_one_by_one_makes(
    payloads: list[bytes], kinds: dict[str, str], fixed: bool, cuts: int, encoding: int
) -> None:
    known = Columns(kinds, frozenset(kinds) if fixed else frozenset())
    slow = rows_for(payloads, 1 << 30, known, cuts, encoding)
    blocks = json_columns.BLOCK, json_columns.LEARN
    json_columns.BLOCK, json_columns.LEARN = 6, 3  # type: ignore[misc]
    try:
        fast = rows_for(payloads, 1, known, cuts, encoding)
    finally:
        json_columns.BLOCK, json_columns.LEARN = blocks  # type: ignore[misc]
    assert told(fast.rows()) == told(slow.rows()), payloads
    assert told(fast.quarantine()) == told(slow.quarantine())
    assert fast.new == slow.new
    assert fast.refused == slow.refused


def test_payloads_that_are_alike_are_read_in_columns() -> None:
    payloads = [
        json.dumps({"x": n / 7, "n": n, "at": {"t": f"2026-11-17T00:00:{n % 60:02}"}}).encode()
        for n in range(1000)
    ]
    blocks: list[tuple[int, int, Any]] = []

    def accept(start: int, stop: int, columns: Any) -> bool:
        blocks.append((start, stop, columns))
        return True

    reader = JsonColumns()
    reader.read(pa.array(payloads), accept)
    reader.read(pa.array(payloads), accept)
    assert all(columns is not None for _, _, columns in blocks)
    assert [stop - start for start, stop, _ in blocks] == [256, 744, 1000]
    assert {name: str(values.type) for name, values in blocks[-1][2].items()} == {
        "x": "double",
        "n": "int64",
        "at_t": "string",
    }


@pytest.mark.parametrize("count", [30_000, 400])
def test_names_without_end_are_not_made_columns(count: int) -> None:
    """Each payload may have names of its own; they are left to the way that has a bound."""
    payloads = pa.array(
        [json.dumps({f"n{k}-{n}": k for k in range(100)}) for n in range(count // 100)]
    )
    found: list[Any] = []

    def accept(start: int, stop: int, columns: Any) -> bool:
        found.append(columns)
        return True

    JsonColumns().read(payloads.cast(pa.binary()), accept)
    assert (found[0] is None) == (count > json_columns.MOST_MEMBERS)
