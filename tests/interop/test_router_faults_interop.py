"""A router of ours among badly behaved neighbours: nobody else suffers, and the counters tell."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import psutil
import pytest

from tests.interop.peer import SECONDS, Peer
from tests.interop.processes import OURS, THEIRS, Process, connect, listen, meanwhile
from tests.interop.test_router_mesh_interop import Town, until_all_hear, until_here
from tests.waiting import until

pytestmark = pytest.mark.interop

MIB = 1 << 20
numbers = count(1)


class House:
    """A router of ours in a process of its own, and two honest Eclipse clients."""

    def __init__(self, stack: ExitStack, elsewhere: Process) -> None:
        process = stack.enter_context(Process(OURS))
        self.router = process.node()
        self.place = listen(self.router, "router")
        self._memory = psutil.Process(process.running.pid).memory_info
        self.near, self.far = (elsewhere.node(f"honest {next(numbers)}") for _ in range(2))
        for client in (self.near, self.far):
            connect(client, self.place, "client")
            stack.callback(client.close)
        self.far.subscribe("honest", "honest/*")
        self.near.publisher("honest", "honest/p", congestion_control="BLOCK")
        self.near.until("honest")
        self.said = 0
        self.before = self.memory()

    def memory(self) -> int:
        """The bytes that the router has in memory."""
        return int(self._memory().rss)

    def undisturbed(self, rounds: int = 50) -> None:
        """What the honest say to each other arrives, all of it and in order."""
        for _ in range(rounds):
            self.near.publish("honest", str(self.said))
            assert self.far.take("honest")[0]["payload"] == str(self.said)
            self.said += 1

    def connected(self) -> int:
        """How many sessions the router has."""
        return len(self.router.neighbours())

    def until_alone(self) -> None:
        """Wait until only the honest are left."""
        until(lambda: self.connected() == 2, "others are still connected", SECONDS)


@pytest.fixture
def house(elsewhere: Process) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(stack, elsewhere)


@pytest.mark.slow
def test_a_client_that_stops_reading_loses_what_is_dropped_and_then_its_session(
    house: House,
) -> None:
    with Process(THEIRS) as process:
        lazy = process.node()
        connect(lazy, house.place, "client", transport__link__tx__lease=4000)
        lazy.subscribe("s", "load/*")
        house.far.subscribe("load", "load/*")
        house.near.publisher("load", "load/p")
        house.near.until("load")
        house.undisturbed()
        process.freeze()
        for number in range(60):
            house.near.publish("load", 256 * 1024)
            assert house.far.take("load")[0]["payload"][0] == 256 * 1024
            if number % 10 == 0:
                house.undisturbed(1)
        assert house.router.dropped()["tx"]["congestion"] > 0
        assert house.memory() - house.before < 64 * MIB
        # It is given up with its lease.
        house.until_alone()
        house.undisturbed()


def test_clients_that_send_garbage_are_cut_off(house: House) -> None:
    host, _, port = house.place.removeprefix("tcp/").rpartition(":")
    chance = random.Random(7)
    sockets = []
    for number in range(100):
        stranger = socket.create_connection((host, int(port)))
        stranger.settimeout(SECONDS)
        size = chance.randrange(1, 2000)
        noise = chance.randbytes(size)
        if number % 2:
            # Framed as batches, so that it is read at all.
            noise = len(noise).to_bytes(2, "little") + noise
        stranger.sendall(noise)
        sockets.append(stranger)
        if number % 20 == 0:
            house.undisturbed(5)
    for stranger in sockets:
        stranger.shutdown(socket.SHUT_WR)
        try:
            while stranger.recv(65536):
                pass
        except ConnectionResetError:
            pass
        stranger.close()
    house.undisturbed()
    house.until_alone()
    assert house.memory() - house.before < 32 * MIB


@pytest.mark.slow
def test_ten_thousand_declarations_come_and_go(house: House) -> None:
    multicast = Peer(OURS)  # theirs takes longer the more it has declared
    connect(multicast, house.place, "client")
    declaring = meanwhile(multicast.subscribe_many, "s", "many", 10_000)
    while not declaring.done():
        house.undisturbed(5)
    declaring.result(SECONDS)
    house.near.publisher("last", "many/9999")
    house.near.until("last")
    house.near.publish("last", "found")
    assert multicast.take("s")[0]["key"] == "many/9999"
    multicast.close()
    house.near.until("last", False)
    house.undisturbed()
    # What it declared is taken back in slices, between which the others have their turns.
    until(lambda: house.router.resources() < 100, "its keys are still known", SECONDS)


def test_a_second_client_with_the_same_id_is_refused_and_the_first_goes_on(
    house: House, elsewhere: Process
) -> None:
    first = elsewhere.node(f"first {next(numbers)}")
    second = elsewhere.node(f"second {next(numbers)}")
    connect(first, house.place, "client", id="abba")
    first.subscribe("s", "twin/*")
    with pytest.raises(RuntimeError):
        connect(second, house.place, "client", id="abba", connect__timeout_ms=500)
    house.near.publisher("twin", "twin/p")
    house.near.until("twin")
    house.near.publish("twin", "x")
    assert first.take("s")[0]["payload"] == "x"
    first.close()
    house.until_alone()
    connect(second, house.place, "client", id="abba")
    second.close()
    house.undisturbed()


def test_two_hundred_clients_come_and_go_in_a_storm(house: House, elsewhere: Process) -> None:
    sky = elsewhere.node(f"sky {next(numbers)}")
    house.far.watch("w", "storm/alive/*")
    storm = meanwhile(sky.storm, house.place, 200, 8)
    while not storm.done():
        house.undisturbed(5)
    assert storm.result(SECONDS) == 200
    house.until_alone()
    house.undisturbed()
    assert house.far.alive("storm/**") == []
    heard = house.far.take("w", 400)
    assert [kind for kind, _ in heard].count("PUT") == 200
    assert house.router.resources() < 20
    assert house.memory() - house.before < 64 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("victim", range(4))
def test_any_router_of_a_ring_may_be_killed_under_load(victim: int) -> None:
    with ExitStack() as stack:
        town = Town(stack)
        town.router(OURS)
        town.router(THEIRS, town.places[0])
        town.router(OURS, town.places[1])
        town.router(THEIRS, town.places[2], town.places[0])
        town.populate()
        town.met(8)
        clients = [one for n, pair in enumerate(town.clients) if n != victim for one in pair]
        for client in clients:
            client.subscribe("sub", "k/**")
            client.subscribe("load", "load/**")
        for n, client in enumerate(clients):
            client.publisher("pub", "k/x")
            client.publisher("load", f"load/{n}")
            client.until("load")
        loading = [meanwhile(client.publish_many, "load", 3000) for client in clients]
        town.processes[victim].kill()
        lost = {2 * victim, 2 * victim + 1}
        for client in clients:
            until_here(client, {f"here/{n}" for n in range(8) if n not in lost})
        for each in loading:
            each.result(2 * SECONDS)
        until_all_hear(clients)
