from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.sessions.connect import DIALS, MOST_UNDER_WAY, ConnectPlan
from zenlake.scouting.believed import believed


@pytest.mark.parametrize(
    "text",
    [
        "tls/10.0.0.7:7447#root_ca_certificate_file=/etc/shadow",
        "tcp/10.0.0.7:7447#iface=eth0",
        "unixsock-stream//var/run/docker.sock",
        "unixpipe//tmp/pipe",
        "serial//dev/ttyS0",
        "vsock/1:2",
        "tcp/224.0.0.1:7447",
        "tcp/0.0.0.0:7447",
        "tcp/[::]:7447",
        "tcp/255.255.255.255:80",
        "tcp/127.0.0.1:22",
        "tcp/[::ffff:127.0.0.1]:22",
        "tcp/[::1]:22",
        "tcp/localhost:22",
        "tcp/10.0.0.7:0",
        "tcp/10.0.0.7:99999",
        "tcp/",
        "nonsense",
        "",
    ],
)
def test_what_a_stranger_may_not_have_us_dial(text: str) -> None:
    assert believed([text], within=False) == []


def test_addresses_of_the_network_are_dialled_and_loopback_for_those_on_this_machine() -> None:
    told = ["tcp/10.0.0.7:7447", "tls/[fe80::1%eth0]:7447", "quic/robot.example:7447"]
    assert believed(told, within=False) == told
    assert believed(["tcp/127.0.0.1:7447"], within=True) == ["tcp/127.0.0.1:7447"]
    nets = ("10.0.0.0/8",)
    assert believed([*told, "tcp/192.168.0.1:1"], False, nets) == ["tcp/10.0.0.7:7447"]


@given(
    st.sampled_from(["tcp", "udp", "tls", "quic", "ws", "wss", "serial", "unixpipe", "TCP", ""]),
    st.sampled_from(["10.0.0.7", "[fe80::1]", "robot.example", "224.0.0.1", ""]),
    st.integers(-1, 70_000),
    st.sampled_from(["", "#iface=eth0", "#", "?rel=1"]),
    st.booleans(),
)
def test_only_a_plain_locator_of_a_network_is_believed(
    protocol: str, host: str, port: int, more: str, within: bool
) -> None:
    text = f"{protocol}/{host}:{port}{more}"
    plain = (
        protocol in ("tcp", "udp", "tls", "quic", "ws", "wss")
        and host in ("10.0.0.7", "[fe80::1]", "robot.example")
        and 1 <= port <= 65535
        and "#" not in more
    )
    assert believed([text], within) == ([text] if plain else [])


@given(st.text(), st.booleans())
def test_whatever_is_told_is_believed_or_not(text: str, within: bool) -> None:
    assert believed([text, "tcp/10.0.0.7:7447"], within)[-1] == "tcp/10.0.0.7:7447"


def test_others_decide_only_so_many_of_our_connections() -> None:
    plan = ConnectPlan(single=False)
    begun = [plan.find((f"tcp/10.0.0.7:{n}",), n.to_bytes(2, "big")) for n in range(1, 500)]
    assert sum(one is not None for one in begun) == MOST_UNDER_WAY
    assert plan.not_dialled == 499 - MOST_UNDER_WAY
    now, count = 0.0, 0
    plan = ConnectPlan(single=False)
    while now < 60.0:
        found = plan.find(("tcp/10.0.0.7:1",), count.to_bytes(3, "big"), now)
        if found is not None:
            count += 1
            plan.over(found.id, False, "refused", now)
        now += 0.01
    assert count < DIALS + 61 * 16
