"""A broker on loopback, and a router with one beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import zenlake
from zenlake.config import Config
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce_io.brokering import RunningBroker
from zenlake.xrce_io.service import serving


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    running = RunningBroker(BrokerOptions(b"brokerid"))
    running.start(["udp/127.0.0.1:0", "tcp/127.0.0.1:0"])
    yield running
    running.close()


@dataclass
class Bridged:
    """A router with a broker, and where each is reached."""

    router: zenlake.Session
    running: RunningBroker
    udp: str
    tcp: str
    place: str

    def config(self) -> Config:
        made = Config()
        made.insert_json5("mode", '"client"')
        made.insert_json5("connect/endpoints", json.dumps([self.place]))
        made.insert_json5("scouting/multicast/enabled", "false")
        return made


def router_config(*connect: str, **xrce: object) -> Config:
    made = Config()
    made.insert_json5("mode", '"router"')
    made.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
    made.insert_json5("connect/endpoints", json.dumps(connect))
    made.insert_json5("scouting/multicast/enabled", "false")
    listen = ["udp/127.0.0.1:0", "tcp/127.0.0.1:0"]
    made.insert_json5("xrce", json.dumps({"listen": listen, **xrce}))
    return made


def bridged(config: Config) -> Iterator[Bridged]:
    with zenlake.open(config) as router, serving(router, config.resolved.xrce) as running:
        udp, tcp = running.locators()
        place = next(iter(router.runtime.node.settings.locators))
        yield Bridged(router, running, udp, tcp, place)


@pytest.fixture
def bridge() -> Iterator[Bridged]:
    yield from bridged(router_config())


@pytest.fixture
def program(bridge: Bridged) -> Iterator[zenlake.Session]:
    """A 1.x client of the router."""
    with zenlake.open(bridge.config()) as session:
        yield session
