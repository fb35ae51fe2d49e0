from __future__ import annotations

import ipaddress
import socket

import pytest

from zenlake.links import interfaces as module
from zenlake.links.interfaces import interfaces, interfaces_at, local_addresses


def test_loopback_is_there_with_its_address() -> None:
    (loopback,) = [each for each in interfaces() if each.loopback]
    assert loopback.up
    assert loopback.number == socket.if_nametoindex(loopback.name)
    assert ipaddress.ip_address("127.0.0.1") in loopback.addresses
    assert interfaces_at("127.0.0.1") == [loopback.name]


def test_an_address_that_is_not_here_has_no_interface() -> None:
    assert interfaces_at("192.0.2.77") == []
    assert interfaces_at("not an address") == []


@pytest.mark.parametrize("version", [None, 4, 6])
def test_loopback_comes_last_and_link_local_not_at_all(version: int | None) -> None:
    addresses = local_addresses(version)
    near = [each.is_loopback for each in addresses]
    assert near == sorted(near)
    assert True in near
    assert not [each for each in addresses if each.version == 6 and each.is_link_local]
    assert {each.version for each in addresses} <= ({4, 6} if version is None else {version})


def test_a_system_without_the_call_is_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> module.Interfaces:
        raise AttributeError("getifaddrs")

    monkeypatch.setattr(module, "_from_c_library", missing)
    assert ipaddress.ip_address("127.0.0.1") in local_addresses()

    def silent(*_: object) -> list[object]:
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    assert local_addresses() == [ipaddress.ip_address("127.0.0.1")]
