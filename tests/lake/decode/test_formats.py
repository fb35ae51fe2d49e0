from __future__ import annotations

import csv
import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.decode.test_decoders import objects
from zenlake.errors import ConfigError
from zenlake.lake import read_config
from zenlake.lake.decode.formats.bounded import library
from zenlake.lake.decode.formats.comma_separated import Csv
from zenlake.lake.decode.formats.flatbuffer import FlatBuffer
from zenlake.lake.decode.formats.images import Image
from zenlake.lake.decode.formats.message_pack import MessagePack
from zenlake.lake.decode.formats.protocol_buffers import Protobuf
from zenlake.lake.decode.formats.yaml_text import Yaml
from zenlake.lake.decode.registry import decoder_for
from zenlake.lake.model.decoder import Reason, Undecodable

FIELD = descriptor_pb2.FieldDescriptorProto


@given(objects)
def test_entries_of_messagepack_are_fields(told: dict[str, object]) -> None:
    assert MessagePack().decode(msgpack.packb(told), "", None) == told


def test_messagepack_keeps_bytes_times_and_single_values() -> None:
    value = {"raw": b"\x00", 1: [1.5], "at": msgpack.Timestamp(0, 0), "x": msgpack.ExtType(5, b"e")}
    assert MessagePack().decode(msgpack.packb(value), "", None) == {
        "raw": b"\x00",
        "1": [1.5],
        "at": "1970-01-01T00:00:00+00:00",
        "x": b"e",
    }
    assert MessagePack().decode(b"\x2a", "", None) == {"value": 42}


@given(objects)
def test_entries_of_yaml_are_fields(told: dict[str, object]) -> None:
    assert Yaml().decode(yaml.safe_dump(told).encode(), "", None) == told


def test_yaml_as_people_write_it() -> None:
    words = b"name: arm\njoints:\n  - 1\n  - 2.5\nat: 2026-11-16\nok: true\nnone:\n"
    assert Yaml().decode(words, "", None) == {
        "name": "arm",
        "joints": [1, 2.5],
        "at": "2026-11-16",
        "ok": True,
        "none": None,
    }


def bomb(start: str, level: str) -> bytes:
    lines = [f"a0: &a0 {start}"]
    lines += [f"a{n}: &a{n} {level.format(*([f'*a{n - 1}'] * 9))}" for n in range(1, 12)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "text",
    [
        bomb("[1]", "[{},{},{},{},{},{},{},{},{}]"),
        bomb("{x: 1}", "{{<<: [{},{},{},{},{},{},{},{},{}]}}"),
        b"&a [*a]",
        b"[" * 100_000,
        b"!!python/object/apply:os.system [true]",
        b"{1: a, '1': b}",
        b"2026-99-99",
        b"\xff",
        b"a: b: c",
    ],
    ids=["aliases", "merges", "cycle", "deep", "object", "same", "date", "bytes", "syntax"],
)
def test_hostile_yaml_is_refused_soon(text: bytes) -> None:
    with pytest.raises(Undecodable):
        Yaml().decode(text, "", None)


words = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1)


