from __future__ import annotations

import json
import math
import pickle
import typing
from pathlib import Path
from types import GenericAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import values
from zenlake.errors import SerializeError
from zenlake.values import (
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    UnsupportedTypeError,
    ZBytes,
    ZDeserializeError,
    z_deserialize,
    z_serialize,
)
from zenlake.values.sized import SizedInt

GOLDEN = Path(__file__).parent.parent / "golden" / "values_serial.json"
CASES = [tuple(case.values()) for case in json.loads(GOLDEN.read_text())["cases"]]
INTS: list[type[SizedInt]] = [
    *(Int8, Int16, Int32, Int64, Int128),
    *(UInt8, UInt16, UInt32, UInt64, UInt128),
]


def limits(kind: type[SizedInt]) -> tuple[int, int]:
    bits = int(kind.__name__.lstrip("UInt"))
    return (
        (0, 2**bits - 1) if kind.__name__[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


@pytest.mark.parametrize(("tp", "text", "wire"), CASES)
def test_bytes_are_those_of_the_other_implementation(tp: str, text: str, wire: str) -> None:
    kind, value = eval(tp, vars(values)), eval(text, vars(values))
    assert z_serialize(value).to_bytes().hex() == wire
    back = z_deserialize(kind, ZBytes(bytes.fromhex(wire)))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("kind", INTS)
def test_a_sized_number_keeps_to_its_width(kind: type[SizedInt]) -> None:
    least, most = limits(kind)
    for number in (least, most):
        assert kind(number) == number
        assert z_deserialize(kind, z_serialize(kind(number))) == number
        assert isinstance(pickle.loads(pickle.dumps(kind(number))), kind)
    for number in (least - 1, most + 1):
        with pytest.raises(SerializeError, match=kind.__name__):
            kind(number)
    with pytest.raises(TypeError):
        kind(1.5)  # type: ignore[arg-type]


def test_a_plain_int_has_32_bits() -> None:
    for value in (2**31, -(2**31) - 1, [1, 2**31]):
        with pytest.raises(SerializeError, match="Int64"):
            z_serialize(value)


def test_a_float_too_large_for_32_bits_becomes_infinite() -> None:
    assert z_serialize(Float32(1e300)).to_bytes().hex() == "0000807f"
    assert z_serialize(Float32(-1e300)).to_bytes().hex() == "000080ff"
    listed = z_serialize([Float32(1e300), Float32(1.0)])
    assert z_deserialize(list[Float32], listed) == [math.inf, 1.0]


@pytest.mark.parametrize(
    "value", [[1, "a"], [1, True], [1, Int32(1)], {"a": 1, "b": "c"}, {1: 1, "a": 1}, {1, "a"}]
)
def test_a_collection_has_items_of_one_type(value: object) -> None:
    with pytest.raises(SerializeError, match="one type"):
        z_serialize(value)


@pytest.mark.parametrize("value", [None, object(), 1j, range(2), memoryview(b"a"), int, [None]])
def test_values_without_a_form_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="use bool, int"):
        z_serialize(value)


@pytest.mark.parametrize(
    "tp",
    [
        None,
        5,
        object,
        memoryview,
        "int",
        [int],
        int | None,
        typing.Any,
        tuple[int, ...],
        list[object],
        set[list[int]],
        frozenset[bytearray],
        set[tuple[int, list[int]]],
        dict[list[int], int],
        dict[tuple[set[int]], int],
    ],
    ids=str,
)
def test_types_without_a_form_are_refused(tp: type[object]) -> None:
    with pytest.raises(UnsupportedTypeError):
        z_deserialize(tp, b"")


@pytest.mark.parametrize("tp", [list, set, frozenset, dict, tuple])
def test_a_bare_collection_is_asked_of_what(tp: type[object]) -> None:
    with pytest.raises(ValueError, match="of what"):
        z_deserialize(tp, b"\0")


def test_spellings_of_typing_are_understood() -> None:
    assert z_deserialize(typing.List[Int8], b"\1a") == [97]  # noqa: UP006
    assert z_deserialize(typing.Dict[str, Int8], b"\1\1ab") == {"a": 98}  # noqa: UP006


def test_any_buffer_is_read() -> None:
    for data in (b"\1\0\0\0", bytearray(b"\1\0\0\0"), memoryview(b"\1\0\0\0"), ZBytes(b"\1\0\0\0")):
        assert z_deserialize(int, data) == 1


def test_long_forms_of_a_length_are_read() -> None:
    assert z_deserialize(str, b"\x81\x00a") == "a"
    assert z_deserialize(str, b"\x81" + b"\x80" * 8 + b"\x00a") == "a"


@pytest.mark.parametrize(
    ("tp", "wire"),
    [
        (int, ""),
        (int, "010000"),
        (int, "0100000000"),
        (bool, "02"),
        (list[bool], "020102"),
        (str, "01ff"),
        (str, "0261"),
        (str, "81"),
        (str, "ff" * 9 + "01"),
        (str, "81" + "80" * 9 + "0061"),
        (bytes, "ff" * 4000),
        (list[Int8], "ffffffffffffffff01"),
        (list[Int128], "02" + "00" * 31),
        (list[list[Int8]], "ffffff7f" + "00" * 64),
        (list[tuple[()]], "ffffffff7f"),
        (set[tuple[()]], "ffffffff7f"),
        (dict[str, int], "ff7f0000"),
        (tuple[int, int], "0100000002"),
        (tuple[()], "00"),
    ],
    ids=str,
)
def test_bytes_that_do_not_hold_the_type_are_refused(tp: type[object], wire: str) -> None:
    with pytest.raises(ZDeserializeError):
        z_deserialize(tp, bytes.fromhex(wire))


def test_empty_tuples_take_no_bytes() -> None:
    assert z_serialize([(), (), ()]).to_bytes() == b"\3"
    assert z_deserialize(list[tuple[()]], b"\3") == [(), (), ()]


def test_a_list_inside_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(SerializeError, match="inside each other"):
        z_serialize(loop)


def test_the_later_of_two_equal_keys_wins() -> None:
    assert z_deserialize(dict[str, Int8], b"\2\1ab\1ac") == {"a": 99}


def scalars() -> dict[object, st.SearchStrategy[object]]:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    table: dict[object, st.SearchStrategy[object]] = {
        bool: st.booleans(),
        int: st.integers(-(2**31), 2**31 - 1),
        float: st.floats(allow_nan=False),
        Float32: st.floats(width=32, allow_nan=False).map(Float32),
        Float64: st.floats(allow_nan=False).map(Float64),
        str: text,
        bytes: st.binary(max_size=9),
        ZBytes: st.binary(max_size=9).map(ZBytes),
    }
    for kind in INTS:
        table[kind] = st.integers(*limits(kind)).map(kind)
    return table


SCALARS = scalars()


@st.composite
def typed(
    draw: st.DrawFn, depth: int = 3, hashable: bool = False
) -> tuple[typing.Any, st.SearchStrategy[typing.Any]]:
    """A type, and values of it."""
    shape = draw(st.sampled_from(["scalar", "list", "set", "frozenset", "dict", "tuple"]))
    if depth == 0 or shape == "scalar" or (hashable and shape in {"list", "set", "dict"}):
        kind = draw(st.sampled_from(list(SCALARS)))
        return kind, SCALARS[kind]
    if shape == "tuple":
        items = draw(st.lists(typed(depth=depth - 1, hashable=hashable), max_size=3))
        return tuple[tuple(kind for kind, _ in items)], st.tuples(*(value for _, value in items))  # type: ignore[misc]
    item, value = draw(typed(depth=depth - 1, hashable=shape != "list"))
    if shape == "list":
        return GenericAlias(list, (item,)), st.lists(value, max_size=4)
    if shape == "set":
        return GenericAlias(set, (item,)), st.sets(value, max_size=4)
    if shape == "frozenset":
        return GenericAlias(frozenset, (item,)), st.frozensets(value, max_size=4)
    other, values = draw(typed(depth=depth - 1))
    return GenericAlias(dict, (item, other)), st.dictionaries(value, values, max_size=4)


@given(st.data())
def test_every_value_of_every_type_comes_back(data: st.DataObject) -> None:
    tp, strategy = data.draw(typed())
    value = data.draw(strategy)
    wire = z_serialize(value)
    assert z_deserialize(tp, wire) == value
    if len(wire):
        with pytest.raises(ZDeserializeError):
            z_deserialize(tp, wire[:-1])
    with pytest.raises(ZDeserializeError):
        z_deserialize(tp, wire + b"\0")


@given(st.data(), st.binary(max_size=40))
def test_hostile_bytes_give_a_value_or_one_error(data: st.DataObject, wire: bytes) -> None:
    tp, _ = data.draw(typed())
    try:
        value = z_deserialize(tp, wire)
    except ZDeserializeError:
        return
    # Lengths in long form and items twice in a set are accepted, and not repeated.
    assert len(z_serialize(value)) <= len(wire)
