from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import ZenohId
from zenlake.config.model_scouting import GossipScouting, MulticastScouting, StrategyByTarget
from zenlake.errors import ConfigError
from zenlake.scouting import Autoconnect, gossip_delay
from zenlake.scouting.autoconnect import greater

ROUTER, PEER, CLIENT = 1, 2, 4
HERE = ["tcp/127.0.0.1:1"]
zids = st.binary(min_size=1, max_size=16).filter(lambda data: data[-1] != 0)


def test_only_wanted_roles_are_connected_to() -> None:
    plan = Autoconnect(b"\x01", ROUTER | PEER)
    assert plan.wants(b"\x02", ROUTER, HERE, ())
    assert plan.wants(b"\x02", PEER, HERE, ())
    assert not plan.wants(b"\x02", CLIENT, HERE, ())


def test_one_session_is_enough() -> None:
    assert not Autoconnect(b"\x01", 7).wants(b"\x02", PEER, HERE, {b"\x02"})


def test_nobody_connects_to_itself_or_to_nowhere() -> None:
    plan = Autoconnect(b"\x01", 7)
    assert not plan.wants(b"\x01", PEER, HERE, ())
    assert not plan.wants(b"\x02", PEER, [], ())


def test_a_strategy_may_differ_by_role() -> None:
    plan = Autoconnect(b"\x01", 7, "greater-zid", {ROUTER: "always"})
    assert plan.wants(b"\x02", ROUTER, HERE, ())
    assert not plan.wants(b"\x02", PEER, HERE, ())


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'sometimes'.*greater-zid"):
        Autoconnect(b"\x01", 7, "sometimes")


def test_the_order_looks_at_the_first_byte_first() -> None:
    assert greater(b"\x02", b"\x01\xff")
    assert greater(b"\x01\x01", b"\x01")
    assert not greater(b"\x01", b"\x01")


def test_the_configuration_is_obeyed() -> None:
    multicast = MulticastScouting(autoconnect=("router",), autoconnect_strategy="greater-zid")
    plan = Autoconnect.configured(b"\x05", multicast)
    assert plan.roles == ROUTER
    assert plan.wants(b"\x04", ROUTER, HERE, ())
    assert not plan.wants(b"\x06", ROUTER, HERE, ())
    gossip = GossipScouting(
        autoconnect=("peer", "client"), autoconnect_strategy=StrategyByTarget(to_peer="greater-zid")
    )
    plan = Autoconnect.configured(b"\x05", gossip)
    assert plan.roles == PEER | CLIENT
    assert not plan.wants(b"\x06", PEER, HERE, ())
    assert plan.wants(b"\x06", CLIENT, HERE, ())


@given(zids, zids)
def test_exactly_one_of_two_begins(one: bytes, other: bytes) -> None:
    first = Autoconnect(one, 7, "greater-zid").wants(other, PEER, HERE, ())
    second = Autoconnect(other, 7, "greater-zid").wants(one, PEER, HERE, ())
    assert first != second or one == other
    assert greater(one, other) == (ZenohId(one) > ZenohId(other))


@given(st.floats(0, 1))
def test_gossip_waits_at_most_a_tenth_of_a_second(chance: float) -> None:
    assert 0 <= gossip_delay(chance) <= 0.1
