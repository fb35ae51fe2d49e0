from __future__ import annotations

import importlib
import json

import pytest

from zenlake.clock import ZenohId
from zenlake.config import Config, Mode, Settings
from zenlake.config.declare import Key, Section, section_of
from zenlake.config.load import all_keys
from zenlake.config.shape import MODES
from zenlake.keys import KeyExpr
from zenlake.values.locator import EndPoint

EVERY = ["router", "peer", "client"]

# What holds when nothing is written: the table of defaults of Zenoh 1.10.
# A tuple is (router, peer, client); anything else holds in every mode.
DEFAULTS: dict[str, object] = {
    "id": None,
    "metadata": None,
    "connect/endpoints": [],
    "connect/timeout_ms": (-1, -1, 0),
    "connect/exit_on_failure": (False, False, True),
    "connect/retry/period_init_ms": 1000,
    "connect/retry/period_max_ms": 4000,
    "connect/retry/period_increase_factor": 2.0,
    "listen/endpoints": (["tcp/[::]:7447"], ["tcp/[::]:0"], []),
    "listen/timeout_ms": 0,
    "listen/exit_on_failure": True,
    "listen/retry/period_init_ms": 1000,
    "listen/retry/period_max_ms": 4000,
    "listen/retry/period_increase_factor": 2.0,
    "open/return_conditions/connect_scouted": True,
    "open/return_conditions/declares": True,
    "scouting/timeout": 3000,
    "scouting/delay": 500,
    "scouting/multicast/enabled": True,
    "scouting/multicast/address": "224.0.0.224:7446",
    "scouting/multicast/interface": "auto",
    "scouting/multicast/ttl": 1,
    "scouting/multicast/autoconnect": ([], EVERY, EVERY),
    "scouting/multicast/autoconnect_strategy": "always",
    "scouting/multicast/listen": True,
    "scouting/gossip/enabled": True,
    "scouting/gossip/multihop": False,
    "scouting/gossip/target": ["router", "peer"],
    "scouting/gossip/autoconnect": ([], EVERY, EVERY),
    "scouting/gossip/autoconnect_strategy": "always",
    "timestamping/enabled": (True, False, False),
    "timestamping/drop_future_timestamp": False,
    "queries_default_timeout": 10_000,
    "routing/router/linkstate/transport_weights": [],
    "routing/interests/timeout": 10_000,
    "region_name": None,
    "gateway/south": "auto",
    "qos/publication": [],
    "qos/network": [],
    "aggregation/subscribers": [],
    "aggregation/publishers": [],
    "namespace": None,
    "transport/unicast/open_timeout": 10_000,
    "transport/unicast/accept_timeout": 10_000,
    "transport/unicast/accept_pending": 100,
    "transport/unicast/max_sessions": 1000,
    "transport/unicast/max_links": 1,
    "transport/unicast/lowlatency": False,
    "transport/unicast/qos/enabled": True,
    "transport/unicast/compression/enabled": False,
    "transport/multicast/join_interval": 2500,
    "transport/multicast/max_sessions": 1000,
    "transport/multicast/qos/enabled": False,
    "transport/multicast/compression/enabled": False,
    "transport/link/protocols": None,
    "transport/link/tx/sequence_number_resolution": "32bit",
    "transport/link/tx/lease": 10_000,
    "transport/link/tx/keep_alive": 4,
    "transport/link/tx/batch_size": 65_535,
    "transport/link/tx/queue/size/control": 2,
    "transport/link/tx/queue/size/real_time": 2,
    "transport/link/tx/queue/size/interactive_high": 2,
    "transport/link/tx/queue/size/interactive_low": 2,
    "transport/link/tx/queue/size/data_high": 2,
    "transport/link/tx/queue/size/data": 2,
    "transport/link/tx/queue/size/data_low": 2,
    "transport/link/tx/queue/size/background": 2,
    "transport/link/tx/queue/congestion_control/drop/wait_before_drop": 1000,
    "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments": 50_000,
    "transport/link/tx/queue/congestion_control/block/wait_before_close": 5_000_000,
    "transport/link/tx/queue/batching/enabled": True,
    "transport/link/tx/queue/batching/time_limit": 1,
    "transport/link/tx/queue/allocation/mode": "lazy",
    "transport/link/tx/threads": 1,
    "transport/link/rx/buffer_size": 65_535,
    "transport/link/rx/max_message_size": 1 << 30,
    "transport/link/tls/root_ca_certificate": None,
    "transport/link/tls/listen_private_key": None,
    "transport/link/tls/listen_certificate": None,
    "transport/link/tls/connect_private_key": None,
    "transport/link/tls/connect_certificate": None,
    "transport/link/tls/enable_mtls": False,
    "transport/link/tls/verify_name_on_connect": True,
    "transport/link/tls/close_link_on_expiration": False,
    "transport/shared_memory/enabled": True,
    "transport/shared_memory/mode": "lazy",
    "transport/shared_memory/transport_optimization/enabled": True,
    "transport/shared_memory/transport_optimization/pool_size": 16 * 1024 * 1024,
    "transport/shared_memory/transport_optimization/message_size_threshold": 3072,
    "transport/shared_memory/transport_optimization/messages": ["put", "query", "reply"],
    "transport/auth/usrpwd/user": None,
    "transport/auth/usrpwd/password": None,
    "transport/auth/usrpwd/dictionary_file": None,
    "transport/auth/pubkey/private_key_pem": None,
    "adminspace/enabled": False,
    "adminspace/permissions/read": True,
    "adminspace/permissions/write": False,
    "plugins_loading/enabled": False,
    "stats/filters": [],
    "downsampling": [],
    "low_pass_filter": [],
    "access_control/enabled": False,
    "access_control/default_permission": "deny",
    "access_control/rules": None,
    "plugins": {},
}


