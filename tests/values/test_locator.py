from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.errors import LocatorError
from zenlake.values import EndPoint, Locator
from zenlake.values.locator import split_host_port

keys = st.text("abz_1", min_size=1, max_size=4)
pairs = st.lists(st.tuples(keys, st.text("ab/:=.1?", max_size=5)), max_size=3).map(tuple)
locators = st.builds(
    Locator,
    st.text("abc-", min_size=1, max_size=6),
    st.text("ab1:./[]=;", min_size=1, max_size=12),
    pairs,
)


def test_a_locator_has_three_parts() -> None:
    locator = Locator.parse("tcp/192.168.0.1:7447?rel=1;prio=1-3")
    assert (locator.protocol, locator.address) == ("tcp", "192.168.0.1:7447")
    assert locator.metadata == (("prio", "1-3"), ("rel", "1"))
    assert (locator.get("rel"), locator.get("nothing")) == ("1", None)
    assert (locator.host, locator.port) == ("192.168.0.1", 7447)
    assert str(locator) == "tcp/192.168.0.1:7447?prio=1-3;rel=1"


def test_an_endpoint_keeps_its_config_to_itself() -> None:
    endpoint = EndPoint.parse("tls/[::1]:7447?a=1#so_rcvbuf=9;iface=eth0")
    assert (endpoint.protocol, endpoint.address) == ("tls", "[::1]:7447")
    assert (endpoint.host, endpoint.port) == ("::1", 7447)
    assert endpoint.metadata == (("a", "1"),)
    assert endpoint.config == (("iface", "eth0"), ("so_rcvbuf", "9"))
    assert endpoint.get("iface") == "eth0"
    assert str(endpoint.locator) == "tls/[::1]:7447?a=1"
    assert str(endpoint) == "tls/[::1]:7447?a=1#iface=eth0;so_rcvbuf=9"


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("tcp/a?z=1;a=2#z=1;a=2", "tcp/a?a=2;z=1#a=2;z=1"),
        ("tcp/a?b=1;;c=2", "tcp/a?b=1;c=2"),
        ("tcp/a?b", "tcp/a?b"),
        ("tcp/a?b=", "tcp/a?b"),
        ("tcp/a?b?c", "tcp/a?b?c"),
        ("tcp/a?a=1;a=2", "tcp/a?a=1;a=2"),
        ("tcp/a#c#d", "tcp/a#c#d"),
        ("tcp/a?b=1#c?d", "tcp/a?b=1#c?d"),
        ("unixsock-stream//tmp/a.sock", "unixsock-stream//tmp/a.sock"),
        ("serial//dev/ttyUSB0#baudrate=115200", "serial//dev/ttyUSB0#baudrate=115200"),
    ],
)
def test_text_is_put_in_order(text: str, again: str) -> None:
    assert str(EndPoint.parse(text)) == again
    assert EndPoint.parse(text) == EndPoint.parse(again)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "names no protocol"),
        ("tcp", "names no protocol"),
        ("/x", "names no protocol"),
        ("tcp/", "no address"),
        ("tcp/?a=1", "no address"),
        ("tcp/a?", "nothing after '\\?'"),
        ("tcp/a#", "nothing after '#'"),
        ("tcp/a?=1", "nothing after '\\?'"),
        ("tcp/a?;#b", "nothing after '\\?'"),
        ("tcp/a#c?d", "metadata comes before"),
        ("t?p/a", "cannot hold a '\\?'"),
        ("tcp/" + "a" * 252, "256 bytes"),
        ("tcp/\ud800", "UTF-8"),
    ],
)
def test_text_that_is_no_endpoint_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(LocatorError, match=advice):
        EndPoint.parse(text)


def test_a_locator_has_no_config() -> None:
    with pytest.raises(LocatorError, match="write 'tcp/a:1'"):
        Locator.parse("tcp/a:1#iface=eth0")


@pytest.mark.parametrize(
    "pair", [("", "x"), ("a;b", "x"), ("a=b", "x"), ("a", "x;y"), ("a", "x#y"), ("#a", "x")]
)
def test_parts_that_would_not_come_back_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(LocatorError):
        Locator("tcp", "a:1", (pair,))


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("localhost:7447", "localhost", 7447),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("[::]:65535", "::", 65535),
        ("[fe80::1%eth0]:7447", "fe80::1%eth0", 7447),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, host: str, port: int) -> None:
    assert split_host_port(address) == (host, port)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        ":7447",
        "::1:7447",
        "[]:1",
        "[::1]",
        "a:",
        "a:x",
        "a:-1",
        "a:65536",
        "a:٣",
        "a]:1",
        "a: 1",
    ],
)
def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(LocatorError):
        split_host_port(address)


@given(locators, pairs)
@example(Locator("tcp", "a:1"), (("k", "a?b"),))
@example(Locator("tcp", "a:1", (("m", "1"),)), (("k", "a?b"),))
def test_text_and_pickle_bring_the_same_endpoint_back(
    locator: Locator, config: tuple[tuple[str, str], ...]
) -> None:
    assert Locator.parse(str(locator)) == locator
    assert Locator.parse(str(locator)).metadata == locator.metadata
    assert pickle.loads(pickle.dumps(locator)) == locator
    assert eval(repr(locator)) == locator
    try:
        endpoint = EndPoint(locator, config)
    except LocatorError:
        assert not locator.metadata
        assert any("?" in value for _, value in config)
        return
    assert EndPoint.parse(str(endpoint)) == endpoint
    assert EndPoint.parse(str(endpoint)).config == endpoint.config
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint
    assert hash(eval(repr(endpoint))) == hash(endpoint)


@given(st.text(max_size=30) | st.text("ab/?#=;1:[]", max_size=20))
@example("a/b?c=1#d=2")
def test_any_text_is_an_endpoint_or_one_error(text: str) -> None:
    try:
        endpoint = EndPoint.parse(text)
    except LocatorError:
        return
    assert EndPoint.parse(str(endpoint)) == endpoint
