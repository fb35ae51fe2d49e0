"""The reference pages say what the declarations say, with examples that are true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from zenlake import testing, wire, xrce
from zenlake.wire.declared import network, transport
from zenlake.wire.generator.document import outputs
from zenlake.wire.generator.document_examples import EXAMPLES, EXAMPLES_2018, MADE
from zenlake.wire.generator.document_picture import picture

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
PAGES = outputs()


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_fresh(name: str) -> None:
    page = ROOT / "docs" / "reference" / name
    assert page.read_text(encoding="utf-8") == PAGES[name], "stale; run: make wire"


@pytest.mark.parametrize(("name", "protocol"), [("wire.md", "1.x"), ("wire-2018.md", "2018")])
def test_every_declaration_has_its_section(name: str, protocol: str) -> None:
    sections = re.findall(r"^### (\w+)$", PAGES[name], re.MULTILINE)
    assert sorted(sections) == sorted(spec.name for spec in testing.specs(protocol))


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    targets = {title.lower() for title in re.findall(r"^#+ (\w+)$", PAGES[name], re.MULTILINE)}
    assert {link for link in re.findall(r"\(#([^)]*)\)", PAGES[name])} <= targets


@pytest.mark.parametrize("name", PAGES)
def test_no_field_is_without_a_meaning(name: str) -> None:
    rows = re.findall(r"^\| `\w+` \|.*\|$", PAGES[name], re.MULTILINE)
    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_examples_of_1x_were_seen_on_the_wire() -> None:
    golden = {entry["hex"] for entry in json.loads((GOLDEN / "vectors-1x.json").read_text())}
    unseen = {name for name, (_, digits) in EXAMPLES.items() if digits not in golden}
    assert unseen == MADE["1.x"]


def test_the_examples_of_2018_are_golden() -> None:
    vectors = json.loads((GOLDEN / "vectors-2018.json").read_text())["vectors"]
    golden = {entry["hex"] for entry in vectors}
    unseen = {name for name, digits in EXAMPLES_2018.items() if digits not in golden}
    assert unseen == MADE["2018"]


def test_the_examples_that_were_made_up_are_what_we_would_write() -> None:
    for name in MADE["1.x"]:
        form, digits = EXAMPLES[name]
        data = bytes.fromhex(digits)
        found = wire.read_batch(data) if form == "batch" else [wire.read_network(data)]
        assert b"".join(map(wire.write, found)) == data
    for name in MADE["2018"]:
        data = bytes.fromhex(EXAMPLES_2018[name])
        assert b"".join(map(xrce.write, xrce.read_packet(data))) == data


def test_a_header_is_drawn_with_its_flags_where_they_are() -> None:
    drawn = picture(transport.PAGE.specs["Close"], "0x03").splitlines()
    assert drawn == [
        "  7   6   5   4   3   2   1   0",
        "+---+---+---+---+---+---+---+---+",
        "| Z | - | S |       0x03        |",
        "+---+---+---+---+---+---+---+---+",
        "|            reason             |",
        "+---+---+---+---+---+---+---+---+",
        "~          extensions           ~  if Z",
        "+---+---+---+---+---+---+---+---+",
    ]


def test_what_is_not_always_there_says_when() -> None:
    drawn = picture(network.PAGE.specs["Push"], "0x1d")
    assert re.search(r"~ +suffix +~  if N\n", drawn)
    assert re.search(r"~ +Put or Del +~\n", drawn)


def test_every_row_of_a_drawing_is_one_byte_wide() -> None:
    for spec in testing.specs():
        for line in picture(spec, str(spec.id)).splitlines()[1:]:
            assert re.fullmatch(r"[|~+].{31}[|~+](  if .+)?", line), f"{spec.name}: {line}"
