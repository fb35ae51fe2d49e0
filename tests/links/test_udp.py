from __future__ import annotations

import asyncio
import socket

import pytest

from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, connected, pair
from zenlake.errors import LinkError
from zenlake.links import udp
from zenlake.links.udp import UdpListener


@pytest.mark.parametrize("endpoint", ["udp/127.0.0.1:0", "udp/[::1]:0"])
def test_a_datagram_is_a_datagram(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        largest = bytes(here.link.mtu)
        assert here.link.mtu == there.link.mtu == 65487
        for datagram in (b"one", b"two", largest):
            assert here.link.send(datagram) == len(datagram)
        await there.until(lambda: len(there.datagrams) == 4)
        assert there.datagrams == [b"knock", b"one", b"two", largest]
        assert there.link.send(b"back") == 4
        await here.until(lambda: here.datagrams == [b"back"])
        assert here.link.dst == there.link.src
        assert here.link.src == there.link.dst
        assert here.link.interfaces == there.link.interfaces == ["lo"]
        for link in (here.link, there.link):
            assert (link.stream, link.reliable, link.thread_safe) == (False, False, False)
        here.link.close()
        visitors.close()

    run(scene())


def test_each_source_has_its_link(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("udp/[::]:0")
        port = listening.locators()[-1].rpartition(":")[2]
        four = await connected(f"udp/127.0.0.1:{port}")
        six = await connected(f"udp/[::1]:{port}")
        four.link.send(b"four")
        await visitors.until(1)
        six.link.send(b"six")
        await visitors.until(2)
        four.link.send(b"again")
        await visitors.came[0].until(lambda: len(visitors.came[0].datagrams) == 2)
        assert [each.datagrams for each in visitors.came] == [[b"four", b"again"], [b"six"]]
        assert visitors.came[0].link.dst == four.link.src
        visitors.came[1].link.send(b"for six")
        await six.until(lambda: six.datagrams == [b"for six"])
        assert four.datagrams == []
        four.link.close()
        six.link.close()
        visitors.close()

    run(scene())


def test_who_only_knocks_is_counted_and_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "MAX_KNOCKING", 3)

    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("udp/127.0.0.1:0")
        assert isinstance(listening, UdpListener)
        place = listening.locators()[0]
        first = await connected(place)
        first.link.send(b"first")
        await visitors.until(1)
        visitors.came[0].link.admit()
        visitors.came[0].link.admit()
        assert listening.knocking == 0
        crowd = [await connected(place) for _ in range(5)]
        for guest in crowd:
            guest.link.send(b"knock")
        first.link.send(b"done")  # comes last: the others have been seen by then
        await visitors.came[0].until(lambda: visitors.came[0].data == b"firstdone")
        assert len(visitors.came) == 4
        assert (listening.knocking, listening.refused) == (3, 2)
        visitors.came[1].link.close()
        visitors.came[1].link.admit()
        assert listening.knocking == 2
        crowd[4].link.send(b"now")
        await visitors.until(5)
        for guest in (*crowd, first):
            guest.link.close()
        visitors.close()
        assert listening.knocking == 0

    run(scene())


def test_a_source_that_was_closed_may_come_back_as_new(run: Run) -> None:
    async def scene() -> None:
        visitors, here, there = await pair("udp/127.0.0.1:0")
        there.link.close()
        there.link.close()
        with pytest.raises(LinkError, match="the link is closed"):
            there.link.send(b"x")
        here.link.send(b"again")
        await visitors.until(2)
        assert visitors.came[1].datagrams == [b"again"]
        assert there.datagrams == [b"knock"]
        here.link.close()
        visitors.close()

    run(scene())


def test_a_closed_listener_serves_those_who_are_there(run: Run) -> None:
    async def scene() -> None:
        visitors, here, there = await pair("udp/127.0.0.1:0")
        stranger = await connected(here.link.dst)
        visitors.listening.close()
        assert visitors.listening.locators() == []
        stranger.link.send(b"may I?")
        here.link.send(b"still here")
        await there.until(lambda: there.datagrams[1:] == [b"still here"])
        assert len(visitors.came) == 1
        there.link.close()
        here.link.send(b"anyone?")
        await here.until(lambda: bool(here.lost))
        (error,) = here.lost
        assert isinstance(error, LinkError)
        assert "Connection refused" in str(error)
        here.link.close()
        stranger.link.close()
        visitors.close()

    run(scene())


def test_what_comes_before_the_start_is_kept_within_bounds(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors(start=False)
        listening = await visitors.listen("udp/127.0.0.1:0")
        early, other = (
            await connected(listening.locators()[0]),
            await connected(listening.locators()[0]),
        )
        for datagram in (b"1", b"2", b"3"):
            early.link.send(datagram)
        other.link.send(b"last")
        await visitors.until(2)
        there = visitors.came[0]
        there.link.start(there._on_data, there._on_lost)
        assert there.datagrams == [b"1", b"2"]
        assert isinstance(there.link, udp._SourceLink)
        assert there.link.dropped == 1
        early.link.close()
        other.link.close()
        visitors.close()

    run(scene())


def test_paused_the_connected_side_keeps_and_the_shared_one_drops(run: Run) -> None:
    async def scene() -> None:
        visitors, here, there = await pair("udp/127.0.0.1:0")
        here.link.pause()
        there.link.send(b"kept")
        here.link.resume()
        await here.until(lambda: here.datagrams == [b"kept"])
        there.link.pause()
        here.link.send(b"dropped")
        other = await connected(here.link.dst)
        other.link.send(b"after")
        await visitors.until(2)
        there.link.resume()
        here.link.send(b"heard")
        await there.until(lambda: there.datagrams == [b"knock", b"heard"])
        here.link.close()
        other.link.close()
        visitors.close()

    run(scene())


def test_both_kinds_say_when_they_are_writable(run: Run) -> None:
    async def scene() -> None:
        visitors, here, there = await pair("udp/127.0.0.1:0")
        for link in (here.link, there.link):
            writable = asyncio.Event()
            link.when_writable(lambda: pytest.fail("an earlier callback was not replaced"))
            link.when_writable(writable.set)
            async with asyncio.timeout(PATIENCE):
                await writable.wait()
            link.when_writable(lambda: pytest.fail("called after close"))
            link.close()
            link.when_writable(lambda: pytest.fail("called after close"))
        visitors.close()

    run(scene())


def test_a_datagram_that_is_too_large_is_refused(run: Run) -> None:
    async def scene() -> None:
        visitors, here, there = await pair("udp/127.0.0.1:0")
        for link in (here.link, there.link):
            with pytest.raises(LinkError, match="70000 bytes"):
                link.send(bytes(70000))
        here.link.close()
        visitors.close()

    run(scene())


def test_a_full_system_takes_nothing(run: Run) -> None:
    class Full:
        def send(self, _: bytes) -> int:
            raise OSError(105, "No buffer space available")

    assert udp._sent(Full(), b"x", None, "udp/a:1") == 0  # type: ignore[arg-type]


def test_options_and_errors_are_those_of_tcp(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("udp/127.0.0.1:0#so_rcvbuf=20000")
        here = await connected(listening.locators()[0] + "#bind=127.0.0.2:0;dscp=16")
        assert here.link.src.startswith("udp/127.0.0.2:")
        here.link.close()
        with pytest.raises(LinkError, match=r"cannot listen at 127\.0\.0\.1:\d+: .*in use"):
            await Visitors().listen(listening.locators()[0])
        with pytest.raises(LinkError, match=r"'no\.\.where' does not resolve"):
            await connected("udp/no..where:7447")
        with pytest.raises(LinkError, match=r"cannot connect to .*No such device"):
            await connected("udp/127.0.0.1:7#iface=nosuch0")
        visitors.close()

    run(scene())


def test_sources_are_forgotten_with_their_sessions(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("udp/127.0.0.1:0")
        assert isinstance(listening, UdpListener)
        for number in range(1, 150):  # more than may knock at once
            guest = await connected(listening.locators()[0])
            guest.link.send(b"hi")
            await visitors.until(number)
            visitors.came[-1].link.close()
            guest.link.close()
        assert listening._sockets[0]._links == {}
        assert listening.refused == 0
        visitors.close()

    run(scene())


def test_the_largest_batch_fits_a_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert sock.sendto(bytes(udp.MTU), ("127.0.0.1", 9)) == udp.MTU
