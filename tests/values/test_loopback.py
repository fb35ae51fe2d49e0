from __future__ import annotations

import pytest

from zenlake.values.loopback import stays_within


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("tcp/127.0.0.1:7447", "tcp/127.0.0.1:40000"),
        ("tcp/[::1]:7447", "tcp/[::1]:40000"),
        ("tcp/[::ffff:127.0.0.1]:7447", "tcp/[::ffff:127.0.0.1]:40000"),
        ("udp/127.0.0.1:7447", "udp/127.0.0.2:40000"),
        ("tcp/192.168.0.5:7447", "tcp/192.168.0.5:40000"),
        ("tcp/[fe80::1%eth0]:7447", "tcp/[fe80::1%eth0]:40000"),
        ("unixsock-stream//tmp/a.sock", "unixsock-stream//tmp/a.sock"),
    ],
)
def test_these_stay_within_the_machine(src: str, dst: str) -> None:
    assert stays_within(src, dst)


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("tcp/192.168.0.5:7447", "tcp/192.168.0.6:40000"),
        ("tcp/127.0.0.1:7447", "tcp/192.168.0.6:40000"),
        ("tls/example.org:7447", "tls/example.org:40000"),
        ("serial//dev/ttyS0", "serial//dev/ttyS0"),
        ("tcp/[::]:7447", "tcp/[fe80::2]:40000"),
        ("", ""),
    ],
)
def test_these_may_not(src: str, dst: str) -> None:
    assert not stays_within(src, dst)
