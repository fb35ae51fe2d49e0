from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable

import pytest

from tests.links.conftest import Run
from tests.links.watching import PATIENCE
from zenlake.errors import LinkError
from zenlake.links import MulticastSockets
from zenlake.links.interfaces import Interface, interfaces
from zenlake.links.multicast import LOOK_AGAIN
from zenlake.scouting import DiscoveredNode, HelloResponder, ScoutSender

Heard = tuple[bytes, tuple[str, int], str]


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Ears:
    """Sockets of scouting on loopback, with all they heard."""

    def __init__(self, port: int, host: str = "224.0.0.224", interface: str = "127.0.0.1") -> None:
        loop = asyncio.get_running_loop()
        self.sockets = MulticastSockets(loop, f"{host}:{port}", interface)
        self.questions: list[Heard] = []
        self.answers: list[Heard] = []
        self._changed = asyncio.Event()
        self.sockets.open(self._question, self._answer)

    def _question(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        self.questions.append((data, address, interface))
        self._changed.set()

    def _answer(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        self.answers.append((data, address, interface))
        self._changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._changed.clear()
                await self._changed.wait()


@pytest.mark.parametrize(
    ("group", "interface"),
    [("224.0.0.224", "127.0.0.1"), ("224.0.0.224", "lo")],
)
def test_a_question_is_heard_and_answered(run: Run, group: str, interface: str) -> None:
    async def scene() -> None:
        port = free_port()
        asker, other = Ears(port, group, interface), Ears(port, group, interface)
        assert asker.sockets.send_to_group(b"anybody?") == 1
        await other.until(lambda: bool(other.questions))
        data, address, name = other.questions[0]
        assert (data, name) == (b"anybody?", "lo")
        assert other.sockets.is_local(address)
        other.sockets.send_to(b"me", address)
        await asker.until(lambda: bool(asker.answers))
        assert asker.answers[0][0] == b"me"
        assert asker.answers[0][1][1] != port  # not from the port of the group
        assert asker.answers[0][2] == "lo"
        assert asker.questions == []  # its own
        for ears in (asker, other):
            ears.sockets.close()
            ears.sockets.close()

    run(scene())


def test_a_group_of_ipv6_is_asked_where_there_is_a_way(run: Run) -> None:
    # Loopback usually has no route for it; an interface that has an address of IPv6 does.
    six = [
        each.name
        for each in interfaces()
        if each.up and each.multicast and any(one.version == 6 for one in each.addresses)
    ]

    async def scene() -> None:
        port = free_port()
        interface = six[0] if six else "lo"
        asker, other = Ears(port, "[ff02::224]", interface), Ears(port, "[ff02::224]", interface)
        if asker.sockets.send_to_group(b"anybody?"):
            await other.until(lambda: bool(other.questions))
            data, address, name = other.questions[0]
            assert (data, name) == (b"anybody?", interface)
            other.sockets.send_to(b"me", address)
            await asker.until(lambda: bool(asker.answers))
            assert asker.questions == []
        asker.sockets.close()
        other.sockets.close()

    run(scene())


def test_two_nodes_find_each_other(run: Run) -> None:
    async def scene() -> None:
        port = free_port()
        asker, other = Ears(port), Ears(port)
        scouting = ScoutSender(b"\x01", 2, 7)
        answering = HelloResponder(b"\x02", 1, lambda: ["tcp/127.0.0.1:7447"])
        scouting.start(0.0)
        asker.sockets.send_to_group(scouting.tick(0.0) or b"")
        await other.until(lambda: bool(other.questions))
        question, address, _ = other.questions[0]
        hello = answering.received(question, other.sockets.is_local(address))
        assert hello is not None
        other.sockets.send_to(hello, address)
        await asker.until(lambda: bool(asker.answers))
        found = scouting.received(asker.answers[0][0], 0.0)
        assert found == [DiscoveredNode(b"\x02", 1, ("tcp/127.0.0.1:7447",))]
        asker.sockets.close()
        other.sockets.close()

    run(scene())


def test_who_does_not_listen_still_asks(run: Run) -> None:
    async def scene() -> None:
        port = free_port()
        other = Ears(port)
        quiet = MulticastSockets(
            asyncio.get_running_loop(), f"224.0.0.224:{port}", "127.0.0.1", listen=False
        )
        quiet.open(lambda *_: pytest.fail("it does not listen"), lambda *_: None)
        other.sockets.send_to_group(b"anybody?")
        quiet.send_to_group(b"you?")
        await other.until(lambda: [each[0] for each in other.questions] == [b"you?"])
        quiet.close()
        other.sockets.close()
        assert quiet.send_to_group(b"after the end") == 0
        quiet.send_to(b"after the end", ("127.0.0.1", port))

    run(scene())


def test_unknown_interfaces_are_passed_over(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        port = free_port()
        with caplog.at_level(logging.WARNING, "zenlake.links"):
            ears = Ears(port, interface="nosuch0, 127.0.0.1,::1")
        assert ears.sockets.send_to_group(b"x") == 1
        assert "'nosuch0'" in caplog.text
        assert "'::1'" in caplog.text  # a group of IPv4 has no use for it
        ears.sockets.close()
        with pytest.raises(LinkError, match="no interface of 'nosuch0'"):
            Ears(port, interface="nosuch0")

    run(scene())


@pytest.mark.parametrize("group", ["127.0.0.1:7446", "somewhere:7446"])
def test_what_is_no_group_is_refused(run: Run, group: str) -> None:
    async def scene() -> None:
        with pytest.raises(LinkError, match="multicast group"):
            MulticastSockets(asyncio.get_running_loop(), group)

    run(scene())


def test_a_failed_join_is_a_warning(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        with caplog.at_level(logging.WARNING, "zenlake.links"):
            # Nobody can be in a group twice over one interface.
            ears = Ears(free_port(), interface="127.0.0.1,127.0.0.1")
        assert "cannot join 224.0.0.224 over" in caplog.text
        assert ears.sockets.send_to_group(b"x") == 2
        ears.sockets.close()

    run(scene())


def test_auto_takes_what_is_up_and_can_do_it(run: Run) -> None:
    def at(text: str) -> tuple[ipaddress.IPv4Address, ...]:
        return (ipaddress.IPv4Address(text),)

    machine = (
        Interface("lo", 1, True, True, True, at("127.0.0.1")),
        Interface("down0", 2, False, False, True, at("10.0.0.1")),
        Interface("tun0", 3, True, False, False, at("10.0.0.2")),
        Interface("eth0", 4, True, False, True, at("10.0.0.3") + at("10.0.0.4")),
        Interface("bare0", 5, True, False, True, ()),
        Interface("wlan0", 6, True, False, True, at("10.1.0.3")),
    )
    present = list(machine)

    async def scene() -> None:
        sockets = MulticastSockets(asyncio.get_running_loop(), look=lambda: tuple(present))
        wired = [("eth0", 4, "10.0.0.3"), ("wlan0", 6, "10.1.0.3")]
        assert sockets._chosen() == [("lo", 1, "127.0.0.1"), *wired]
        present[0] = present[0]._replace(multicast=False)
        assert sockets._chosen() == wired
        del present[1:]  # loopback alone carries multicast without saying so
        assert sockets._chosen() == [("lo", 1, "127.0.0.1")]
        present.clear()
        assert sockets._chosen() == [("any", 0, "0.0.0.0")]

    run(scene())


def test_the_nearest_interface_answers(run: Run) -> None:
    async def scene() -> None:
        port = free_port()
        ears = Ears(port, interface="127.0.0.1,eth0,nosuch0")
        near = ears.sockets._nearest("127.0.0.9")
        assert near is not None
        assert near.host == "127.0.0.1"
        assert ears.sockets._nearest("no address") is None
        ears.sockets.send_to(b"x", ("255.255.255.255", port))  # not allowed, and not raised
        ears.sockets.close()

    run(scene())


def test_who_asks_from_this_machine_is_known_by_any_of_its_addresses(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [Interface("eth0", 4, True, False, True, (ipaddress.IPv4Address("10.0.0.3"),))]

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        now = 100.0
        monkeypatch.setattr(loop, "time", lambda: now)
        sockets = MulticastSockets(loop, look=lambda: tuple(own))
        for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.0.0.3"):
            assert sockets.is_local((host, 1)), host
        for host in ("10.0.0.4", "192.168.0.1", "name"):
            assert not sockets.is_local((host, 1)), host
        # An address that came meanwhile is seen after a while, and not looked for each time.
        own[0] = own[0]._replace(addresses=(ipaddress.IPv4Address("10.0.0.4"),))
        assert not sockets.is_local(("10.0.0.4", 1))
        now += LOOK_AGAIN
        assert sockets.is_local(("10.0.0.4", 1))
        assert not sockets.is_local(("10.0.0.3", 1))

    run(scene())
