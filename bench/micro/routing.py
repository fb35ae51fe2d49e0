"""What a declaration and a route cost a router, as its tables grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from zenlake.node.node import Node
from zenlake.node.settings import NodeSettings
from zenlake.routing.face import Face
from zenlake.routing.pubsub import destinations
from zenlake.routing.regions import CLIENT, ROUTER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.transport.outbox import Outbox

SIZES = (10, 1_000, 100_000)
CLIENTS = 10
KEY = "site/4/robot/77/pose"


def router(size: int, many: int = CLIENTS) -> tuple[Node, list[Face]]:
    """A router with clients that hold `size` subscriptions, one in a thousand with wildcards."""
    node = Node(NodeSettings(mode=ROUTER, zid=b"\1" * 16), lambda: b"\1" * 8, lambda: 0.5)
    clients: list[Face] = []
    for number in range(many):
        outbox = Outbox(65535, 2, 0x0FFF_FFFF, 0, True, 2)
        face = Face(node.fresh_face(), number.to_bytes(15, "little") + b"\2", CLIENT, outbox)
        node.tables.add(face, 0.0)
        clients.append(face)
    for k in range(size):
        robot = f"site/{k // 1000}/robot/{k % 1000}"
        key = f"{robot}/**" if k % 1000 == 999 else f"{robot}/pose"
        node.tables.declare(clients[k % many], SUBSCRIBER, k + 10, key)
    node.tables.declare(clients[1], SUBSCRIBER, 1, KEY)
    return node, clients


def declaring(size: int, many: int = CLIENTS) -> Callable[[int], None]:
    """Declare a subscription on a new key, and undeclare it."""
    node, clients = router(size, many)
    tables = node.tables

    def run(n: int) -> None:
        face = clients[0]
        for _ in range(n):
            tables.declare(face, SUBSCRIBER, 2, "site/5/robot/new/pose")
            tables.undeclare(face, SUBSCRIBER, 2)

    return run


def routing(size: int) -> Callable[[int], None]:
    """Find anew who hears a key."""
    node, clients = router(size)
    tables = node.tables
    assert clients[1] in destinations(tables, node.borders, clients[0], KEY, node.zid)

    def run(n: int) -> None:
        source = clients[0]
        for _ in range(n):
            destinations(tables, node.borders, source, KEY, node.zid)

    return run


def leaving(size: int) -> Callable[[int], None]:
    """A client with one subscription comes and goes."""
    node, _ = router(size)
    tables = node.tables
    outbox = Outbox(65535, 2, 0x0FFF_FFFF, 0, True, 2)

    def run(n: int) -> None:
        for number in range(n):
            face = Face(1000 + number, b"\7" * 16, CLIENT, outbox)
            tables.add(face, 0.0)
            tables.declare(face, SUBSCRIBER, 1, "site/6/robot/guest/pose")
            node.queries.remove(face)
            tables.remove(face)

    return run


# Each entry makes what it needs and returns a function that does `n` operations.
CASES: dict[str, Callable[[], Callable[[int], None]]] = {}
for _size in SIZES:
    CASES[f"routing: declare and undeclare, {_size} subscriptions"] = partial(declaring, _size)
    CASES[f"routing: find a route, {_size} subscriptions"] = partial(routing, _size)
    CASES[f"routing: a client comes and goes, {_size} subscriptions"] = partial(leaving, _size)
for _many in (100, 1000):
    CASES[f"routing: declare and undeclare, {_many} clients"] = partial(declaring, 1000, _many)
