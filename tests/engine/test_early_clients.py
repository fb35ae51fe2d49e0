"""A client that is there before a node is ready is heard from its first sample."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.api.sessions import config, connecting_to, where
from tests.waiting import SECONDS, until
from zenlake.api.session import Session, prepare

pytestmark = pytest.mark.interop

PUTS = 100


def publish(endpoint: str) -> None:
    settings = zenoh.Config()
    settings.insert_json5("mode", '"client"')
    settings.insert_json5("scouting/multicast/enabled", "false")
    settings.insert_json5("connect/endpoints", json.dumps([endpoint]))
    with zenoh.open(settings) as client:
        for number in range(PUTS):
            block = zenoh.CongestionControl.BLOCK
            client.put("early/a", str(number), congestion_control=block)


@contextmanager
def prepared(**keys: Any) -> Iterator[Session]:
    with prepare(config(mode='"router"', listen__endpoints='["tcp/127.0.0.1:0"]', **keys)) as here:
        yield here


@contextmanager
def an_early_client(session: Session) -> Iterator[Future[None]]:
    """Its link is there, and waits."""
    with ThreadPoolExecutor(1) as client:
        published = client.submit(publish, where(session))
        until(lambda: session.runtime.listeners.waiting == 1, "its link is there")
        yield published


def test_what_is_declared_before_a_node_begins_hears_the_first_sample_of_an_early_client() -> None:
    with prepared() as session, an_early_client(session) as published:
        subscriber = session.declare_subscriber("early/**")
        assert not published.done()
        session.runtime.begin()
        published.result(SECONDS)
        heard = [int(subscriber.recv().payload.to_string()) for _ in range(PUTS)]
    assert heard == list(range(PUTS))


def test_storages_are_there_before_a_node_begins(tmp_path: Path) -> None:
    storages = {
        "volumes": {"fs": {}},
        "storages": {
            "early": {"key_expr": "early/**", "volume": {"id": "fs", "dir": str(tmp_path)}}
        },
    }
    keys = {"plugins__storage_manager": json.dumps(storages), "timestamping__enabled": "true"}
    with prepared(**keys) as session, an_early_client(session) as published:
        session.runtime.begin()
        published.result(SECONDS)

        def stored() -> list[str]:
            replies = [reply.ok for reply in session.get("early/**")]
            return [one.payload.to_string() for one in replies if one is not None]

        until(lambda: stored() == [str(PUTS - 1)], "the last value is stored")


def test_nothing_is_connected_before_a_node_begins() -> None:
    with (
        prepared() as there,
        prepare(config(**connecting_to(where(there)))) as here,
    ):
        there.runtime.begin()
        assert here.runtime.neighbours() == []
        assert there.runtime.listeners.waiting == 0
        here.runtime.begin()
        assert len(here.runtime.neighbours()) == 1
