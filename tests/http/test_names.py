"""Which hosts and origins a request may name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.http.names import host_name, may_connect


@pytest.mark.parametrize(
    ("host", "origin", "allowed", "refused"),
    [
        ("localhost:8000", None, (), False),
        ("[::1]:8000", None, (), False),
        ("evil.example", None, (), True),
        ("evil.example:8000", "http://evil.example:8000", (), True),
        ("localhost:8000", "http://localhost:8000", (), False),
        ("localhost:8000", "http://localhost:9000", (), True),
        ("localhost:8000", "https://a.example", ("https://a.example",), False),
        ("localhost:8000", "null", (), True),
        ("localhost:8000", "null", ("*",), False),
        ("", None, (), True),
    ],
)
def test_only_names_of_this_node_and_origins_that_are_allowed_may_ask(
    host: str, origin: str | None, allowed: tuple[str, ...], refused: bool
) -> None:
    assert bool(may_connect(origin, host, {"localhost", "[::1]"}, allowed)) is refused


@given(st.text(max_size=30))
def test_no_host_but_those_known_passes(host: str) -> None:
    passes = not may_connect(None, host, {"localhost"}, ())
    assert passes == (host_name(host) == "localhost")
