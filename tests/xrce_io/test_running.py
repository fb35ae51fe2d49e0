"""Clients and a broker over real sockets."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import SECONDS
from tests.xrce_io.lossy import Relay
from zenlake import xrce
from zenlake.errors import ClosedError, LocalError, Timeout
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.client import DeclarationRefused
from zenlake.xrce.outside import DurableValues
from zenlake.xrce_io.brokering import KNOCKING_MAX, RunningBroker
from zenlake.xrce_io.volume import TieredValues, VolumeValues


@pytest.mark.parametrize("first", ["udp", "tcp"])
@pytest.mark.parametrize("second", ["udp", "tcp"])
def test_two_programs_share_a_resource(broker: RunningBroker, first: str, second: str) -> None:
    places = dict(zip(("udp", "tcp"), broker.locators(), strict=True))
    with xrce.open(places[first]) as one, xrce.open(places[second]) as other:
        publisher = one.publisher("/house/light")
        assert not publisher.put(b"nobody hears")
        lights = other.subscriber("/house/*")
        publisher.wait()
        for i in range(500):
            assert publisher.put(b"%d" % i)
        assert [lights.recv(SECONDS) for _ in range(500)] == [
            ("house/light", b"%d" % i) for i in range(500)
        ]
        large = secrets.token_bytes(200_000)
        one.write("/house/picture", large)
        assert lights.recv(SECONDS) == ("house/picture", large)
        assert one.ping() < 10


def test_every_mode_and_a_selection(broker: RunningBroker) -> None:
    udp, _ = broker.locators()
    with xrce.open(udp) as one, xrce.open(udp) as other:
        kept = other.subscriber("/x", "pull")
        later = other.subscriber("/y", "periodic-push", period=200, duration=100)
        chosen = other.selection("/z?{n > %0}", parameters=("3",))
        for name in "/x", "/y":
            one.write(name, b"1")
        for n in (3, 4):
            one.write("/z", b'{"n": %d}' % n)
        one.flushed()
        assert kept.pull() == [("x", b"1")]
        assert later.recv(SECONDS) == ("y", b"1")
        assert chosen.recv(SECONDS) == ("z", b'{"n": 4}')
        with pytest.raises(DeclarationRefused, match="invalid"):
            other.subscriber("/w", "periodic-pull", period=10, duration=10)
        kept.undeclare()
        with pytest.raises(Timeout):
            chosen.recv(0.01)


def test_the_same_awaitable(broker: RunningBroker) -> None:
    async def talk() -> list[tuple[str, bytes]]:
        udp, tcp = broker.locators()
        got: list[tuple[str, bytes]] = []
        async with await xrce.aio.open(udp) as one, await xrce.aio.open(tcp) as other:
            await other.subscriber("/x", lambda name, payload: got.append((name, payload)))
            publisher = await one.publisher("/x")
            await one.matching(publisher)
            for i in range(10):
                assert await one.put(publisher, b"%d" % i)
            await one.flushed()
            await other.ping()
            await other.ping()
        return got

    assert asyncio.run(talk()) == [("x", b"%d" % i) for i in range(10)]


def test_a_fifth_of_all_datagrams_may_be_lost_each_way(broker: RunningBroker) -> None:
    udp, tcp = broker.locators()
    with Relay(udp, 0.2) as relay, xrce.open(tcp) as other:
        with xrce.open(relay.place, timeout=SECONDS) as one:
            lights = other.subscriber("/x")
            publisher = one.publisher("/x")
            publisher.wait()
            for i in range(300):
                publisher.put(b"%d" % i)
                if i % 50 == 0:
                    one.flushed(SECONDS)
            one.flushed(SECONDS)
            assert [lights.recv(SECONDS)[1] for _ in range(300)] == [b"%d" % i for i in range(300)]
        assert relay.lost > 5


def test_a_small_mtu_is_kept_on_the_wire(tmp_path: Path) -> None:
    running = RunningBroker(BrokerOptions(b"brokerid", mtu=20))
    running.start(["udp/127.0.0.1:0"])
    try:
        (udp,) = running.locators()
        with (
            Relay(udp, 0.0) as relay,
            xrce.open(relay.place, mtu=20, pid=b"sens", conduits=1, sn_bits=7) as sensor,
            xrce.open(relay.place, mtu=20, pid=b"disp", conduits=1, sn_bits=7) as display,
        ):
            readings = display.subscriber(2)
            publisher = sensor.publisher(2)
            publisher.wait()
            for i in range(300):
                publisher.put(b"%16d" % i)
            assert [int(readings.recv(SECONDS)[1]) for _ in range(300)] == list(range(300))
    finally:
        running.close()


def test_a_broker_that_stops_says_so(broker: RunningBroker) -> None:
    udp, _ = broker.locators()
    session = xrce.open(udp)
    broker.close()
    with pytest.raises(ClosedError, match="closed"):
        session.ping()
    session.close()


def test_nobody_there_is_told_in_time() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(Timeout, match="did not answer within"):
            xrce.open(f"udp/127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)


def test_a_broker_that_starts_after_its_client_is_found() -> None:
    port = free_port(socket.SOCK_DGRAM)
    running = RunningBroker(BrokerOptions(b"brokerid"))
    with ThreadPoolExecutor(1) as program:
        opening = program.submit(xrce.open, f"udp/127.0.0.1:{port}", timeout=SECONDS)
        # The port is nobody's: the system says so to whoever sends there.
        with pytest.raises(TimeoutError):
            opening.result(0.3)
        running.start([f"udp/127.0.0.1:{port}"])
        try:
            with opening.result(SECONDS) as session:
                assert session.ping() < 10
        finally:
            running.close()


def test_a_broker_is_found_by_asking(broker: RunningBroker) -> None:
    udp, tcp = broker.locators()
    for place in (udp, tcp):
        (found,) = xrce.scout(place)
        assert found.mask == 1


def test_a_serial_line_carries_a_session() -> None:
    (a, held_a), (b, held_b) = os.openpty(), os.openpty()
    stop = threading.Event()

    def carry(source: int, target: int) -> None:
        while not stop.is_set():
            try:
                os.write(target, os.read(source, 4096))
            except OSError:
                return

    for ends in ((a, b), (b, a)):
        threading.Thread(target=carry, args=ends, daemon=True).start()
    running = RunningBroker(BrokerOptions(b"brokerid"))
    running.start([f"serial/{os.ttyname(held_a)}#baudrate=115200"])
    try:
        with xrce.open(f"serial/{os.ttyname(held_b)}#baudrate=115200") as session:
            kept = session.subscriber("/x#transient", "pull")
            assert session.ping() < 10
            session.write("/y#transient", b"1")
            session.flushed()
            assert session.selection("/y#transient", "pull").pull() == [("y", b"1")]
            assert kept.pull() == []
    finally:
        stop.set()
        running.close()
        for fd in (a, held_a, b, held_b):
            os.close(fd)


def test_persistent_values_outlive_the_broker(tmp_path: Path) -> None:
    file = str(tmp_path / "values" / "z18.sqlite")
    for expected in ([], [("x", b"kept")]):
        volume = VolumeValues.in_file(file)
        running = RunningBroker(
            BrokerOptions(b"brokerid"), values=TieredValues(DurableValues(), volume)
        )
        running.start(["udp/127.0.0.1:0"])
        with xrce.open(running.locators()[0]) as session:
            found = session.subscriber("/**#{transient,persistent}", "pull").pull()
            assert found == expected
            session.write("/x#persistent", b"kept")
            session.write("/y#transient", b"gone")
            session.flushed()
        running.close()
        volume.close()
    (tmp_path / "junk").write_bytes(b"no database at all, sorry" * 100)
    with pytest.raises(LocalError, match="not a database"):
        VolumeValues.in_file(str(tmp_path / "junk"))


def test_a_value_is_there_after_a_crash(tmp_path: Path) -> None:
    volume = VolumeValues.in_file(str(tmp_path / "v"))
    volume.put("a/b", 2, b"1")
    volume.put("a/b", 2, b"2")
    volume.commit()
    again = VolumeValues.in_file(str(tmp_path / "v"))  # the first one was never closed
    assert list(again.matching("a/*")) == [("a/b", 2, b"2")]
    again.close()
    volume.close()


def test_strangers_who_only_knock_keep_nobody_out(broker: RunningBroker) -> None:
    udp, tcp = broker.locators()
    host, port = udp.removeprefix("udp/").rsplit(":", 1)
    for i in range(300):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"\x10\x01x" if i % 2 else b"\xff\xff", (host, int(port)))
    where = tcp.removeprefix("tcp/").rsplit(":", 1)
    idle = [socket.create_connection((where[0], int(where[1]))) for _ in range(300)]
    with xrce.open(udp) as session:
        assert session.ping() < 10
    assert broker.broker.counters.strangers > 0
    refused = [sock for sock in idle if _ended(sock)]
    assert len(refused) >= 300 - KNOCKING_MAX
    for sock in idle:
        sock.close()


def _ended(sock: socket.socket) -> bool:
    sock.settimeout(0.01)
    try:
        return sock.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_thousand_datagram_sessions_some_of_them_mad(broker: RunningBroker) -> None:
    udp, _ = broker.locators()
    host, port = udp.removeprefix("udp/").rsplit(":", 1)
    sockets = []
    try:
        for i in range(1000):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.connect((host, int(port)))
            sock.settimeout(5)
            sockets.append(sock)
            sock.send(xrce.write(xrce.Open(version=1, pid=b"%d" % i, lease=0, locators=())))
            assert sock.recv(100)[0] & 0x1F == 4
            if i % 50 == 0:
                sock.send(b"\x17mad" * 5)
        with xrce.open(udp) as one, xrce.open(udp) as other:
            samples = other.subscriber("/x")
            publisher = one.publisher("/x")
            publisher.wait()
            publisher.put(b"served")
            assert samples.recv(SECONDS) == ("x", b"served")
        assert len(broker.broker.members) >= 980
        assert broker.broker.counters.malformed >= 20
    finally:
        for sock in sockets:
            sock.close()
