"""A mesh of routers with clients, what should be known and heard in it, and whether it is."""

from __future__ import annotations

from random import Random

from zenlake.keys.matching import intersects
from zenlake.routing.interests import SLICE
from zenlake.testing.network import Conditions, Host, Network, SampleRecorder

KEYS = ["a/1", "a/2", "a/*", "b/1", "b/**", "**"]
PUBLISHED = ["a/1", "a/2", "b/1", "a/*"]


class Continent:
    """Routers that come, go, lose each other and meet again; their programs stay the same."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.network = Network(random, Conditions(jitter=0.02, chunks=False))
        #: The rows that nodes tell or forget in one go: as always, or one by one.
        self.slice = random.choice([SLICE, 1])
        self.routers: list[Host] = []
        self.clients: list[Host] = []
        #: Whose client is whose.
        self.home: dict[str, str] = {}
        self.subscriptions: list[tuple[Host, str, SampleRecorder]] = []
        self.tokens: list[tuple[Host, str, object]] = []
        self._names = 0
        self._sent = 0

    # -------------------------------------------------------------------------- what may happen

    def found_router(self, others: list[int]) -> None:
        """A router comes and connects to some of those that are there."""
        self._names += 1
        known = self.routers
        connect = sorted({known[n % len(known)].name for n in others}) if known else []
        router = self.network.node(f"r{self._names}", "router", connect=connect)
        router.node.tables.slice = self.slice
        self.routers.append(router)

    def found_client(self, at: int) -> None:
        """A client comes."""
        if self.routers:
            self._names += 1
            router = self.routers[at % len(self.routers)]
            client = self.network.node(f"c{self._names}", "client", connect=[router.name])
            client.node.tables.slice = self.slice
            self.clients.append(client)
            self.home[client.name] = router.name

    def hosts(self) -> list[Host]:
        return self.routers + self.clients

    def subscribe(self, at: int, key: str) -> None:
        hosts = self.hosts()
        if hosts:
            host = hosts[at % len(hosts)]
            self.subscriptions.append((host, key, host.subscribe(key)))
            self.network.flush()

    def unsubscribe(self, at: int) -> None:
        if self.subscriptions:
            host, _, recorder = self.subscriptions.pop(at % len(self.subscriptions))
            assert recorder.subscriber is not None
            host.node.local.unsubscribe(recorder.subscriber)
            self.network.flush()

    def token(self, at: int) -> None:
        hosts = self.hosts()
        if hosts:
            self._names += 1
            host = hosts[at % len(hosts)]
            key = f"alive/{self._names}"
            self.tokens.append((host, key, host.node.local.liveliness.token(key)))
            self.network.flush()

    def leave(self, at: int, how: int) -> None:
        """Somebody leaves: in good order, dying, or dying unnoticed."""
        hosts = self.hosts()
        if not hosts:
            return
        host = hosts[at % len(hosts)]
        if how == 0:
            self.network.leave(host)
        else:
            self.network.crash(host, silent=how == 2)
        self.routers = [each for each in self.routers if each is not host]
        self.clients = [each for each in self.clients if each is not host]
        self.subscriptions = [each for each in self.subscriptions if each[0] is not host]
        self.tokens = [each for each in self.tokens if each[0] is not host]

    def connect(self, one: int, other: int) -> None:
        """One router is told to connect to another."""
        if len(self.routers) > 1:
            near = self.routers[one % len(self.routers)]
            far = self.routers[other % len(self.routers)]
            if near is not far and not self.network.between(near, far):
                self.network.connect(near, far)

    def cut(self, at: int) -> None:
        """A link breaks; whoever made it tries again."""
        links = [link for link in self.network.links if link.is_up]
        if links:
            links[at % len(links)].cut()

    def partition(self, side: int) -> None:
        """Half of the hosts hear nothing of the other half."""
        hosts = self.hosts()
        self.network.partition([host for n, host in enumerate(hosts) if side >> n & 1])

    def heal(self) -> None:
        self.network.heal()

    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    # ------------------------------------------------------------------------- what must be true

    def quiet(self) -> None:
        """Let everything that is under way come to its end."""
        self.network.heal()
        # Leases run out, connections are tried again: nothing of that is left over after this.
        self.network.run(16.0)
        self.network.settle(quiet=0.5)

    def part_of(self, start: Host) -> set[str]:
        """The routers that one can reach, by the sessions there really are."""
        routers = {router.name: router for router in self.routers}
        name = self.home.get(start.name, start.name)
        if start.name in self.home and (name not in routers or not start.sessions):
            return {start.name}  # a client without its router is alone
        seen: set[str] = set()
        stack = [name]
        while stack:
            at = stack.pop()
            if at in routers and at not in seen:
                seen.add(at)
                stack += [other for other in routers[at].sessions if other in routers]
        return seen

    def check_tables(self) -> None:
        """Everybody knows what everybody in reach declares, and nothing else."""
        for router in self.routers:
            mesh = router.node.mesh
            assert mesh is not None
            part = self.part_of(router)
            inside = {each.node.zid: each for each in self.routers if each.name in part}
            assert set(mesh.state.nodes) == set(inside), router.name
            assert set(mesh.routers) <= set(inside), router.name
            self.check_own(router)
            for zid, other in inside.items():
                if other is router:
                    continue
                theirs = other.node.mesh
                assert theirs is not None
                declared = mesh.routers.get(zid)
                for kind in range(3):
                    known = set() if declared is None else set(declared.held[kind])
                    where = f"{router.name} on {other.name}: {known} for {set(theirs.own[kind])}"
                    assert known == set(theirs.own[kind]), where

    def check_own(self, router: Host) -> None:
        mesh = router.node.mesh
        assert mesh is not None
        near = {router.name} | {
            client.name
            for client in self.clients
            if self.home[client.name] == router.name and client.sessions
        }
        subscribed = {key for host, key, _ in self.subscriptions if host.name in near}
        assert set(mesh.own[0]) == subscribed, router.name
        assert set(mesh.own[2]) == {key for host, key, _ in self.tokens if host.name in near}

    def check_delivery(self) -> None:
        """Everybody publishes: every matching subscriber in reach hears it once."""
        for _, _, recorder in self.subscriptions:
            recorder.samples.clear()
        sent: list[tuple[Host, str, bytes]] = []
        for host in self.hosts():
            for key in PUBLISHED:
                self._sent += 1
                payload = b"%d" % self._sent
                host.put(key, payload)
                sent.append((host, key, payload))
        self.network.settle(quiet=0.3)
        for host, key, recorder in self.subscriptions:
            part = self.part_of(host)
            expected = [
                (published, payload)
                for source, published, payload in sent
                if self.part_of(source) == part and intersects(key, published)
            ]
            assert sorted(recorder.values()) == sorted(expected), f"{host.name} {key}"

    def check(self) -> None:
        self.quiet()
        self.check_tables()
        self.check_delivery()
