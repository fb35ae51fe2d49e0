"""Routers of both kinds in one mesh: neither side can tell which router is whose."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count

import pytest

from tests.interop.peer import SECONDS, Peer
from tests.interop.processes import OURS, THEIRS, Process, connect, listen
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.interop

numbers = count(1)


class Relay:
    """A link that can be cut: what is said at one place is heard at another."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp/").partition(":")
        self.target = (host, int(port))
        self.server = socket.create_server(("127.0.0.1", free_port()))
        self.endpoint = f"tcp/127.0.0.1:{self.server.getsockname()[1]}"
        self.sockets: list[socket.socket] = []
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.server.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Let nothing pass any more."""
        self.server.close()
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Town:
    """Routers, and a client of each kind at each of them."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.theirs = stack.enter_context(Process(THEIRS))
        self.processes: list[Process] = []
        self.routers: list[Peer] = []
        self.places: list[str] = []
        self.clients: list[tuple[Peer, Peer]] = []

    def peer(self, package: str) -> Peer:
        """A node that is closed at the end."""
        peer = Peer(OURS) if package == OURS else self.theirs.node(f"town {next(numbers)}")
        self.stack.callback(_close, peer)
        return peer

    def router(self, package: str, *connected: str) -> None:
        """A router in a process of its own, connected to others."""
        process = self.stack.enter_context(Process(package))
        router = process.node()
        self.processes.append(process)
        self.routers.append(router)
        self.places.append(listen(router, "router", connect__endpoints=list(connected)))

    def populate(self) -> None:
        """A client of each kind for each router."""
        for place in self.places:
            pair = (self.peer(OURS), self.peer(THEIRS))
            for client in pair:
                connect(client, place, "client")
            self.clients.append(pair)

    def everybody(self) -> list[Peer]:
        """All clients."""
        return [client for pair in self.clients for client in pair]

    def met(self, count: int) -> None:
        """Wait until everybody knows of everybody."""
        for n, client in enumerate(self.everybody()):
            client.token(f"here {n}", f"here/{n}")
        for client in self.everybody():
            until_here(client, {f"here/{n}" for n in range(count)})


def until_here(client: Peer, expected: set[str]) -> None:
    """Wait until a client knows certain ones to be there.

    A client of Eclipse's may be told of itself twice, whoever its router is.
    """
    until(lambda: set(client.alive("here/*")) == expected, f"not {expected}", SECONDS)


def _close(peer: Peer) -> None:
    with suppress(Exception):
        if peer.is_open():
            peer.close()


@pytest.fixture
def town() -> Iterator[Town]:
    with ExitStack() as stack:
        yield Town(stack)


@pytest.fixture(scope="module", params=[(THEIRS, OURS, THEIRS), (OURS, THEIRS, OURS)], ids=str)
def chain(request: pytest.FixtureRequest) -> Iterator[Town]:
    """Three routers in a row: ours between two of theirs, theirs between two of ours."""
    with ExitStack() as stack:
        town = Town(stack)
        for package in request.param:
            town.router(package, *town.places[-1:])
        town.populate()
        town.met(6)
        yield town
        for client in town.everybody():
            client.clear()


@pytest.fixture(params=[(a, b) for a in (0, 1) for b in (0, 1)], ids=str)
def ends(request: pytest.FixtureRequest, chain: Town) -> tuple[Peer, Peer, str]:
    """Clients of any kinds at both ends of a chain, and a key."""
    near, far = request.param
    return chain.clients[0][near], chain.clients[2][far], f"t{next(numbers)}"


def test_samples_cross_and_publishers_know_when_nobody_listens(
    ends: tuple[Peer, Peer, str],
) -> None:
    near, far, key = ends
    near.publisher(f"pub {key}", f"{key}/a")
    assert not near.matches(f"pub {key}")
    far.subscribe(f"sub {key}", f"{key}/**")
    near.until(f"pub {key}")
    near.publish(f"pub {key}", "1")
    near.put(f"{key}/b", "2")
    near.delete(f"{key}/c")
    one, two, three = far.take(f"sub {key}", 3)
    assert [one["key"], one["payload"]] == [f"{key}/a", "1"]
    assert [two["key"], two["payload"]] == [f"{key}/b", "2"]
    assert [three["key"], three["kind"]] == [f"{key}/c", "DELETE"]
    # The first router gives values a time, and no other does.
    assert one["timestamp"] is not None
    assert three["timestamp"] is None
    far.undeclare(f"sub {key}")
    near.until(f"pub {key}", matching=False)
    near.undeclare(f"pub {key}")


def test_questions_cross_and_end(ends: tuple[Peer, Peer, str]) -> None:
    near, far, key = ends
    far.queryable(f"q {key}", f"{key}/*", [{"payload": "answer"}], complete=True)
    near.querier(f"ready {key}", f"{key}/*")
    near.until(f"ready {key}")
    for target in ("BEST_MATCHING", "ALL", "ALL_COMPLETE"):
        [reply] = near.get(f"{key}/x", target=target, consolidation="NONE")
        assert reply["payload"] == "answer"
    assert near.get(f"{key}x/nobody") == []
    far.undeclare(f"q {key}")
    near.until(f"ready {key}", matching=False)
    near.undeclare(f"ready {key}")


