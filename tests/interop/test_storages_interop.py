"""Eclipse's clients put into our storages, ask them, and have a put acknowledged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.sessions import listening, where
from tests.interop.peer import Peer
from tests.interop.processes import THEIRS, Process
from tests.volumes.opened import KINDS, OPTIONS

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Process]:
    process = Process(THEIRS)
    yield process
    process.kill()


@pytest.fixture
def theirs(elsewhere: Process, request: pytest.FixtureRequest) -> Iterator[Peer]:
    peer = elsewhere.node(request.node.name)
    yield peer
    if peer.is_open():
        peer.close()


@pytest.mark.parametrize("volume", ["memory", *KINDS])
def test_their_client_stores_asks_deletes_and_hears(
    volume: str, tmp_path: Path, theirs: Peer
) -> None:
    chosen = volume if volume == "memory" else {"id": volume, **OPTIONS[volume](tmp_path)}
    storages = {"s": {"key_expr": "s/**", "volume": chosen}}
    with listening(
        mode='"router"', plugins=json.dumps({"storage_manager": {"storages": storages}})
    ) as router:
        theirs.open("client", connect__endpoints=[where(router)])
        theirs.subscribe("sub", "s/**")
        (ack,) = theirs.get("s/a?_ack_put=true", payload="sure", encoding="text/plain")
        assert ack["timestamp"] is not None
        (heard,) = theirs.take("sub")
        assert (heard["key"], heard["payload"]) == ("s/a", "sure")
        assert heard["timestamp"] == ack["timestamp"]
        (reply,) = theirs.get("s/**")
        assert (reply["payload"], reply["encoding"]) == ("sure", "text/plain")
        assert reply["timestamp"] == ack["timestamp"]
        theirs.put("s/a", "newer")
        theirs.put("s/b", "2")
        theirs.delete("s/a")
        theirs.take("sub", 3)
        (left,) = theirs.get("s/*")
        assert (left["key"], left["payload"]) == ("s/b", "2")
