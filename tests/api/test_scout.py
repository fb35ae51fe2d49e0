from __future__ import annotations

import threading

import pytest

import zenlake
from tests.api.sessions import config
from tests.waiting import SECONDS

GROUP = '"224.0.0.231:7991"'


def found_by(scouting: zenlake.Config, zid: zenlake.ZenohId) -> zenlake.Hello:
    with zenlake.scout(what="peer", config=scouting) as scout:
        for hello in scout:
            if hello.zid == zid:
                return hello
    raise AssertionError("scouting ended by itself")


def test_a_peer_on_the_same_group_is_found() -> None:
    here = config(
        listen__endpoints='["tcp/127.0.0.1:0"]',
        scouting__multicast__enabled="true",
        scouting__multicast__interface='"lo"',
        scouting__multicast__address=GROUP,
    )
    with zenlake.open(here) as session:
        hello = found_by(here, session.zid())
        assert hello.whatami is zenlake.WhatAmI.PEER
        assert any(locator.startswith("tcp/127.0.0.1:") for locator in hello.locators)


def test_a_stopped_scout_finds_no_more() -> None:
    nobody = config(
        scouting__multicast__interface='"lo"', scouting__multicast__address='"224.0.0.231:7992"'
    )
    scout = zenlake.scout(config=nobody)
    assert scout.try_recv() is None
    assert scout.stats.received == 0
    hellos = iter(scout)
    scout.stop()
    assert list(hellos) == []
    for use in (scout.stop, scout.recv, lambda: scout.handler):
        with pytest.raises(zenlake.ZError, match="Stopped scout"):
            use()
    over = threading.Event()
    called = zenlake.scout(
        zenlake.handlers.Callback[zenlake.Hello](lambda hello: None, over.set), config=nobody
    )
    assert called.handler is None
    called.stop()
    assert over.wait(SECONDS)
