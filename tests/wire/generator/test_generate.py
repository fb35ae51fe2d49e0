"""The generator: what it writes is what is there, and a new declaration needs nothing else."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zenlake import testing, wire
from zenlake.errors import DecodeError, EncodeError
from zenlake.wire.cursor import Reader
from zenlake.wire.declared.schema import (
    ProtocolPage,
    ext,
    flag,
    flag_byte,
    many,
    rest,
    struct,
    text,
    u8,
    unit,
    vle,
    z16,
)
from zenlake.wire.generator.generate import codec_text, module_of, roots_of, union_name

SOURCE = Path(__file__).parents[3] / "src"


def generate(source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zenlake.wire.generator.generate", *options],
        env=os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_generated_codec_is_stale() -> None:
    checked = generate(SOURCE, "--check")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_a_codec_that_was_edited_by_hand_is_told_and_mended(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(SOURCE / "zenlake", tmp_path / "src" / "zenlake", ignore=ignored)
    shutil.copy(SOURCE.parent / "pyproject.toml", tmp_path)
    edited = tmp_path / "src" / "zenlake" / "wire" / "codec_network.py"
    original = edited.read_text()
    edited.write_text(original.replace("qos: int = 5", "qos: int = 6"))
    checked = generate(tmp_path / "src", "--check")
    assert checked.returncode == 1
    assert "codec_network.py is stale" in checked.stdout
    assert generate(tmp_path / "src").returncode == 0
    assert edited.read_text() == original


# --------------------------------------------------------------------------- a page of our own

PAGE = ProtocolPage("lesson", "Lesson messages", "1.x")


@PAGE.structure
class Point:
    """Where."""

    x = u8()
    y = z16()


@PAGE.message(0x01, "N R Z")
class Note:
    """Something to remember."""

    name = text(8).when("N")
    urgent = flag("R")
    options = flag_byte("C P")
    colour = vle(8, legal=(1, 2)).when("C")
    places = many(struct("Point")).when("P")
    seen = ext(0x02, unit())
    weight = ext(0x23, vle(16), default=7)
    origin = ext(0x54, struct("Point"))
    body = rest()


@pytest.fixture(scope="module")
def lesson() -> Iterator[dict[str, Any]]:
    """What the generated module of the page above defines."""
    # An interpreted class cannot have a compiled one above it: it gets the source of `Message`.
    source = SOURCE / "zenlake" / "wire" / "message.py"
    spec = importlib.util.spec_from_file_location("lesson_message", source)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["lesson_message"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["lesson_message"])
    text = codec_text(PAGE, "lessons", "lesson.py")
    defined: dict[str, Any] = {"__name__": "lesson"}
    exec(text.replace("zenlake.wire.message", "lesson_message"), defined)
    yield defined
    del sys.modules["lesson_message"]


def read(lesson: dict[str, Any], data: bytes) -> Any:
    r = Reader(data)
    return lesson["read_note"](r, r.u8())


def test_a_declared_message_can_be_written_and_read_at_once(lesson: dict[str, Any]) -> None:
    point = lesson["Point"](x=1, y=300)
    note = lesson["Note"](
        name="é", urgent=True, colour=2, places=(point, point),
        seen=True, weight=9, origin=point, body=b"!",
    )  # fmt: skip
    data = wire.write(note)
    assert data.hex() == "e1" + "02c3a9" + "03" + "02" + "02" + "01ac02" * 2 + (
        "82" + "a309" + "54" + "03" + "01ac02" + "21"
    )
    assert read(lesson, data) == note
    r = Reader(data)
    lesson["skip_note"](r, r.u8())
    assert r.pos == r.end


def test_flags_follow_from_the_fields(lesson: dict[str, Any]) -> None:
    assert wire.write(lesson["Note"](body=b"")).hex() == "0100"
    assert wire.write(lesson["Note"](name="a", body=b"")).hex() == "21016100"
    assert wire.write(lesson["Note"](urgent=True, weight=7, body=b"")).hex() == "4100"
    assert wire.write(lesson["Note"](colour=1, body=b"")).hex() == "010101"


def test_what_a_declaration_forbids_is_refused_both_ways(lesson: dict[str, Any]) -> None:
    with pytest.raises(EncodeError, match="3 is not one of"):
        wire.write(lesson["Note"](colour=3, body=b""))
    with pytest.raises(DecodeError, match=r"Note\.colour is 3"):
        read(lesson, b"\x01\x01\x03")
    with pytest.raises(DecodeError, match="unknown mandatory extension 0x33"):
        read(lesson, b"\x81\x00\x33\x01")


def test_the_shown_fields_are_those_that_are_there(lesson: dict[str, Any]) -> None:
    shown = lesson["Note"](name="a", origin=lesson["Point"](x=1, y=2), body=b"\xff").to_dict()
    assert shown == {
        "message": "Note",
        "name": "a",
        "urgent": False,
        "origin": {"message": "Point", "x": 1, "y": 2},
        "body": "ff",
    }


# --------------------------------------------------------------------------------------- names


def test_the_reader_of_a_choice_is_named_after_what_it_chooses_from() -> None:
    assert union_name(("Query",), "Request") == "one_query"
    assert union_name(("Put", "Del"), "Push") == "put_or_del"
    assert union_name(("A", "B", "C", "D"), "Declare") == "declare_body"


def test_every_page_has_a_module_and_every_message_a_class_in_it() -> None:
    for page in testing.pages():
        room = testing.ROOMS[page.protocol]
        assert module_of(page, room).startswith(room)
        for spec in page.specs.values():
            assert spec.name == testing.class_of(spec).NAME
        assert set(roots_of(page)) <= set(page.specs)
