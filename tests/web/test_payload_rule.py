"""One rule for payloads without an encoding: in tables, filters, aggregates, the page and `sub`."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.remote import node
from zenlake.api.filtered import Filter
from zenlake.cli.show import payload_facts
from zenlake.keys import KeyExpr, Parameters
from zenlake.lake.decode.formats.implied import Implied
from zenlake.lake.history.answer import SAMPLES, AnswerLimits, Rows, aggregated
from zenlake.lake.history.parameters import Selection, selection_of
from zenlake.node.sample import Sample
from zenlake.routing.filters import SubscriberFilter, fields_of

PAGE = Path(__file__).resolve().parents[2] / "src" / "zenlake" / "web"
SHOW = """
globalThis.sessionStorage = { getItem: () => "", setItem: () => {} };
const { decode } = await import("./decode.js");
const said = JSON.parse(process.argv[2]).map((hex) => {
  const payload = Uint8Array.from((hex.match(/../g) ?? []).map((two) => parseInt(two, 16)));
  const { kind, value, text } = decode({ payload, encoding: "zenoh/bytes" });
  return [kind, kind === "json" ? value : kind === "text" ? text : null];
});
console.log(JSON.stringify(said));
"""

#: A payload, and what it is.
PAYLOADS: list[tuple[bytes, object]] = [
    (b'{"a": 1}', {"a": 1}),
    (b' \n{"a": {"b": [1, 2.5, null, true, "x"]}}\t', {"a": {"b": [1, 2.5, None, True, "x"]}}),
    (b'{"a": {"x": 1}, "b": {"x": 2}, "c": [{"x": 3}, {"x": 4}]}',
     {"a": {"x": 1}, "b": {"x": 2}, "c": [{"x": 3}, {"x": 4}]}),
    (b'{"a": "{\\"a\\": 1, }", "b": ","}', {"a": '{"a": 1, }', "b": ","}),
    (b"[1, 2]", [1, 2]),
    (b"{}", {}),
    (b"[]", []),
    (b'{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    (b'{"b": {"a": 1, "\\u0061": 2}}', '{"b": {"a": 1, "\\u0061": 2}}'),
    (b'[{"a": 1, "a": 2}]', '[{"a": 1, "a": 2}]'),
    (b'{"a": NaN}', '{"a": NaN}'),
    (b"{broken", "{broken"),
    (b"[info] started", "[info] started"),
    (b"5", 5),
    (b"+5", 5),
    (b"-0.25", -0.25),
    (b".5", 0.5),
    (b"5.", 5.0),
    (b" 1e3\n", 1000.0),
    (b"1e999", "1e999"),
    (b"0x10", "0x10"),
    (b"1_000", "1_000"),
    (b"Infinity", "Infinity"),
    (b"auto", "auto"),
    (b"true", "true"),
    (b"null", "null"),
    (b'"auto"', '"auto"'),
    (b"", ""),
    (b"  ", "  "),
    ("grüße, 世界".encode(), "grüße, 世界"),
    (b"\xef\xbb\xbf{}", "\ufeff{}"),
    (b"\x01\x00\x00\x00", "\x01\x00\x00\x00"),
    (b"\x1b[2J", "\x1b[2J"),
    (b"\xff\xd8\xff", b"\xff\xd8\xff"),
    ('{"a": 1}'.encode("utf-16"), '{"a": 1}'.encode("utf-16")),
]  # fmt: skip
each = pytest.mark.parametrize(("payload", "is_"), PAYLOADS)


def condition(is_: object) -> str:
    """A filter that is true of a payload that is this, and of others hardly."""
    match is_:
        case {"a": int()}:
            return "a = 1 AND value() IS NULL"
        case int() | float():
            return f"value() = {is_}"
        case str():
            return f"value() = '{is_}' AND a IS NULL"
        case _:
            return "value() IS NULL"


def answered(payload: bytes, asked: str) -> tuple[Rows, Selection, list[pa.Table]]:
    found = selection_of(Parameters(asked), 0)
    assert found is not None
    row: dict[str, Any] = dict.fromkeys(SAMPLES.names)
    row |= {"key": "k", "value": payload, "encoding": "zenoh/bytes", "kind": "put", "time": 0}
    table = pa.Table.from_pylist([row], SAMPLES)
    return Rows(found, 0, AnswerLimits()), found, [table]


@each
def test_in_a_typed_table(payload: bytes, is_: object) -> None:
    fields = Implied().decode(payload, "", None)
    match is_:
        case dict():
            assert fields == is_
        case list():
            assert fields == {"value": is_}
        case bytes():
            assert fields == {"bytes": is_}
        case str():
            assert fields == {"text": is_, "number": None}
        case _:
            assert fields == {"text": payload.decode(), "number": is_}


@each
def test_in_a_filter_of_a_question(payload: bytes, is_: object) -> None:
    rows, _, tables = answered(payload, f"_time=[..now()];_filter={condition(is_)}")
    assert sum(part.rows.num_rows for part in rows.passing(tables)) == 1


@each
def test_in_an_aggregate(payload: bytes, is_: object) -> None:
    asked = "_time=[..now()];_agg=count(value()),max(value())"
    rows, selection, tables = answered(payload, asked)
    (found,) = aggregated(selection, rows, tables, AnswerLimits())
    number = is_ if isinstance(is_, int | float) else None
    assert found["count(value())"] == int(isinstance(is_, int | float | str))
    assert found["max(value())"] == number


@each
def test_at_a_subscriber_and_at_its_router(payload: bytes, is_: object) -> None:
    asked = condition(is_)
    assert Filter(asked).passes(
        Sample(KeyExpr("k"), payload, True, 0, b"", 0, 0, b"", 5, True, None)
    )
    assert SubscriberFilter(asked).holds(fields_of("k", True, payload, "zenoh/bytes"))
    # A deletion has no payload.
    assert Filter("value() IS NULL").passes(
        Sample(KeyExpr("k"), b"", False, 0, b"", 0, 0, b"", 5, True, None)
    )
    assert SubscriberFilter("value() IS NULL").holds(fields_of("k", False, payload, ""))


@each
def test_printed_by_sub(payload: bytes, is_: object) -> None:
    if isinstance(is_, bytes):
        assert payload_facts(payload) == {"payload_base64": base64.b64encode(payload).decode()}
    else:
        assert payload_facts(payload) == {"payload": payload.decode()}


def test_on_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "web"
    shutil.copytree(PAGE, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "show.js").write_text(SHOW)
    given = json.dumps([payload.hex() for payload, _ in PAYLOADS])
    done = subprocess.run(
        [*node.program(), str(folder / "show.js"), given], capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for (payload, is_), (kind, shown) in zip(PAYLOADS, json.loads(done.stdout), strict=True):
        kinds: dict[type, str] = {str: "text", bytes: "hex"}
        assert kind == kinds.get(type(is_), "json"), payload
        assert shown == (None if isinstance(is_, bytes) else is_), payload
