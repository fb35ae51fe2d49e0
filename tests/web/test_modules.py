"""Functions of the page that need no browser, run by Node."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.remote import node

PAGE = Path(__file__).resolve().parents[2] / "src" / "zenlake" / "web"
AT = "2026-01-31T12:00:00.000Z"
RUN = """
globalThis.sessionStorage = { getItem: () => "", setItem: () => {} };
const [file, name, given] = process.argv.slice(2);
const module = await import(`./${file}`);
console.log(JSON.stringify(module[name](...JSON.parse(given))));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's files, where Node takes them for modules."""
    folder = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(PAGE, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(RUN)
    return folder


SHOW = """
globalThis.sessionStorage = { getItem: () => "", setItem: () => {} };
const { decode, brief } = await import("./decode.js");
const said = JSON.parse(process.argv[2]).map(([hex, encoding]) => {
  const bytes = (hex.match(/../g) ?? []).map((two) => parseInt(two, 16));
  const sample = { payload: Uint8Array.from(bytes), encoding };
  const found = decode(sample);
  return [found.kind, found.value ?? found.why ?? found.text ?? found.name, brief(sample)];
});
console.log(JSON.stringify(said));
"""

CBOR = "application/cbor"
#: A payload in hex and its encoding; what it is shown as. CBOR is of RFC 8949, appendix A.
VALUES: list[tuple[str, str, str, object]] = [
    ("1a000f4240", CBOR, "json", 1_000_000),
    ("3863", CBOR, "json", -100),
    ("f93e00", CBOR, "json", 1.5),
    ("f90001", CBOR, "json", 5.960464477539063e-8),
    ("fb3ff199999999999a", CBOR, "json", 1.1),
    ("c11a514b67b0", CBOR, "json", 1363896240),
    ("62c3bc", CBOR, "json", "ü"),
    ("4401020304", CBOR, "json", "0x01020304"),
    ("a26161016162820203", CBOR, "json", {"a": 1, "b": [2, 3]}),
    ("9f0182029f0304ffff", CBOR, "json", [1, [2, [3, 4]]]),
    ("bf61610161629f0203ffff", CBOR, "json", {"a": 1, "b": [2, 3]}),
    ("7f657374726561646d696e67ff", CBOR, "json", "streaming"),
    ("5f42010243030405ff", CBOR, "json", "0x0102030405"),
    ("8301", CBOR, "hex", "no CBOR: it ends too early"),
    ("ff", CBOR, "hex", "no CBOR: a break that ends nothing"),
    ("9b7fffffffffffffff01", CBOR, "hex", "no CBOR: it ends too early"),
    ("0101", CBOR, "hex", "no CBOR: bytes are left over"),
    (b'{"a":1}'.hex(), "my/own", "json", {"a": 1}),
    (b"hello".hex(), "my/own", "text", "hello"),
    ("89504e47", "image/png", "image", "image/png"),
    ("00ff", "my/own", "hex", "the encoding my/own says nothing that this page can read"),
]


def test_values_are_shown_as_what_they_are_or_as_hex_with_the_reason(page: Path) -> None:
    (page / "show.js").write_text(SHOW)
    given = json.dumps([value[:2] for value in VALUES])
    done = subprocess.run(
        [*node.program(), str(page / "show.js"), given], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [(kind, value) for kind, value, _ in shown] == [value[2:] for value in VALUES]
    assert shown[8][2] == '{"a":1,"b":[2,3]}'
    assert shown[-1][2] == "2 bytes"


def call(page: Path, file: str, name: str, *given: object) -> Any:
    done = subprocess.run(
        [*node.program(), str(page / "run.js"), file, name, json.dumps(given)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_line_that_replays_names_the_folder_and_the_router(page: Path) -> None:
    router = {"locators": ["tcp/127.0.0.1:7447"]}
    service: dict[str, Any] = {"data": "/srv/it's here", "lake": {}}
    line = call(page, "time.js", "replayLine", "robot/**", AT, {"service": service, "node": router})
    assert shlex.split(line) == [
        "zenlake", "replay", "robot/**", "--from", AT, "--speed", "4", "--prefix", "replay",
        "--lake", "/srv/it's here/lake", "-e", "tcp/127.0.0.1:7447",
    ]  # fmt: skip
    service["lake"] = None
    line = call(page, "time.js", "replayLine", "a", AT, {"service": service, "node": router})
    assert shlex.split(line)[-4:-2] == ["--journal", "/srv/it's here/journal"]
    line = call(page, "time.js", "replayLine", "a", AT, {"service": None, "node": router})
    assert line.endswith("--prefix replay -e tcp/127.0.0.1:7447")


def test_the_map_shows_every_node_and_its_name(page: Path) -> None:
    places = [{"x": 400, "y": 250}, {"x": -700, "y": 90}, {"x": 2000, "y": 1400}]
    left, top, width, height = map(int, call(page, "map.js", "frame", places).split())
    for one in places:
        assert left + 100 <= one["x"] <= left + width - 100
        assert top + 20 <= one["y"] <= top + height - 20
    # One alone is not made larger than the screen.
    assert call(page, "map.js", "frame", places[:1]) == "240 90 320 320"


def test_drops_of_one_reason_in_both_directions_are_added_up(page: Path) -> None:
    stats = {"dropped": {"rx": {"downsampling": 2, "ignored": 1}, "tx": {"downsampling": 40}}}
    assert call(page, "health.js", "reasons", stats) == {"downsampling": 42, "ignored": 1}
    assert call(page, "health.js", "reasons", {}) == {}


def test_an_answer_of_sql_has_an_address_unless_its_question_has_none(page: Path) -> None:
    link = call(page, "ask.js", "sqlLink", "SELECT a, 'x=1' FROM t WHERE a > 1; ")
    assert (
        unquote(link) == "/@lake/sql?_as=arrow;_sql=SELECT a, 'x=1' FROM t WHERE a > 1;_download="
    )
    assert call(page, "ask.js", "sqlLink", "SELECT ';'") == ""


def test_keys_that_begin_with_what_was_typed_are_offered_first(page: Path) -> None:
    keys = [f"other/{n}" for n in range(900)] + ["robot/1/pose", "a/robot/1"]
    assert call(page, "ask.js", "suggested", keys, "robot/1") == ["robot/1/pose", "a/robot/1"]
    assert len(call(page, "ask.js", "suggested", keys, "")) == 50


def test_what_comes_from_outside_is_parsed_at_one_place() -> None:
    for file in PAGE.glob("*.js"):
        text = file.read_text("utf-8")
        if file.name != "checked.js":
            assert "JSON.parse(" not in text, file
            assert ".json()" not in text, file