def test_who_comes_alive_and_who_dies_is_seen_across(ends: tuple[Peer, Peer, str]) -> None:
    near, far, key = ends
    near.watch(f"w {key}", f"{key}/*")
    far.token(f"tok {key}", f"{key}/me")
    assert near.take(f"w {key}") == [["PUT", f"{key}/me"]]
    near.until_alive(f"{key}/*", [f"{key}/me"])
    far.undeclare(f"tok {key}")
    assert near.take(f"w {key}") == [["DELETE", f"{key}/me"]]
    near.undeclare(f"w {key}")


def test_everybody_hears_everybody_once(chain: Town) -> None:
    clients = chain.everybody()
    key = f"t{next(numbers)}"
    for client in clients:
        client.subscribe(f"sub {key}", f"{key}/*")
    for client in clients:
        client.publisher(f"pub {key}", f"{key}/x")
        client.until(f"pub {key}")
    # A publisher matches when it has heard of one; all have been told a moment later.
    until_all_hear(clients, f"sub {key}", key)
    for n, client in enumerate(clients):
        client.put(f"{key}/{n}", "")
    for client in clients:
        heard = sorted(sample["key"] for sample in client.take(f"sub {key}", len(clients)))
        assert heard == [f"{key}/{n}" for n in range(len(clients))]
    for client in clients:
        assert client.quiet(f"sub {key}", 0.05)
        client.undeclare(f"sub {key}")
        client.undeclare(f"pub {key}")


def test_in_a_ring_with_one_link_cut_the_other_way_is_taken(town: Town) -> None:
    town.router(OURS)
    town.router(THEIRS, town.places[0])
    town.router(OURS, town.places[1])
    relays = [Relay(town.places[2]), Relay(town.places[0])]
    for relay in relays:
        town.stack.callback(relay.cut)
    town.router(THEIRS, *(relay.endpoint for relay in relays))
    town.populate()
    town.met(8)
    clients = town.everybody()
    for client in clients:
        client.subscribe("sub", "k/**")
    for client in clients:
        client.publisher("pub", "k/x")
        client.until("pub")
    until_all_hear(clients)
    all_hear_all_once(clients, "before")
    relays[1].cut()
    until_all_hear(clients)
    all_hear_all_once(clients, "after")


def test_when_a_router_is_killed_the_others_go_on(town: Town) -> None:
    town.router(OURS)
    town.router(THEIRS, town.places[0])
    town.router(OURS, town.places[1])
    town.router(THEIRS, town.places[2], town.places[0])
    town.populate()
    town.met(8)
    town.processes[1].kill()
    clients = [client for n, pair in enumerate(town.clients) if n != 1 for client in pair]
    for client in clients:
        until_here(client, {f"here/{n}" for n in (0, 1, 4, 5, 6, 7)})
    for client in clients:
        client.subscribe("sub", "k/**")
    for client in clients:
        client.publisher("pub", "k/x")
        client.until("pub")
    until_all_hear(clients)
    all_hear_all_once(clients, "after")


@pytest.mark.parametrize("middle", [OURS, THEIRS])
def test_nobody_dies_twice_when_a_router_in_the_middle_is_restarted(
    town: Town, middle: str
) -> None:
    town.router(OURS)
    town.router(THEIRS)
    town.populate()
    between = [Process(middle), Process(middle)]
    for process in between:
        town.stack.callback(process.kill)
        assert not process.node().is_open()  # it has started
    listen(between[0].node(), "router", connect__endpoints=town.places)
    (near, _), far = town.clients
    for client in far:
        client.watch("w", "t/*")
    near.token("gone", "t/gone")
    near.token("kept", "t/kept")
    for client in far:
        assert sorted(client.take("w", 2)) == [["PUT", "t/gone"], ["PUT", "t/kept"]]
    near.undeclare("gone")
    for client in far:
        assert client.take("w") == [["DELETE", "t/gone"]]
    between[0].kill()
    for client in far:
        assert client.take("w") == [["DELETE", "t/kept"]]
    listen(between[1].node(), "router", connect__endpoints=town.places)
    for client in far:
        assert client.take("w") == [["PUT", "t/kept"]]
    near.token("last", "t/last")
    for client in far:
        assert client.take("w") == [["PUT", "t/last"]]


def all_hear_all_once(clients: list[Peer], word: str) -> None:
    """Everybody says something, and everybody hears all of it, once."""
    for n, client in enumerate(clients):
        client.put(f"k/{word}/{n}", "")
    for client in clients:
        heard = sorted(sample["key"] for sample in client.take("sub", len(clients)))
        assert heard == [f"k/{word}/{n}" for n in range(len(clients))]
    for client in clients:
        assert client.quiet("sub", 0.05)


def until_all_hear(clients: list[Peer], name: str = "sub", key: str = "k") -> None:
    """Try until everybody hears everybody; what is lost meanwhile is lost."""
    deadline = time.monotonic() + SECONDS
    for attempt in count():
        for n, client in enumerate(clients):
            client.put(f"{key}/try-{attempt}-{n}", "")
        heard: list[set[str]] = [set() for _ in clients]
        again = time.monotonic() + 0.4
        while any(len(keys) < len(clients) for keys in heard) and time.monotonic() < again:
            for client, keys in zip(clients, heard, strict=True):
                taken = [one["key"] for one in client.take(name, client.heard_by(name))]
                keys.update(one for one in taken if one.startswith(f"{key}/try-{attempt}-"))
            time.sleep(0.002)
        if all(len(keys) == len(clients) for keys in heard):
            return
        assert time.monotonic() < deadline, "not everybody hears everybody"
