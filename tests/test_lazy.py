"""Names that a package imports when they are first used."""

from __future__ import annotations

import sys

import pytest

from zenlake.lazy import lazy_names


def test_a_name_is_fetched_once_from_the_module_that_defines_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import json

    fetch = lazy_names("json", {"JSONDecoder": "decoder"})
    monkeypatch.delattr(json, "JSONDecoder")
    assert fetch("JSONDecoder") is sys.modules["json.decoder"].__dict__["JSONDecoder"]
    assert "JSONDecoder" in vars(json)


def test_a_name_that_is_not_there_is_told_as_any_module_tells_it() -> None:
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'nothing'"):
        lazy_names("json", {})("nothing")
