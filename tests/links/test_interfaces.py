from __future__ import annotations

import ipaddress
import socket

import pytest

from zenlake.links.interfaces import (
    Interface,
    Interfaces,
    interfaces,
    interfaces_at,
    local_addresses,
)


def test_loopback_is_there_with_its_address() -> None:
    (loopback,) = [each for each in interfaces() if each.loopback]
    assert loopback.up
    assert loopback.number == socket.if_nametoindex(loopback.name)
    assert ipaddress.ip_address("127.0.0.1") in loopback.addresses
    assert interfaces_at("127.0.0.1") == [loopback.name]


def test_an_address_that_is_not_here_has_no_interface() -> None:
    assert interfaces_at("192.0.2.77") == []
    assert interfaces_at("not an address") == []


def at(*texts: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    return tuple(ipaddress.ip_address(text) for text in texts)


def test_others_are_told_what_they_can_use() -> None:
    loopback = Interface("lo", 1, True, True, False, at("127.0.0.1", "::1"))
    machine = (
        loopback,
        Interface("eth0", 2, True, False, True, at("fd00::2", "10.0.0.1", "fe80::1")),
        Interface("eth1", 3, False, False, True, at("10.0.0.2")),
    )
    assert local_addresses(present=machine) == [*at("10.0.0.1", "fd00::2")]
    assert local_addresses(4, machine) == [*at("10.0.0.1")]
    assert local_addresses(6, machine) == [*at("fd00::2")]
    assert local_addresses(present=(loopback,)) == [*at("127.0.0.1", "::1")]
    assert local_addresses(6, (loopback,)) == [*at("::1")]


def test_a_system_without_the_call_is_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Interfaces:
        raise AttributeError("getifaddrs")

    assert local_addresses(present=interfaces(missing))

    def silent(*_: object) -> list[object]:
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    assert local_addresses(present=interfaces(missing)) == [*at("127.0.0.1")]
