"""What a node is told of its configuration, and what it cannot be told."""

from __future__ import annotations

from tests.routing.policies import settings_of
from zenlake.engine.settings import node_settings
from zenlake.routing.regions import PEER, Traits


def test_regions_of_ones_own_are_filters_of_neighbours() -> None:
    south = [
        {"filters": [{"modes": ["peer"], "zids": ["a1"], "negated": True}]},
        {"filters": [{"region_names": ["yard"], "interfaces": ["lo"]}]},
        {"filters": None},
    ]
    found = node_settings(settings_of(gateway={"south": south}), b"\x01", ()).south
    assert found is not None
    assert [part.filters is None for part in found] == [False, False, True]
    stranger = Traits(b"\x02", PEER, "yard", ("lo",))
    assert [part.holds(stranger) for part in found] == [True, True, True]
    assert [part.holds(Traits(b"\xa1", PEER, "", ("eth0",))) for part in found] == [
        False, False, True
    ]  # fmt: skip


def test_without_a_list_the_modes_decide() -> None:
    assert node_settings(settings_of(), b"\x01", ()).south is None
    assert node_settings(settings_of(gateway={"south": []}), b"\x01", ()).south == ()


def test_the_policy_is_that_of_the_file() -> None:
    assert node_settings(settings_of(), b"\x01", ()).policy.is_idle()
    item = {"messages": ["put"], "key_exprs": ["**"], "size_limit": 1}
    assert not node_settings(settings_of(low_pass_filter=[item]), b"\x01", ()).policy.is_idle()


def test_a_router_is_a_broker_only_if_told() -> None:
    assert not node_settings(settings_of(mode="router"), b"\x01", ()).brokering
    routing = {"router": {"peers_failover_brokering": True}}
    settings = settings_of(mode="router", routing=routing, region_name="hall")
    told = node_settings(settings, b"\x01", ())
    assert told.brokering
    assert told.region_name == "hall"