@given(st.dictionaries(words.map(str.strip).filter(bool), words, min_size=1, max_size=5))
def test_values_of_csv_have_the_names_of_the_header(told: dict[str, str]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([list(told), [f"_{value}_" for value in told.values()]])
    found = Csv().decode(out.getvalue().removeprefix("\ufeff").encode(), "", None)
    assert list(found.values()) == [f"_{value}_" for value in told.values()]
    assert len(found) == len(told)


def test_the_header_of_csv_may_stand_in_three_places() -> None:
    told = {"x": 1, "y": 2.5, "name": "arm, left", "none": None, "on": True}
    line = b'1,2.5,"arm, left",,true\r\n'
    assert Csv().decode(b"x,y,name,none,on\r\n" + line, "", None) == told
    assert Csv().decode(line, "x,y,name,none,on", None) == told
    assert Csv().decode(line, "", ["x", "y", "name", "none", "on"]) == told
    assert Csv().decode(b"x,y\n1,2\n", "x,y", None) == {"x": 1, "y": 2}


@pytest.mark.parametrize("text", [b"", b"x,y", b"x,y\n1", b"x,x\n1,2", b'x\n"1', b"x\n1\n2"])
def test_what_is_not_one_line_of_csv_is_refused(text: bytes) -> None:
    with pytest.raises(Undecodable):
        Csv().decode(text, "", None)


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + bytes(10)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app + b"\xff" + frame


IMAGES: dict[str, Callable[[int, int], bytes]] = {
    "png": png,
    "jpeg": jpeg,
    "gif": lambda w, h: b"GIF89a" + struct.pack("<HH", w, h),
    "bmp": lambda w, h: b"BM" + bytes(16) + struct.pack("<ii", w, -h),
    "webp": lambda w, h: (
        b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + struct.pack("<I", w - 1)[:3]
        + struct.pack("<I", h - 1)[:3]
    ),
}  # fmt: skip


@given(st.sampled_from(sorted(IMAGES)), st.integers(1, 65535), st.integers(1, 65535))
def test_images_say_their_size(format: str, width: int, height: int) -> None:
    made = IMAGES[format](width, height)
    told = {"format": format, "width": width, "height": height, "bytes": len(made)}
    assert Image().decode(made, "", None) == told
    for cut in range(len(made)):
        try:
            found = Image().decode(made[:cut], "", None)
        except Undecodable:
            continue
        assert (found["width"], found["height"]) == (width, height)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A descriptor set in a file, and the class of its message."""
    file = descriptor_pb2.FileDescriptorProto(name="fleet.proto", package="fleet", syntax="proto3")
    mode = file.enum_type.add(name="Mode")
    mode.value.add(name="IDLE", number=0)
    mode.value.add(name="MOVE", number=1)
    at = file.message_type.add(name="At")
    at.field.add(name="x", number=1, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    arm = file.message_type.add(name="Arm")
    for n, (name, type, label, of) in enumerate(
        [
            ("id", FIELD.TYPE_INT64, FIELD.LABEL_OPTIONAL, None),
            ("at", FIELD.TYPE_MESSAGE, FIELD.LABEL_OPTIONAL, ".fleet.At"),
            ("mode", FIELD.TYPE_ENUM, FIELD.LABEL_OPTIONAL, ".fleet.Mode"),
            ("joints", FIELD.TYPE_FLOAT, FIELD.LABEL_REPEATED, None),
            ("raw", FIELD.TYPE_BYTES, FIELD.LABEL_OPTIONAL, None),
            ("path", FIELD.TYPE_MESSAGE, FIELD.LABEL_REPEATED, ".fleet.At"),
        ]
    ):
        arm.field.add(name=name, number=n + 1, type=type, label=label, type_name=of)
    path = tmp_path_factory.mktemp("fleet") / "fleet.pb"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return str(path), message_factory.GetMessageClass(pool.FindMessageTypeByName("fleet.Arm"))


def test_fields_of_protobuf_by_a_descriptor_set(fleet: tuple[str, Any]) -> None:
    path, arm = fleet
    payload = arm(
        id=1 << 40, at={"x": 1.5}, mode=1, joints=[0.5, 2], raw=b"\0", path=[{"x": 2}]
    ).SerializeToString()
    told = {
        "id": 1 << 40,
        "at": {"x": 1.5},
        "mode": "MOVE",
        "joints": [0.5, 2.0],
        "raw": b"\0",
        "path": [{"x": 2.0}],
    }
    both = {"descriptors": path, "message": "fleet.Arm"}
    assert Protobuf().decode(payload, "", both) == told
    assert Protobuf().decode(payload, "fleet.Arm", {"descriptors": path}) == told
    empty: dict[str, object] = {
        "id": 0,
        "at": None,
        "mode": "IDLE",
        "joints": [],
        "raw": b"",
        "path": [],
    }
    assert Protobuf().decode(b"", "", both) == empty


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False))
def test_numbers_of_protobuf_are_kept(fleet: tuple[str, Any], id: int, x: float) -> None:
    path, arm = fleet
    payload = arm(id=id, at={"x": x}).SerializeToString()
    found = Protobuf().decode(payload, "fleet.Arm", {"descriptors": path})
    assert (found["id"], found["at"]) == (id, {"x": x})


def test_protobuf_without_descriptors_says_what_is_missing(
    fleet: tuple[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "broken.pb").write_bytes(b"\xff\xff")
    for schema, type, words in (
        ("fleet.Arm", None, "say it under `type`"),
        ("", {"descriptors": fleet[0]}, "which message"),
        ("fleet.Leg", {"descriptors": fleet[0]}, "no message 'fleet.Leg'"),
        ("fleet.Arm", {"descriptors": str(tmp_path / "gone.pb")}, "no descriptor set"),
        ("fleet.Arm", {"descriptors": str(tmp_path / "broken.pb")}, "no descriptor set"),
    ):
        with pytest.raises(Undecodable, match=words):
            Protobuf().decode(b"", schema, type)
    table = '{tables: {arm: {format: "arm/${id}", type: {descriptors: "a.pb", %s}}}}'
    assert read_config(table % 'message: "fleet.Arm"').tables[0].type == {
        "descriptors": "a.pb",
        "message": "fleet.Arm",
    }
    with pytest.raises(ConfigError, match="massage"):
        read_config(table % 'massage: "fleet.Arm"')


FLAT = Path(__file__).parents[1] / "flatbuffers"
BFBS = {"bfbs": str(FLAT / "fleet.bfbs")}
ARM = (FLAT / "arm.bin").read_bytes()
"""What flatc made of a schema and of JSON."""


def test_fields_of_a_flatbuffer_by_its_binary_schema() -> None:
    found = FlatBuffer().decode(ARM, "", BFBS)
    assert found == {
        "id": 1 << 40,
        "name": "left",
        "at": {"x": 1.5, "y": -2.0, "cells": [3, -4]},
        "mode": "MOVE",
        "speed": 2.5,
        "limit": 7,
        "on": True,
        "joints": [0.5, 2.0],
        "raw": b"\0\xff",
        "tags": ["a", "ü"],
        "modes": ["MOVE", "CHARGE"],
        "path": [{"x": 1.0, "y": 2.0, "cells": [5, 6]}],
        "faults": [{"code": 4_000_000_000, "text": "hot"}, {"code": 2, "text": None}],
        "worst": {"code": 9, "text": None},
        "extra_type": "Note",
        "extra": {"text": "n"},
    }
    assert FlatBuffer().decode(ARM, "fleet.Arm", BFBS) == found
    # A table without fields: a vtable of four bytes, and where it is.
    empty = bytes.fromhex("08000000 04000400 04000000")
    defaults = FlatBuffer().decode(empty, "", BFBS | {"table": "fleet.Arm"})
    assert (defaults["id"], defaults["mode"], defaults["speed"]) == (0, "IDLE", 1.5)
    assert (defaults["limit"], defaults["on"], defaults["joints"]) == (None, False, None)


def test_a_flatbuffer_without_its_schema_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "broken.bfbs").write_bytes((FLAT / "fleet.bfbs").read_bytes()[:300])
    for schema, type, words in (
        ("", None, "say it under `type`"),
        ("fleet.Leg", BFBS, "no table 'fleet.Leg'"),
        ("fleet.At", BFBS, "no table 'fleet.At'"),
        ("", {"bfbs": str(tmp_path / "gone.bfbs")}, "no binary schema"),
        ("", {"bfbs": str(tmp_path / "broken.bfbs")}, "no binary schema"),
        ("", {"bfbs": str(FLAT / "arm.bin")}, "does not begin like one"),
    ):
        with pytest.raises(Undecodable, match=words):
            FlatBuffer().decode(ARM, schema, type)
    table = '{tables: {arm: {format: "arm/${id}", type: {bfbs: "a.bfbs", %s}}}}'
    assert read_config(table % 'table: "fleet.Arm"').tables[0].type == {
        "bfbs": "a.bfbs",
        "table": "fleet.Arm",
    }
    with pytest.raises(ConfigError, match="message"):
        read_config(table % 'message: "fleet.Arm"')


@given(st.lists(st.tuples(st.integers(0, len(ARM) - 1), st.integers(0, 255)), max_size=8))
def test_a_flatbuffer_that_was_changed_is_read_or_refused(changes: list[tuple[int, int]]) -> None:
    payload = bytearray(ARM)
    for at, byte in changes:
        payload[at] = byte
    try:
        fields = FlatBuffer().decode(bytes(payload), "", BFBS)
    except Undecodable:
        return
    assert set(fields) == set(FlatBuffer().decode(ARM, "", BFBS))


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"BM"]))
def test_whatever_bytes_come_they_are_read_or_refused(
    fleet: tuple[str, Any], payload: bytes, start: bytes
) -> None:
    type = {"descriptors": fleet[0], "message": "fleet.Arm"}
    decoders: list[tuple[Any, object]] = [
        (MessagePack(), None), (Yaml(), None), (Csv(), None), (Image(), None), (Protobuf(), type),
        (FlatBuffer(), BFBS),
    ]  # fmt: skip
    for decoder, told in decoders:
        try:
            fields = decoder.decode(start + payload, "", told)
        except Undecodable:
            continue
        assert all(isinstance(name, str) for name in fields)


def test_every_format_is_found_by_its_encodings() -> None:
    for decoder in (MessagePack, Yaml, Csv, Image, Protobuf, FlatBuffer):
        for encoding in decoder.encodings:
            assert isinstance(decoder_for(encoding), decoder)


def test_a_library_that_is_missing_is_told_with_its_extra() -> None:
    with pytest.raises(Undecodable, match=r"needs nothing_like_it; .*zenlake\[formats\]") as told:
        library("nothing_like_it.at_all", "such bytes")
    assert told.value.reason == Reason.DECODER