def _at(settings: Settings, path: str) -> object:
    value: object = settings
    for name in path.split("/"):
        value = getattr(value, name)
    return _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, EndPoint | KeyExpr | ZenohId) else value


@pytest.mark.parametrize("mode", MODES)
def test_defaults_are_those_of_zenoh(mode: Mode) -> None:
    settings = Config().for_mode(mode)
    for path, default in DEFAULTS.items():
        expected = default[MODES.index(mode)] if isinstance(default, tuple) else default
        assert _at(settings, path) == expected, path
    assert settings.mode == mode


def test_settings_made_without_a_file_are_those_of_a_peer() -> None:
    assert Settings() == Config().resolved


@pytest.mark.parametrize(("path", "key"), all_keys().items())
def test_every_key_accepts_its_own_default(path: str, key: Key) -> None:
    config = Config()
    before = config.get_json(path)
    config.insert_json5(path, before)
    assert config.get_json(path) == before
    brings = (
        "connect/retry/",
        "listen/retry/",
        "routing/peer",
        "stats/prefixes/",
        "xrce/",
        "limits/",
    )
    if not key.hidden and not path.startswith(brings):
        assert config == Config()  # those bring an object that was not there before
    assert config.resolved == Settings()


@pytest.mark.parametrize(("path", "key"), all_keys().items())
def test_every_key_has_one_sentence(path: str, key: Key) -> None:
    assert key.doc.endswith("."), path
    assert ". " not in key.doc, path
    assert key.doc[0].isupper() or key.doc[0] == "`", path


def test_the_code_that_honours_a_key_exists() -> None:
    named = {key.honoured_by for key in all_keys().values() if key.honoured_by is not None}
    assert named
    for dotted in named:
        parts = dotted.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            try:
                found: object = importlib.import_module(".".join(parts[:cut]))
            except ModuleNotFoundError:
                continue
            for name in parts[cut:]:
                found = getattr(found, name)
            break
        else:
            pytest.fail(f"{dotted} cannot be imported")


def test_values_have_the_types_that_the_node_works_with() -> None:
    config = Config.from_json5(json.dumps({"mode": "router"}))
    settings = config.resolved
    assert settings.listen.endpoints == (EndPoint.parse("tcp/[::]:7447"),)
    with pytest.raises(AttributeError):
        settings.mode = "peer"  # type: ignore[misc]


def _sections(section: Section) -> set[Section]:
    inner = (key.shape for key in section.keys.values() if isinstance(key.shape, Section))
    return {section}.union(*(_sections(below) for below in inner))


def test_every_section_says_what_it_is() -> None:
    for section in _sections(section_of(Settings)):
        assert section.doc.endswith((".", "is.")), section.made_of
