from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import ZenohId
from zenlake.errors import ConfigError
from zenlake.values import Hello, WhatAmI, WhatAmIMatcher


@pytest.mark.parametrize(
    ("role", "text", "code", "flag"),
    [
        (WhatAmI.ROUTER, "router", 0, 1),
        (WhatAmI.PEER, "peer", 1, 2),
        (WhatAmI.CLIENT, "client", 2, 4),
    ],
)
def test_a_role_has_a_name_a_code_and_a_flag(
    role: WhatAmI, text: str, code: int, flag: int
) -> None:
    assert (str(role), role.code, role.value) == (text, code, flag)
    assert WhatAmI.parse(text) is role


@pytest.mark.parametrize("text", ["", "Peer", "broker", "peer,router"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="router, peer or client"):
        WhatAmI.parse(text)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("", ""),
        ("|", ""),
        ("peer|router", "router|peer"),
        ("peer||router", "router|peer"),
        ("peer | router", "router|peer"),
        ("peer|peer", "peer"),
        ("client|peer|router", "router|peer|client"),
    ],
)
def test_a_set_of_roles_is_written_in_one_order(text: str, again: str) -> None:
    assert str(WhatAmIMatcher(text)) == again


def test_a_set_grows_without_changing_the_first_one() -> None:
    empty = WhatAmIMatcher.empty()
    assert empty.router().peer().client() == WhatAmIMatcher("router|peer|client")
    assert empty.is_empty()
    assert not empty.peer().is_empty()


def test_a_role_is_in_the_set_or_not() -> None:
    matcher = WhatAmIMatcher("router")
    assert WhatAmI.ROUTER in matcher
    assert "router" in matcher
    assert not matcher.matches(WhatAmI.PEER)
    with pytest.raises(ConfigError):
        WhatAmIMatcher("router|broker")


@given(st.integers(0, 255))
def test_flags_text_and_pickle_bring_the_same_set_back(flags: int) -> None:
    matcher = WhatAmIMatcher.from_flags(flags)
    assert matcher.flags == flags & 7
    assert WhatAmIMatcher(str(matcher)) == WhatAmIMatcher(matcher) == matcher
    assert pickle.loads(pickle.dumps(matcher)) == matcher
    assert eval(repr(matcher)) == matcher
    assert {role for role in WhatAmI if role in matcher} == {r for r in WhatAmI if flags & r.value}


def test_hello_says_who_what_and_where() -> None:
    hello = Hello(ZenohId.parse("1a2b3"), WhatAmI.ROUTER, ("tcp/10.0.0.4:7447",))
    assert hello.locators == ["tcp/10.0.0.4:7447"]
    assert (hello.zid, hello.whatami) == (ZenohId.parse("1a2b3"), WhatAmI.ROUTER)
    assert str(hello) == "router 1a2b3 at tcp/10.0.0.4:7447"
    assert eval(repr(hello)) == pickle.loads(pickle.dumps(hello)) == hello
    assert hello != Hello(ZenohId.parse("1a2b3"), WhatAmI.ROUTER)
    assert len({hello, pickle.loads(pickle.dumps(hello))}) == 1
