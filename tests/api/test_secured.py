"""Sessions over links that run inside others, pressed as hard as they can be."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import zenlake
from tests.links.authority import Authority
from tests.ports import free_port
from tests.waiting import SECONDS

COUNT, SIZE = 400, 60_000


def session(settings: dict[str, object]) -> zenlake.Session:
    config = zenlake.Config()
    for key, value in {"scouting/multicast/enabled": False, **settings}.items():
        config.insert_json5(key, json.dumps(value))
    return zenlake.open(config)


@pytest.mark.parametrize("protocol", ["tls", "ws", "wss"])
def test_who_publishes_faster_than_the_link_waits_and_loses_nothing(
    protocol: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    paper = authority.sign("server", "localhost")
    place = f"{protocol}/localhost:{free_port()}"
    papers: dict[str, object] = {
        "transport/link/tls/root_ca_certificate": str(authority.path),
        "transport/link/tls/listen_certificate": str(paper.certificate),
        "transport/link/tls/listen_private_key": str(paper.key),
    }
    heard = 0
    first, all_of_it = threading.Event(), threading.Event()

    def slow(sample: zenlake.Sample) -> None:
        nonlocal heard
        first.wait(SECONDS)  # until the publisher has filled everything in between
        heard += 1
        if heard == COUNT:
            all_of_it.set()

    with session({"listen/endpoints": [place], **papers}) as near:
        near.declare_subscriber("a", slow)
        with session({"connect/endpoints": [place], "listen/endpoints": [], **papers}) as far:
            publisher = far.declare_publisher(
                "a", congestion_control=zenlake.CongestionControl.BLOCK
            )
            threading.Timer(0.3, first.set).start()
            for _ in range(COUNT):
                publisher.put(bytes(SIZE))
            assert all_of_it.wait(SECONDS), heard
