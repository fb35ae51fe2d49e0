from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

import pytest

from tests.interop.peer import SECONDS, Peer
from tests.interop.processes import OURS, THEIRS, Process, connect, listen
from tests.ports import free_port

numbers = count(1)


@dataclass
class Together:
    """One of our nodes and one of theirs that can reach each other, and a key of their own."""

    ours: Peer
    theirs: Peer
    key: str


@dataclass
class Way:
    """From whom to whom something goes."""

    speaker: Peer
    listener: Peer
    key: str


@pytest.fixture(scope="session")
def multicast() -> None:
    """A loopback that carries multicast; some containers have none."""
    group = ("224.0.0.224", free_port(socket.SOCK_DGRAM))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        loopback = socket.inet_aton("127.0.0.1")
        receiver.settimeout(SECONDS)
        try:
            receiver.bind(group)
            receiver.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + loopback
            )
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sender.sendto(b"heard", group)
            assert receiver.recv(16) == b"heard"
        except OSError as error:
            pytest.skip(
                f"loopback carries no multicast here (ip link set lo multicast on): {error}"
            )


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Process]:
    """A process of theirs that lives as long as the tests."""
    with Process(THEIRS) as process:
        yield process


@pytest.fixture
def ours() -> Iterator[Peer]:
    """A node of ours; the test opens it."""
    peer = Peer(OURS)
    yield peer
    if peer.session is not None:
        peer.close()


@pytest.fixture
def theirs(elsewhere: Process) -> Iterator[Peer]:
    """A node of theirs; the test opens it."""
    peer = elsewhere.node(f"own {next(numbers)}")
    yield peer
    if peer.is_open():
        peer.close()


@pytest.fixture(
    scope="session",
    params=[
        "peer to peer",
        "client of their router",
        "their client of ours",
        "their router between",
    ],
)
def nodes(request: pytest.FixtureRequest, elsewhere: Process) -> Iterator[tuple[Peer, Peer]]:
    """A node of ours and one of theirs, joined in each of the ordinary ways."""
    ours, theirs = Peer(OURS), elsewhere.node(request.param)
    with ExitStack() as stack:
        if request.param == "peer to peer":
            connect(ours, listen(theirs))
        elif request.param == "client of their router":
            connect(ours, listen(theirs, "router"), "client")
        elif request.param == "their client of ours":
            connect(theirs, listen(ours), "client")
        else:
            router = elsewhere.node("between")
            place = listen(router, "router")
            stack.callback(router.close)
            connect(ours, place, "client")
            connect(theirs, place, "client")
        yield ours, theirs
        theirs.close()
        ours.close()


@pytest.fixture
def together(nodes: tuple[Peer, Peer]) -> Iterator[Together]:
    """A node of ours and one of theirs, with nothing declared."""
    ours, theirs = nodes
    yield Together(ours, theirs, f"t{next(numbers)}")
    ours.clear()
    theirs.clear()


@pytest.fixture(params=["ours to theirs", "theirs to ours"])
def way(request: pytest.FixtureRequest, together: Together) -> Way:
    """Both directions."""
    if request.param == "ours to theirs":
        return Way(together.ours, together.theirs, together.key)
    return Way(together.theirs, together.ours, together.key)
