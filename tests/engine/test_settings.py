"""What a node is told of its configuration, and what it cannot be told."""

from __future__ import annotations

import pytest

from tests.routing.policies import settings_of
from zenlake.engine.settings import node_settings
from zenlake.errors import ConfigError


def test_regions_of_ones_own_are_refused_by_name() -> None:
    south = [{"filters": [{"modes": ["peer"]}]}]
    with pytest.raises(ConfigError, match="gateway/south"):
        node_settings(settings_of(gateway={"south": south}), b"\x01", ())


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
