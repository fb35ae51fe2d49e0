from __future__ import annotations

import json
import re
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.rowsof import Row, batch
from zenlake.lake.decode.typed_rows import TypedRows
from zenlake.lake.model.decoder import Reason, Undecodable
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.model.typed_table import Columns, TypedTable, settled
from zenlake.lake.model.value_types import fitted, flattened, joined, kind_of

POSE = TypedTable("pose", "robot/${id:*}/${sensor:*}")
JSON = 5
CBOR = 8


def decoded(
    rows: list[Row],
    known: dict[str, str] | None = None,
    table: TypedTable = POSE,
    fixed: tuple[str, ...] = (),
) -> TypedRows:
    typed = TypedRows(table, Columns(known or {}, frozenset(fixed)))
    typed.add(sample_rows(batch(rows), "j", 0))
    return typed


def said(key: str, value: Any, **more: Any) -> Row:
    return Row(key, json.dumps(value).encode(), encoding=JSON, **more)


def test_chunks_and_members_become_columns() -> None:
    typed = decoded([said("robot/7/pose", {"x": 1.5, "at": {"deep": True}, "tags": ["a"]})])
    (row,) = typed.rows().to_pylist()
    assert (row["id"], row["sensor"], row["x"]) == ("7", "pose", 1.5)
    assert (row["at_deep"], row["tags"], row["kind"]) == (True, ["a"], "put")
    assert typed.new == {"x": "double", "at_deep": "boolean", "tags": "array<string>"}
    assert str(row["day"]) == "2023-11-14"


@pytest.mark.parametrize("count", [1, 500], ids=["one by one", "in columns"])
def test_json_of_publishers_without_a_table_of_numbers_is_json(count: int) -> None:
    typed = decoded(
        [Row("robot/7/pose", b'{"x": 1.5}', encoding=65535, schema="application/json")] * count
    )
    assert [row["x"] for row in typed.rows().to_pylist()] == [1.5] * count
    assert typed.quarantine().num_rows == 0


def test_keys_of_another_shape_are_nobodys_business() -> None:
    typed = decoded([said("robot/7", 1), said("other/7/pose", 1)])
    assert typed.rows().num_rows == 0
    assert typed.quarantine().num_rows == 0


def test_a_deletion_is_a_row_without_values() -> None:
    typed = decoded([said("robot/7/pose", {"x": 1}), Row("robot/7/pose", kind=1)])
    assert [row["kind"] for row in typed.rows().to_pylist()] == ["put", "delete"]
    assert [row["x"] for row in typed.rows().to_pylist()] == [1, None]


def test_a_field_that_changes_its_type_goes_to_quarantine_with_bytes_and_reason() -> None:
    typed = decoded(
        [said("robot/7/pose", {"x": "far"}), said("robot/7/pose", {"x": 2.5})], {"x": "double"}
    )
    assert [row["x"] for row in typed.rows().to_pylist()] == [2.5]
    (bad,) = typed.quarantine().to_pylist()
    assert bad["value"] == b'{"x": "far"}'
    assert bad["table"] == "pose"
    assert (bad["reason"], bad["field"]) == ("type", "x")
    assert bad["detail"] == "string 'far' where there was double"
    assert bad["offset"] == 0


def test_a_whole_number_is_a_double_too_and_the_other_way_where_nothing_is_lost() -> None:
    typed = decoded([said("robot/7/pose", {"x": 21, "n": 3.0})], {"x": "double", "n": "bigint"})
    (row,) = typed.rows().to_pylist()
    assert (row["x"], row["n"]) == (21.0, 3)
    assert decoded([said("robot/7/pose", {"n": 3.5})], {"n": "bigint"}, fixed=("n",)).refused == 1
    typed = decoded([said("robot/7/pose", {"x": (1 << 53) + 1})], {"x": "double"})
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["field"]) == ("range", "x")


def test_a_column_of_whole_numbers_becomes_double_at_the_first_fraction() -> None:
    rows = [said("robot/7/pose", {"x": 1}), said("robot/7/pose", {"x": 1.5, "a": [0.5]})]
    typed = decoded(rows, {"x": "bigint", "a": "array<bigint>"})
    assert (typed.refused, typed.new) == (0, {"x": "double", "a": "array<double>"})
    assert [row["x"] for row in typed.rows().to_pylist()] == [1.0, 1.5]


