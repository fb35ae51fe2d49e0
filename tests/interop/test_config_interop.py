"""The configuration beside Eclipse Zenoh's own."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import zenoh

from zenlake.config import Config, ConfigWarning
from zenlake.config.document import render_defaults
from zenlake.config.load import all_keys
from zenlake.errors import ConfigError

pytestmark = pytest.mark.interop

ACCEPTED = [
    ("mode", '"router"'),
    ("id", '"abc"'),
    ("metadata", "{a: [1, null]}"),
    ("connect/endpoints", '{router: ["tcp/1.2.3.4:5"]}'),
    ("connect/endpoints", '[{strategy: "oneOf", locators: ["tcp/1.2.3.4:5"]}]'),
    ("connect/timeout_ms", "{router: -1}"),
    ("connect/retry", "{period_init_ms: {router: 3}, period_increase_factor: 2}"),
    ("listen/endpoints", "{}"),
    ("scouting/multicast/autoconnect", '{router: [], peer: ["router", "peer"]}'),
    ("scouting/multicast/autoconnect_strategy", '{peer: {to_router: "always"}}'),
    ("scouting/multicast/autoconnect_strategy", '{to_router: "greater-zid"}'),
    ("scouting/gossip/target", '["router"]'),
    ("timestamping/enabled", "{router: true}"),
    ("gateway", '{south: [{filters: [{modes: ["peer"], zids: ["1"]}]}]}'),
    ("transport/link/tx/lease", "1e3"),
    ("transport/link/tx/queue/size", "{data: 3}"),
    ("transport/auth/usrpwd", '{user: "a", password: "b"}'),
    ("transport/unicast", "{max_links: 2}"),
    ("access_control/subjects", '[{id: "s", link_protocols: ["unixsock-stream"]}]'),
    ("downsampling", '[{messages: ["put"], rules: [{key_expr: "a", freq: 1}]}]'),
    ("low_pass_filter", '[{messages: ["put"], key_exprs: ["a"], size_limit: 1}]'),
    ("qos/network", '[{messages: ["put"], overwrite: {priority: 3}, qos: {}}]'),
    ("qos/publication", '[{key_exprs: ["a"], config: {priority: "data_high"}}]'),
    ("plugins/rest/http_port", "8000"),
    ("plugins_loading/search_dirs", '[{kind: "current_exe_parent"}, "a"]'),
    ("stats/filters", '[{key: "a/**"}]'),
]

REFUSED = [
    ("mode", '"bogus"'),
    ("nope", "1"),
    ("id", '"0"'),
    ("connect/endpoints", '["nonsense"]'),
    ("connect/endpoints", '[{strategy: "x", locators: []}]'),
    ("listen/endpoints", "{routr: []}"),
    ("listen/endpoints", "null"),
    ("scouting/multicast/address", '"x"'),
    ("scouting/gossip/enabled", "{router: true}"),
    ("region_name", '""'),
    ("gateway", '{south: "x"}'),
    ("namespace", '"a/*"'),
    ("aggregation/subscribers", '["a/**/**"]'),
    ("transport/link/tx/lease", '"10s"'),
    ("transport/link/tx/sequence_number_resolution", '"64bit"'),
    ("transport/link/tx/queue/size", "{data: 17}"),
    ("transport/auth/usrpwd", '{user: "a"}'),
    ("transport/unicast", "{nope: 1}"),
    ("access_control/rules", '[{id: "r"}]'),
    ("access_control/subjects", '[{id: "s", interfaces: []}]'),
    ("downsampling", '[{messages: ["push"], rules: [{key_expr: "a", freq: 1}]}]'),
    ("qos/network", '[{messages: ["reply"], overwrite: {}}]'),
    ("qos/network", '[{messages: ["put"], overwrite: {priority: 8}}]'),
]


OURS = (
    "adminspace/permissions/links",
    "journals",
    "limits",
    "scouting/gossip/networks",
    "stats/prefixes",
    "transport/auth/roles",
    "xrce",
)
"""Keys that Eclipse does not know: not shown until they are set, so that our files are its too."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        yield


def _paths(tree: Any, path: str = "") -> Iterator[str]:
    for name, value in tree.items():
        below = f"{path}/{name}".lstrip("/")
        yield below
        if isinstance(value, dict) and below not in ("plugins", "listen/endpoints"):
            yield from _paths(value, below)


def test_the_defaults_are_eclipses() -> None:
    assert json.loads(str(Config())) == json.loads(str(zenoh.Config()))


def test_the_keys_are_eclipses() -> None:
    theirs = set(_paths(json.loads(str(zenoh.Config()))))
    shown = {
        path
        for path, key in all_keys().items()
        if not key.hidden
        and not path.startswith(OURS)
        and not path.startswith(("connect/retry/", "listen/retry/", "routing/peer"))
    }
    assert shown == theirs


def test_eclipse_reads_our_defaults_file() -> None:
    assert json.loads(str(zenoh.Config.from_json5(render_defaults()))) == json.loads(str(Config()))


@pytest.mark.parametrize("path", list(all_keys()))
def test_both_show_the_same_at_every_path(path: str) -> None:
    if path.startswith(OURS):
        with pytest.raises(zenoh.ZError):
            zenoh.Config().get_json(path)
        return
    # Below these Eclipse has no paths of its own.
    if path.startswith(("gateway/", "connect/retry/", "listen/retry/", "routing/peer")):
        with pytest.raises(zenoh.ZError):
            zenoh.Config().get_json(f"{path}/x")
        return
    assert json.loads(Config().get_json(path)) == json.loads(zenoh.Config().get_json(path))


@pytest.mark.parametrize(("path", "value"), ACCEPTED)
def test_both_accept_and_show_the_same(path: str, value: str) -> None:
    ours, theirs = Config(), zenoh.Config()
    ours.insert_json5(path, value)
    theirs.insert_json5(path, value)
    assert json.loads(ours.get_json(path)) == json.loads(theirs.get_json(path))
    assert json.loads(str(Config.from_json5(str(theirs)))) == json.loads(str(ours))


@pytest.mark.parametrize(("path", "value"), REFUSED)
def test_both_refuse(path: str, value: str) -> None:
    with pytest.raises(zenoh.ZError):
        zenoh.Config().insert_json5(path, value)
    with pytest.raises(ConfigError):
        Config().insert_json5(path, value)


HIDDEN = [p for p, key in all_keys().items() if key.hidden and not p.startswith(OURS)]


@pytest.mark.parametrize("path", HIDDEN)
def test_keys_that_are_not_shown_exist_in_eclipse_too(path: str) -> None:
    config = zenoh.Config()
    if path.startswith("routing/peer"):
        # Eclipse takes whatever is written there, and forgets it.
        config.insert_json5("routing", '{peer: {mode: "linkstate", linkstate: {}}}')
        assert "peer" not in json.loads(config.get_json("routing"))
    else:
        value = "true" if path.endswith("brokering") else '"x"'
        config.insert_json5(path, value)
        assert config.get_json(path) == value
