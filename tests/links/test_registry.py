from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import LocatorError
from zenlake.links import PROTOCOLS, check, supports
from zenlake.links.options import only_inet, parse_integer, traffic_class
from zenlake.links.registry import NOT_YET
from zenlake.values.locator import EndPoint


def refused(endpoint: str, side: str = "connect") -> str:
    with pytest.raises(LocatorError) as refusal:
        check(EndPoint.parse(endpoint), "listen" if side == "listen" else "connect")
    return str(refusal.value)


@pytest.mark.parametrize("protocol", [*NOT_YET, "carrier-pigeon"])
def test_a_protocol_that_is_not_spoken_is_refused_by_name(protocol: str) -> None:
    message = refused(f"{protocol}/a:1")
    assert f"'{protocol}'" in message
    assert "serial, tcp, tls, udp, unixsock-stream, ws, wss" in message
    assert not supports(f"{protocol}/a:1")


@pytest.mark.parametrize(
    ("endpoint", "option"),
    [
        ("tcp/a:1#nodelay=true", "nodelay"),
        ("udp/a:1#root_ca_certificate_file=x", "root_ca_certificate_file"),
        ("unixsock-stream/a#so_sndbuf=5", "so_sndbuf"),
    ],
)
def test_an_option_that_is_not_honoured_is_refused_by_name(endpoint: str, option: str) -> None:
    message = refused(endpoint)
    assert f"'{option}'" in message
    for honoured in PROTOCOLS[endpoint.partition("/")[0]].options:
        assert honoured.name in message


def test_an_option_for_one_side_is_refused_on_the_other() -> None:
    check(EndPoint.parse("tcp/a:1#bind=127.0.0.1:0"), "connect")
    message = refused("tcp/a:1#bind=127.0.0.1:0", "listen")
    assert "'bind'" in message
    assert "so_sndbuf" in message


@pytest.mark.parametrize(
    "option",
    [
        "so_sndbuf=0",
        "so_rcvbuf=1e3",
        "so_rcvbuf=99999999999",
        "dscp=256",
        "dscp=fast",
        "dscp=",
        "iface=",
        "bind=127.0.0.1",
        "retry_period_init_ms=soon",
        "retry_period_increase_factor=0.5",
        "retry_period_increase_factor=inf",
        "retry_period_increase_factor=x",
        "exit_on_failure=yes",
    ],
)
def test_a_value_that_is_none_is_refused_with_advice(option: str) -> None:
    message = refused(f"tcp/a:1#{option}")
    assert option in message
    assert "write" in message


def test_the_options_of_retrying_are_accepted_everywhere() -> None:
    retry = "retry_period_init_ms=10;retry_period_max_ms=99;retry_period_increase_factor=1.5"
    for name in PROTOCOLS:
        check(EndPoint.parse(f"{name}/a:1#{retry};exit_on_failure=false"), "listen")


def test_an_interface_and_an_address_cannot_both_be_chosen() -> None:
    assert "'iface' or 'bind'" in refused("tcp/a:1#iface=lo;bind=127.0.0.1:0")


@pytest.mark.parametrize(
    ("endpoint", "word"),
    [
        ("tcp/a:1?prio=3-1", "'prio=3-1'"),
        ("tcp/a:1?prio=8", "'prio=8'"),
        ("tcp/a:1?rel=2", "'rel=2'"),
        ("udp/a:1?rel=1", "'rel=1'"),
    ],
)
def test_metadata_that_is_not_honoured_is_refused_by_name(endpoint: str, word: str) -> None:
    assert word in refused(endpoint)
    assert not supports(endpoint)


def test_metadata_that_holds_anyway_is_accepted() -> None:
    assert supports("tcp/a:1?rel=1")
    assert supports("udp/a:1?rel=0")


def test_an_address_without_a_port_is_refused() -> None:
    assert "no port" in refused("tcp/somewhere")
    assert not supports("tcp/somewhere")
    assert supports("unixsock-stream/somewhere")


@pytest.mark.parametrize(("text", "byte"), [("8", 8), ("0x20", 32), ("4|0x10", 20), ("-1", None)])
def test_traffic_classes_are_read(text: str, byte: int | None) -> None:
    assert traffic_class(text) == byte


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_is_not(text: str) -> None:
    number = parse_integer(text)
    assert number is None or (str(number) == text.lstrip("0") or number == 0)
    byte = traffic_class(text)
    assert byte is None or 0 <= byte <= 255


@given(st.text(max_size=40))
def test_whatever_another_node_calls_itself_is_supported_or_not(text: str) -> None:
    assert supports(text) in (True, False)
    assert supports("tcp/" + text) in (True, False)


def test_a_protocol_that_the_configuration_does_not_allow_is_refused() -> None:
    allowed = LinkSettings(protocols=("tls", "quic"))
    check(EndPoint.parse("tls/a:1"), "connect", allowed)
    with pytest.raises(LocatorError, match=r"'tcp' is not among .*which allows: tls, quic"):
        check(EndPoint.parse("tcp/a:1"), "listen", allowed)


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ("", {"so_sndbuf": "20000", "so_rcvbuf": "30000"}),
        ("#iface=lo;retry_period_init_ms=5;so_sndbuf=9000", {"so_sndbuf": "9000", "iface": "lo"}),
    ],
)
def test_the_buffers_of_the_configuration_count_unless_the_endpoint_names_its_own(
    options: str, sizes: dict[str, str]
) -> None:
    said = only_inet(EndPoint.parse(f"tcp/a:1{options}"), 20_000, 30_000)
    assert dict(said.config) == {"so_rcvbuf": "30000"} | sizes
