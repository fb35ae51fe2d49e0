from __future__ import annotations

from pathlib import Path

from zenlake.links import PROTOCOLS
from zenlake.links.document import render, write

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "links.md"


def test_the_page_says_what_the_protocols_declare() -> None:
    stale = "stale; run: python -m zenlake.links.document"
    assert PAGE.read_text(encoding="utf-8") == render(), stale


def test_every_option_is_on_the_page() -> None:
    page = render()
    for protocol in PROTOCOLS.values():
        assert f"## `{protocol.name}`" in page
        for option in protocol.options:
            assert option.effect in page


def test_it_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    write(tmp_path / "deep")
    assert (tmp_path / "deep" / "links.md").read_text(encoding="utf-8") == render()