def test_a_new_column_is_double_when_its_batch_has_both() -> None:
    typed = decoded([said("robot/7/pose", {"x": 21}), said("robot/7/pose", {"x": 21.5})])
    assert typed.new == {"x": "double"}
    assert [row["x"] for row in typed.rows().to_pylist()] == [21.0, 21.5]


def test_a_whole_number_that_no_double_holds_keeps_its_column_whole() -> None:
    big = (1 << 53) + 1
    typed = decoded([said("robot/7/pose", {"x": big}), said("robot/7/pose", {"x": 0.5})])
    assert [row["x"] for row in typed.rows().to_pylist()] == [big]
    assert typed.refused == 1


def test_names_that_a_table_has_already_are_told_apart() -> None:
    typed = decoded([said("robot/7/pose", {"id": 3, "time": "noon", "a b": 1})])
    (row,) = typed.rows().to_pylist()
    assert (row["id"], row["payload_id"], row["payload_time"], row["a_b"]) == ("7", 3, "noon", 1)


@pytest.mark.parametrize(
    "value", [{"X": 1, "x": 2}, {"a b": 1, "a_b": 2}, {"p": {"x": 1}, "p_x": 2}]
)
def test_two_fields_for_one_column_go_to_quarantine(value: dict[str, object]) -> None:
    assert decoded([said("robot/7/pose", value)]).refused == 1


def test_case_alone_makes_no_new_column() -> None:
    typed = decoded([said("robot/7/pose", {"X": 1.5})], {"x": "double"})
    assert typed.rows().to_pylist()[0]["x"] == 1.5
    assert typed.new == {}


def test_an_encoding_that_nobody_reads_goes_to_quarantine() -> None:
    typed = decoded([Row("robot/7/camera", b"\x80\x04N.", encoding=12)])
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["field"]) == ("encoding", None)
    assert "application/python-serialized-object" in bad["detail"]


def test_the_configured_encoding_wins() -> None:
    table = TypedTable("pose", "robot/${id:*}/${sensor:*}", encoding="application/json")
    typed = decoded([Row("robot/7/pose", b'{"x": 1}')], table=table)
    assert typed.rows().to_pylist()[0]["x"] == 1


class Broken:
    encodings = ("text/csv",)

    def decode(self, payload: bytes, schema: str, type: object) -> dict[str, object]:
        raise ZeroDivisionError("oops")


def test_a_decoder_that_breaks_costs_one_row_and_not_the_stream() -> None:
    table = TypedTable("pose", "robot/${id:*}/${sensor:*}", decoder=f"{__name__}:Broken")
    typed = decoded([Row("robot/7/pose", b"1")], table=table)
    (bad,) = typed.quarantine().to_pylist()
    assert bad["reason"] == "decoder"
    assert "ZeroDivisionError: oops" in bad["detail"]


def test_too_many_columns_go_to_quarantine() -> None:
    many = {f"c{n}": n for n in range(1001)}
    assert decoded([said("robot/7/pose", many)]).refused == 1
    known = {f"c{n}": "bigint" for n in range(1000)}
    typed = decoded([said("robot/7/pose", {"one": 1}), said("robot/7/pose", {"c1": 1})], known)
    assert (typed.refused, typed.rows().num_rows) == (1, 1)


payloads = st.one_of(
    st.binary(max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["x", "X", "y", "key", "p"]), inner, max_size=3)
        ),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)


@given(st.lists(payloads, max_size=12))
def test_every_sample_is_in_the_table_or_in_quarantine_once(told: list[bytes]) -> None:
    rows = [Row("robot/7/pose", value, encoding=JSON) for value in told]
    typed = decoded(rows) if rows else TypedRows(POSE, Columns())
    kept = typed.rows()["offset"].to_pylist()
    refused = typed.quarantine()["offset"].to_pylist()
    assert set(typed.quarantine()["reason"].to_pylist()) <= {str(reason) for reason in Reason}
    assert sorted(kept + refused) == list(range(len(told)))


