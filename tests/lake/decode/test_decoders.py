from __future__ import annotations

import json
from pathlib import Path

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import ConfigError
from zenlake.expr.record import number_of
from zenlake.lake.decode.formats.cbor import Cbor
from zenlake.lake.decode.formats.implied import Implied
from zenlake.lake.decode.formats.json_text import Json
from zenlake.lake.decode.formats.plain import Plain
from zenlake.lake.decode.formats.properties import Properties
from zenlake.lake.decode.formats.serialized import Serialized, python_type
from zenlake.lake.decode.registry import decoder_for, decoder_named
from zenlake.lake.model.decoder import Undecodable
from zenlake.values import Float32, Int64, UInt8, z_serialize

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)
documents = objects | st.lists(st.integers(), max_size=3)


@given(objects)
def test_members_of_json_are_fields(told: dict[str, object]) -> None:
    assert Json().decode(json.dumps(told).encode(), "", None) == told


@given(objects)
def test_entries_of_cbor_are_fields(told: dict[str, object]) -> None:
    assert Cbor().decode(cbor2.dumps(told), "", None) == told


@given(st.binary(max_size=40))
def test_whatever_bytes_come_a_decoder_reads_or_refuses_them(payload: bytes) -> None:
    for decoder, type in (
        (Json(), None),
        (Cbor(), None),
        (Properties(), None),
        (Plain(), None),
        (Serialized(), {"x": "float64", "names": "list<string>"}),
    ):
        try:
            fields = decoder.decode(payload, "", type)
        except Undecodable:
            continue
        assert all(isinstance(name, str) for name in fields)


def test_one_value_without_a_name_is_called_value() -> None:
    assert Json().decode(b"21.5", "", None) == {"value": 21.5}
    assert Cbor().decode(cbor2.dumps([1, 2]), "", None) == {"value": [1, 2]}


@pytest.mark.parametrize("text", [b"NaN", b'{"x": Infinity}', b"{", b"", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(Undecodable):
        Json().decode(text, "", None)


def test_properties_are_numbers_where_they_look_like_numbers() -> None:
    told = Properties().decode(b"speed=1.5; count=3;name=arm;on=true;", "", None)
    assert told == {"speed": 1.5, "count": 3, "name": "arm", "on": True}


@pytest.mark.parametrize("text", [b"speed", b"=1", b"a=1;a=2", b"\xff=1"])
def test_what_is_not_properties_is_refused(text: bytes) -> None:
    with pytest.raises(Undecodable):
        Properties().decode(text, "", None)


@pytest.mark.parametrize(
    ("text", "value"),
    [("21.5", 21.5), ("-3", -3.0), ("1e3", 1000.0), ("n/a", None), ("", None), ("0x10", None)],
)
def test_text_is_kept_and_is_a_number_where_it_is_one(text: str, value: float | None) -> None:
    assert Plain().decode(text.encode(), "", None) == {"text": text, "number": value}


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        (b'{"percent": 42}', {"percent": 42}),
        (b' {"a": {"b": [1]}}\n', {"a": {"b": [1]}}),
        (b"[1, 2]", {"value": [1, 2]}),
        (b"21.5", {"text": "21.5", "number": 21.5}),
        (b" -3\n", {"text": " -3\n", "number": -3.0}),
        (b"n/a", {"text": "n/a", "number": None}),
        (b"true", {"text": "true", "number": None}),
        (b'"quoted"', {"text": '"quoted"', "number": None}),
        (b"", {"text": "", "number": None}),
        (b"NaN", {"text": "NaN", "number": None}),
        (b'{"x": NaN}', {"text": '{"x": NaN}', "number": None}),
        (b'{"x": 1, "x": 2}', {"text": '{"x": 1, "x": 2}', "number": None}),
        (b"[info] started", {"text": "[info] started", "number": None}),
        (b"{", {"text": "{", "number": None}),
        (b"\xff\xd8\xff", {"bytes": b"\xff\xd8\xff"}),
        ('{"x": 1}'.encode("utf-16"), {"bytes": '{"x": 1}'.encode("utf-16")}),
    ],
)
def test_bytes_without_an_encoding_are_what_they_look_like(
    payload: bytes, fields: dict[str, object]
) -> None:
    assert Implied().decode(payload, "", None) == fields


@given(
    st.binary(max_size=40)
    | st.text(max_size=40).map(str.encode)
    | documents.map(lambda told: json.dumps(told).encode())
)
def test_nothing_that_comes_without_an_encoding_is_lost_or_refused(payload: bytes) -> None:
    fields = Implied().decode(payload, "", None)
    if "bytes" in fields and isinstance(fields["bytes"], bytes):
        assert fields["bytes"] == payload
    elif fields.keys() == {"text", "number"} and isinstance(fields["text"], str):
        assert fields["text"].encode() == payload
    else:
        told = json.loads(payload)
        assert fields == (told if isinstance(told, dict) else {"value": told})


def test_numbers_too_large_to_hold_are_none() -> None:
    assert number_of("1e999") is None
    assert number_of("9" * 500) is None
    assert number_of("9223372036854775807") == (1 << 63) - 1


def test_serialised_values_need_a_type_and_then_have_names() -> None:
    payload = bytes(z_serialize((Float32(1.5), "left", [UInt8(1), UInt8(2)])))
    type = {"x": "float32", "arm": "string", "flags": "list<uint8>"}
    assert Serialized().decode(payload, "", type) == {"x": 1.5, "arm": "left", "flags": [1, 2]}
    with pytest.raises(Undecodable, match="type"):
        Serialized().decode(payload, "", None)
    with pytest.raises(Undecodable):
        Serialized().decode(payload + b"x", "", type)


def test_serialised_maps_and_single_values() -> None:
    payload = bytes(z_serialize({"a": Int64(1)}))
    assert Serialized().decode(payload, "", "map<string, int64>") == {"a": 1}
    assert Serialized().decode(bytes(z_serialize(Int64(5))), "", "int64") == {"value": 5}
    nested = bytes(z_serialize(((1.0, 2.0), True)))
    type = {"at": {"x": "float64", "y": "float64"}, "ok": "bool"}
    assert Serialized().decode(nested, "", type) == {"at": {"x": 1.0, "y": 2.0}, "ok": True}


@pytest.mark.parametrize("type", ["float", {}, 3, "list<x>", "map<int8, int8>"])
def test_a_type_that_does_not_exist_is_refused_by_name(type: object) -> None:
    with pytest.raises(ConfigError):
        python_type(type)


def test_decoders_are_found_by_the_name_of_the_encoding() -> None:
    assert isinstance(decoder_for("text/json"), Json)
    assert isinstance(decoder_for("application/cbor"), Cbor)
    assert decoder_for("video/vp9") is None


def test_a_decoder_of_ones_own_is_named_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "its_own_csv.py").write_text(
        "class Csv:\n"
        "    encodings = ('text/csv',)\n"
        "    def decode(self, payload, schema, type):\n"
        "        return dict(zip(schema.split(','), payload.decode().split(','), strict=True))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    decoder = decoder_named("its_own_csv:Csv")
    assert decoder.decode(b"1,2", "a,b", None) == {"a": "1", "b": "2"}
    for wrong in ("its_own_csv", "its_own_csv:Gone", "nowhere.at.all:Csv", "json:loads"):
        with pytest.raises((ConfigError, TypeError)):
            decoder_named(wrong)
