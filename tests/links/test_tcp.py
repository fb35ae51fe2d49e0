from __future__ import annotations

import asyncio
import socket

import pytest

from tests.links.conftest import Run
from tests.links.watching import Visitors, connected
from tests.ports import free_port
from zenlake.errors import LinkError
from zenlake.links.inet import bound, listening_locators
from zenlake.links.stream import StreamLink
from zenlake.values.locator import EndPoint


def sock_of(link: object) -> socket.socket:
    assert isinstance(link, StreamLink)
    return link._sock


def test_small_words_are_not_held_back(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        here = await connected(listening.locators()[0])
        await visitors.until(1)
        for link in (here.link, visitors.came[0].link):
            assert sock_of(link).getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        here.link.close()
        visitors.close()

    run(scene())


def test_every_address_takes_both_families(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/[::]:0")
        places = listening.locators()
        port = places[0].rpartition(":")[2]
        assert not [place for place in places if "[::]" in place or "fe80" in place]
        four = await connected(f"tcp/127.0.0.1:{port}")
        six = await connected(f"tcp/[::1]:{port}")
        await visitors.until(2)
        assert {four.link.src, six.link.src} == {each.link.dst for each in visitors.came}
        four.link.close()
        six.link.close()
        visitors.close()

    run(scene())


def test_every_address_of_the_old_kind_is_expanded(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/0.0.0.0:0")
        assert listening.locators()
        assert not [place for place in listening.locators() if "[" in place or "0.0.0.0" in place]
        visitors.close()

    run(scene())


def test_without_ipv6_every_address_means_those_there_are(run: Run) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        endpoint = EndPoint.parse("tcp/[::]:0")
        [sock] = await bound(endpoint, socket.SOCK_STREAM, loop, has_ipv6=False)
        with sock:
            assert sock.family == socket.AF_INET
            assert not [place for place in listening_locators("tcp", sock) if "[" in place]

    run(scene())


def test_a_name_is_tried_at_all_its_addresses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        port = int(listening.locators()[0].rpartition(":")[2])
        answers = [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

        async def resolve_later(host: str, *args: object, **options: object) -> object:
            return answers

        loop = asyncio.get_running_loop()
        if isinstance(loop, asyncio.BaseEventLoop):
            monkeypatch.setattr(loop, "getaddrinfo", resolve_later)
            here = await connected(f"tcp/both.example:{port}")
        else:  # a loop of uvloop cannot be given another resolver
            here = await connected(f"tcp/localhost:{port}")
        assert here.link.dst == f"tcp/127.0.0.1:{port}"
        here.link.close()
        visitors.close()

    run(scene())


def test_an_error_says_what_was_tried(run: Run) -> None:
    async def scene() -> None:
        port = free_port()
        with pytest.raises(LinkError) as failure:
            await connected(f"tcp/127.0.0.1:{port}#so_sndbuf=4096")
        assert f"tcp/127.0.0.1:{port}" in str(failure.value)
        assert "Connection refused" in str(failure.value)
        with pytest.raises(LinkError, match=r"'no\.\.where' does not resolve"):
            await connected("tcp/no..where:7447")

    run(scene())


def test_one_who_does_not_answer_is_given_up(run: Run) -> None:
    async def scene() -> None:
        # A full queue swallows the next request to connect.
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            waiting = []
            for _ in range(4):
                sock = socket.socket()
                sock.setblocking(False)
                sock.connect_ex(deaf.getsockname())
                waiting.append(sock)
            port = deaf.getsockname()[1]
            with pytest.raises(LinkError, match="no answer in time"):
                await connected(f"tcp/127.0.0.1:{port}", timeout=0.05)
            for sock in waiting:
                sock.close()

    run(scene())


def test_a_connection_attempt_can_be_cancelled(run: Run) -> None:
    async def scene() -> None:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            waiting = []
            for _ in range(4):
                sock = socket.socket()
                sock.setblocking(False)
                sock.connect_ex(deaf.getsockname())
                waiting.append(sock)
            task = asyncio.ensure_future(connected(f"tcp/127.0.0.1:{deaf.getsockname()[1]}"))
            for _ in range(5):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for sock in waiting:
                sock.close()

    run(scene())


def test_a_taken_address_is_refused_by_name(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        with pytest.raises(LinkError, match=r"cannot listen at 127\.0\.0\.1:\d+: .*in use"):
            await Visitors().listen(listening.locators()[0])
        visitors.close()

    run(scene())


def test_an_address_can_be_listened_at_again_at_once(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        place = listening.locators()[0]
        here = await connected(place)
        await visitors.until(1)
        visitors.close()
        await here.until(lambda: bool(here.lost))
        here.link.close()
        again = Visitors()
        await again.listen(place)
        again.close()

    run(scene())


def test_options_reach_the_socket(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0#so_rcvbuf=20000")
        place = listening.locators()[0]
        assert "#" not in place
        plain = await connected(place)
        here = await connected(
            place + "#so_sndbuf=20000;so_rcvbuf=30000;dscp=0x20|8;bind=127.0.0.2:0"
        )
        sock = sock_of(here.link)
        # Linux gives twice what it is asked for.
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (20000, 40000)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (30000, 60000)
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x28
        assert here.link.src.startswith("tcp/127.0.0.2:")
        here.link.close()
        plain.link.close()
        visitors.close()
        await visitors.listen("tcp/[::1]:0#dscp=8")
        here = await connected(visitors.listening.locators()[0] + "#dscp=4")
        assert sock_of(here.link).getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 4
        here.link.close()
        visitors.close()

    run(scene())


def test_an_interface_is_used_or_refused(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0#iface=lo")
        here = await connected(listening.locators()[0] + "#iface=lo")
        await visitors.until(1)
        here.link.close()
        with pytest.raises(LinkError, match="No such device"):
            await connected(listening.locators()[0] + "#iface=nosuch0")
        with pytest.raises(LinkError, match="No such device"):
            await Visitors().listen("tcp/127.0.0.1:0#iface=nosuch0")
        visitors.close()

    run(scene())