@given(st.lists(payloads, min_size=2, max_size=12), st.integers(1, 11))
def test_tasks_that_decode_again_with_the_agreed_columns_agree(told: list[bytes], cut: int) -> None:
    parts = [p for p in (told[:cut], told[cut:]) if p]
    known: dict[str, str] = {}
    runs = [decoded([Row("robot/7/pose", v, encoding=JSON) for v in p]) for p in parts]
    for _ in range(20):
        known, again = settled(Columns(known), [run.new for run in runs])
        if not again:
            break
        for n in again:
            rows = [Row("robot/7/pose", v, encoding=JSON) for v in parts[n]]
            runs[n] = decoded(rows, known)
    assert not again
    for run in runs:
        for name, kind in run.new.items():
            assert known[name] == kind


def test_the_first_proposal_decides_and_doubles_win_over_whole_numbers() -> None:
    columns, again = settled(
        Columns(), [{"x": "bigint"}, {"x": "double", "y": "string"}, {"Y": "string"}]
    )
    assert columns == {"x": "double", "y": "string"}
    assert again == [0, 2]
    columns, again = settled(Columns({"x": "bigint"}), [{}, {"z": "boolean"}, {"z": "string"}])
    assert columns == {"x": "bigint", "z": "boolean"}
    assert again == [2]
    columns, again = settled(Columns({"x": "bigint"}), [{}, {"x": "double"}])
    assert (columns, again) == ({"x": "double"}, [0])
    columns, again = settled(Columns({"x": "bigint"}, frozenset("x")), [{}, {"y": "double"}])
    assert (columns, again) == ({"x": "bigint", "y": "double"}, [])


def test_kinds_of_values() -> None:
    assert kind_of([]) is None
    assert kind_of([1, 2.5]) == "array<double>"
    assert kind_of(b"") == "binary"
    assert joined("array<bigint>", "array<double>") == "array<double>"
    assert fitted([1], "array<double>") == [1.0]
    with pytest.raises(Undecodable):
        kind_of(1 << 63)
    with pytest.raises(Undecodable):
        kind_of(object())
    with pytest.raises(Undecodable):
        fitted("x", "array<string>")


def test_lists_that_no_column_holds_become_text() -> None:
    told = flattened({"a": [{"x": 1}], "b": [1, "x"], "c": [[1], [2]]})
    assert told == {"a": '[{"x": 1}]', "b": '[1, "x"]', "c": "[[1], [2]]"}


def test_half_a_surrogate_pair_costs_its_own_row() -> None:
    half = Row("robot/7/pose", b'{"x": "\\ud800"}', encoding=JSON)
    deep = Row("robot/7/pose", b'{"x": [["\\ud800"]]}', encoding=JSON)
    name = Row("robot/7/pose", b'{"\\ud800": 1, "x": "ok"}', encoding=JSON)
    typed = decoded([half, said("robot/7/pose", {"x": "fine"}), deep, name])
    assert [row["x"] for row in typed.rows().to_pylist()] == ["fine", "ok"]
    first, second = typed.quarantine().to_pylist()
    assert (first["reason"], first["field"], first["value"]) == ("text", "x", half.value)
    assert first["detail"] == "'\\ud800' is not Unicode text"
    assert second["reason"] == "text"


def test_a_value_that_a_column_does_not_take_costs_its_row_and_not_the_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zenlake.lake.model.value_types._SURROGATE", re.compile("never"))
    half = Row("robot/7/pose", b'{"x": "\\ud800"}', encoding=JSON)
    typed = decoded([said("robot/7/pose", {"x": "a"}), half, said("robot/7/pose", {"x": "b"})])
    (bad,) = typed.quarantine().to_pylist()
    assert (bad["reason"], bad["field"], bad["offset"]) == ("column", "x", 1)
    assert [(row["offset"], row["x"]) for row in typed.rows().to_pylist()] == [(0, "a"), (2, "b")]


def test_cbor_that_repeats_itself_without_end_costs_its_row() -> None:
    # Each list holds the one before ten times, by reference (tags 28 and 29).
    laughs: Any = ["ha"] * 10
    for _ in range(9):
        laughs = [laughs] * 10
    payload = cbor2.dumps({"x": laughs}, value_sharing=True)
    typed = decoded([Row("robot/7/pose", payload, encoding=CBOR)])
    (bad,) = typed.quarantine().to_pylist()
    assert "more than 100,000 values" in bad["detail"]
