"""What the page's client of the remote API has in common with the node, which must not drift."""

from __future__ import annotations

import re
from pathlib import Path

from zenlake.remote.messages import FROM_CLIENT, FROM_SERVER
from zenlake.values.encoding import ENCODING_NAMES

SOURCE = Path(__file__).resolve().parents[2] / "src" / "zenlake" / "web" / "remote.js"


def test_the_page_knows_every_encoding_by_its_number() -> None:
    listed = re.search(r"ENCODINGS = \[(.*?)\];", SOURCE.read_text("utf-8"), re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r'"(.*?)"', listed[1])) == tuple(ENCODING_NAMES)


def test_the_page_numbers_messages_as_the_node_does() -> None:
    text = SOURCE.read_text("utf-8")
    for name, kinds in (("SAY", FROM_CLIENT), ("HEAR", FROM_SERVER)):
        listed = re.search(rf"const {name} = {{(.*?)}};", text)
        assert listed is not None
        named = dict(re.findall(r"(\w+): (\d+)", listed[1]))
        assert named
        for word, number in named.items():
            wanted = "QueryResponseFinal" if word == "final" else word
            assert kinds[int(number)].name.lower() == wanted.lower()
