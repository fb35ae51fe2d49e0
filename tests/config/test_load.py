from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.config import Config, ConfigWarning, InvalidConfig
from zenlake.config.declare import Section
from zenlake.config.load import all_keys, read_tree
from zenlake.config.nearest import distance
from zenlake.config.shape import MODES
from zenlake.errors import ConfigError

PATHS = list(all_keys())
LEAVES = [path for path, key in all_keys().items() if not isinstance(key.shape, Section)]
LETTERS = "abcdefghijklmnopqrstuvwxyz_"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["router", "peer", "enabled", "id", "rules", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        yield


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        read_tree(text, "node.json5")
    return str(caught.value).splitlines()


def refusal(path: str, value: str) -> str:
    with pytest.raises(InvalidConfig) as caught:
        Config().insert_json5(path, value)
    return str(caught.value)


def test_all_problems_are_reported_with_their_places() -> None:
    text = """{
  mode: "routr",
  transport: { link: { tx: {
    lease: "10s",
    leese: 1,
    queue: { size: { data: 99 } },
  } } },
  connect: { endpoints: { rooter: [] } },
  lease: 5,
}"""
    assert problems(text) == [
        'node.json5:2:9: mode: expected "router", "peer" or "client", got "routr"',
        "node.json5:4:12: transport/link/tx/lease: "
        'expected milliseconds (an integer >= 1), got "10s"',
        "node.json5:5:5: transport/link/tx/leese: "
        "unknown key; did you mean 'transport/link/tx/lease'?",
        "node.json5:6:28: transport/link/tx/queue/size/data: "
        "expected batches (an integer from 1 to 16), got 99",
        "node.json5:8:27: connect/endpoints/rooter: "
        "not a mode; did you mean 'connect/endpoints/router'?",
        "node.json5:9:3: lease: unknown key; did you mean 'transport/link/tx/lease'?",
    ]


def test_text_that_is_not_json5_is_one_problem() -> None:
    assert problems("{mode: 'peer'\n id: 1}") == ["node.json5:2:2: expected ',' or '}', found 'id'"]


def test_a_configuration_is_an_object() -> None:
    assert problems("[]")[0].startswith("node.json5:1:1: expected an object with id, metadata")


def test_a_report_has_a_bound() -> None:
    text = "{" + ",".join(f"k{number}: 1" for number in range(1000)) + "}"
    with pytest.raises(InvalidConfig) as caught:
        read_tree(text)
    assert len(caught.value.problems) == 100
    assert caught.value.left_out == 900
    assert str(caught.value).endswith("\nand 900 more")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("mode", '"bogus"', 'expected "router", "peer" or "client", got "bogus"'),
        ("transport/link/tx/lease", "0", "expected milliseconds (an integer >= 1), got 0"),
        ("transport/link/tx/lease", "1.5", "expected milliseconds (an integer >= 1), got 1.5"),
        (
            "transport/link/tx/lease",
            "18446744073709551616",
            "expected at most 18446744073709551615, got 18446744073709551616",
        ),
        (
            "transport/link/tx/lease",
            "{router: 1}",
            'expected milliseconds (an integer >= 1), got {"router": 1}',
        ),
        (
            "transport/link/tx/batch_size",
            "70000",
            "expected bytes (an integer from 1 to 65535), got 70000",
        ),
        (
            "transport/link/tx/sequence_number_resolution",
            '"64bit"',
            'expected "8bit", "16bit" or "32bit", got "64bit"',
        ),
        ("listen", "null", "expected an object with timeout_ms, endpoints"),
        ("listen/endpoints", "null", "expected a list, each item an endpoint"),
        ("connect/endpoints", '"tcp/a:1"', "expected a list, each item an endpoint"),
        ("connect/timeout_ms", "1.5", "expected milliseconds (an integer), got 1.5"),
        ("scouting/multicast/address", '"x"', "expected an IP address and a port (ip:port)"),
        ("scouting/multicast/address", '"1.2.3.4:99999"', "beyond 65535"),
        ("scouting/multicast/address", '"::1:80"', "brackets belong around the address of IPv6"),
        ("scouting/multicast/autoconnect", '["rooter"]', 'expected "router", "peer" or "client"'),
        ("scouting/multicast/autoconnect_strategy", '"x"', 'expected "always" or "greater-zid"'),
        ("id", '"0a"', "expected a Zenoh id"),
        ("namespace", '"a/*"', "expected a key expression without wildcards"),
        ("aggregation/subscribers", '["a/**/**"]', "expected a key expression in canonical form"),
        ("region_name", '"' + "x" * 33 + '"', "expected a name of 1 to 32 bytes"),
        ("gateway/south", '"x"', 'expected "auto", got "x"'),
        ("gateway/south", "[{filters: [{zids: []}]}]", "expected a non-empty list"),
        ("transport/auth/usrpwd", '{user: "a"}', "'user' is given without 'password'"),
        ("plugins", "[]", "expected an object, got []"),
        ("adminspace/enabled", "1", "expected true or false, got 1"),
        ("aggregation/subscribers", "[1]", "expected a key expression in canonical form, got 1"),
        ("connect/endpoints", "[1]", "or an object with strategy, locators, got 1"),
        ("transport/shared_memory/transport_optimization/messages", "[1]", '"reply", got 1'),
        ("connect/retry", "{period_increase_factor: 1" + "0" * 390 + "}", "a number >= 0"),
        ("mode", "{", "this '{' is not closed; write '}' (line 1, column 1 of the value)"),
        ("mode/x", "1", "'mode' has no keys below it"),
        ("", "1", "'' names no key; write 'mode'"),
        ("plugins/" + "a/" * 70, "1", "nested more than 64 deep"),
    ],
)
def test_values_are_refused_with_what_was_expected(path: str, value: str, message: str) -> None:
    assert message in refusal(path, value)


RULE = '{id: "r", messages: ["put"], permission: "allow", key_exprs: ["a"]}'


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("access_control/rules", RULE, "expected a list"),
        ("access_control/rules", f"[{RULE.replace('put', 'push')}]", 'expected "put", "delete"'),
        ("access_control/rules", '[{id: "r"}]', "access_control/rules/0/key_exprs: missing"),
        ("access_control/rules", f"[{RULE[:-1]}, flow: []}}]", "'access_control/rules/0/flows'"),
        ("access_control/subjects", '[{id: "s", interfaces: []}]', "expected a non-empty list"),
        ("access_control/subjects", '[{id: "s", link_protocols: ["x"]}]', 'expected "tcp", "udp"'),
        (
            "access_control",
            f'{{rules: [{RULE}], policies: [{{rules: ["q"], subjects: []}}]}}',
            "access_control/policies/0/rules: 'q' is the id of none of the rules",
        ),
        ("access_control", f"{{rules: [{RULE}, {RULE}]}}", "rules/1/id: 'r' is used twice"),
        ("downsampling", '[{messages: ["put"], rules: []}]', "expected a non-empty list"),
        (
            "downsampling",
            '[{messages: ["put"], rules: [{key_expr: "a", freq: -1}]}]',
            "expected hertz (a number >= 0), got -1",
        ),
        (
            "low_pass_filter",
            '[{messages: ["put"], key_exprs: ["a"]}]',
            "low_pass_filter/0/size_limit: missing; write bytes (an integer >= 0)",
        ),
        ("qos/network", '[{messages: ["reply"], overwrite: {}}]', 'expected "put", "delete" or'),
        ("qos/network", '[{messages: ["put"], overwrite: {priority: 8}}]', "from -7 to 7"),
        ("qos/network", '[{messages: ["put"], overwrite: {priority: "x"}}]', '"real_time"'),
        ("qos/network", '[{messages: ["put"], overwrite: {}, payload_size: "5"}]', "two dots"),
        ("qos/network", '[{messages: ["put"], overwrite: {}, payload_size: "a.."}]', "'a' is not"),
        (
            "qos/publication",
            '[{key_exprs: ["a"], config: {allowed_destination: "x"}}]',
            'expected "session_local", "remote" or "any"',
        ),
    ],
)
def test_interceptors_are_checked_to_the_last_key(path: str, value: str, message: str) -> None:
    assert message in refusal(path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("access_control/rules", f"[{RULE}]"),
        (
            "access_control/subjects",
            '[{id: "s", interfaces: ["lo"], cert_common_names: ["x"], usernames: ["u"],'
            ' link_protocols: ["unixsock-stream"], zids: ["1"]}]',
        ),
        (
            "access_control",
            f'{{rules: [{RULE}], subjects: [{{id: "s"}}],'
            ' policies: [{rules: ["r"], subjects: ["s"]}]}',
        ),
        (
            "downsampling",
            '[{messages: ["put"], flows: ["egress"], rules: [{key_expr: "a/**", freq: 0.5}]}]',
        ),
        ("low_pass_filter", '[{messages: ["query"], key_exprs: ["a"], size_limit: 8192}]'),
        (
            "qos/network",
            '[{messages: ["put"], overwrite: {priority: -3, congestion_control: "block_first"},'
            ' qos: {reliability: "reliable", priority: "data"}, payload_size: "100.."}]',
        ),
        ("qos/publication", '[{key_exprs: ["a"], config: {priority: "real_time"}}]'),
        ("gateway/south", '[{filters: [{modes: ["peer"], region_names: ["r"], negated: true}]}]'),
        ("connect/endpoints", '[{strategy: "allOf", locators: ["tcp/1.2.3.4:5"]}, "udp/a:1"]'),
        ("connect/retry", "{period_init_ms: {router: 3}}"),
        ("namespace", '"a/b"'),
        ("metadata", "{tags: ['a', {b: 1}]}"),
        ("region_name", '"hall"'),
        ("scouting/multicast/address", '"[ff02::1]:7446"'),
        ("scouting/multicast/autoconnect_strategy", '{peer: {to_router: "greater-zid"}}'),
        ("scouting/multicast/autoconnect_strategy", '{to_peer: "always"}'),
        ("plugins_loading/search_dirs", '[{kind: "path", value: "x"}, "/lib"]'),
        ("routing/router/linkstate/transport_weights", '[{dst_zid: "1", weight: 10}]'),
        ("routing", '{peer: {mode: "linkstate"}, router: {peers_failover_brokering: true}}'),
        ("transport/link/tls/listen_private_key_base64", '"YQ=="'),
        ("transport/auth/usrpwd", '{user: "a", password: "b"}'),
        ("plugins/storage_manager/storages/demo", '{key_expr: "a/**", volume: "memory"}'),
    ],
)
def test_what_zenoh_accepts_is_accepted_and_used(path: str, value: str) -> None:
    config = Config()
    config.insert_json5(path, value)
    again = Config.from_json5(str(config))
    assert again == config
    assert again.resolved == config.resolved


def test_values_that_count_as_integers_are_integers() -> None:
    config = Config()
    for written, meant in (("1e3", "1000"), ("5.0", "5"), ("0x10", "16")):
        config.insert_json5("transport/link/tx/lease", written)
        assert config.get_json("transport/link/tx/lease") == meant


@pytest.mark.parametrize(
    "path", ["transport.link.tx.lease", "/transport/link/tx/lease/", "transport//link/tx/lease"]
)
def test_paths_may_be_written_in_several_ways(path: str) -> None:
    config = Config()
    config.insert_json5(path, "77")
    assert config.get_json("transport/link/tx/lease") == config.get_json(path) == "77"


def test_a_section_that_is_inserted_replaces_the_one_before() -> None:
    config = Config()
    config.insert_json5("transport/unicast/open_timeout", "5")
    config.insert_json5("transport/unicast", "{max_links: 2}")
    assert json.loads(config.get_json("transport/unicast/open_timeout")) == 10_000
    assert json.loads(config.get_json("transport/unicast/max_links")) == 2


def test_one_mode_can_be_set_by_its_path() -> None:
    config = Config()
    config.insert_json5("listen/endpoints/router", '["tcp/a:1"]')
    config.insert_json5("connect/endpoints/peer", '["tcp/b:1"]')
    config.insert_json5("connect/timeout_ms/client", "7")
    assert json.loads(config.get_json("listen/endpoints")) == {
        "router": ["tcp/a:1"],
        "peer": ["tcp/[::]:0"],
    }
    assert json.loads(config.get_json("connect/endpoints")) == {
        "router": [],
        "peer": ["tcp/b:1"],
        "client": [],
    }
    assert config.get_json("connect/endpoints/peer") == '["tcp/b:1"]'
    assert config.get_json("connect/timeout_ms") == '{"client":7}'
    assert config.for_mode("router").connect.timeout_ms == -1
    assert config.for_mode("client").connect.timeout_ms == 7


def test_a_mode_left_out_listens_nowhere_but_keeps_its_patience() -> None:
    config = Config()
    config.insert_json5("listen/endpoints", '{router: ["tcp/a:1"]}')
    config.insert_json5("listen/timeout_ms", "{router: 5}")
    assert config.for_mode("peer").listen.endpoints == ()
    assert config.for_mode("peer").listen.timeout_ms == 0
    assert config.for_mode("router").listen.timeout_ms == 5


def test_plugins_are_free_in_form() -> None:
    config = Config()
    config.insert_json5("plugins/dds", "{http_port: 8000, __required__: true}")
    config.insert_json5("plugins/dds/http_port", '"127.0.0.1:80"')
    config.insert_json5("plugins/dds/http_port/deep/er", "[1]")
    assert json.loads(config.get_json("plugins")) == {
        "dds": {"http_port": {"deep": {"er": [1]}}, "__required__": True}
    }
    with pytest.raises(ConfigError, match="plugins/none: nothing is written there"):
        config.get_json("plugins/none")


def test_what_is_refused_changes_nothing() -> None:
    config = Config()
    with pytest.raises(ConfigError):
        config.insert_json5("transport/link", "{tx: {lease: 5, batch_size: -1}}")
    assert config == Config()


@pytest.mark.parametrize("path", PATHS)
def test_one_wrong_letter_is_mended_in_any_path(path: str) -> None:
    for at in range(len(path) % 3, len(path), 3):
        if path[at] == "/":
            continue
        wrong = path[:at] + LETTERS[(at * 7 + len(path)) % 27] + path[at + 1 :]
        if wrong in all_keys():
            continue
        with pytest.raises(InvalidConfig) as caught:
            Config().get_json(wrong)
        message = caught.value.problems[0].message
        assert message.startswith("unknown key; did you mean '"), wrong
        suggestion = message.split("'")[1]
        # Two keys may be equally near (`tx` and `rx` from `sx`); what counts is the distance.
        assert suggestion in all_keys()
        assert distance(wrong, suggestion) == 1, (wrong, suggestion)


def test_a_key_in_the_wrong_section_is_found() -> None:
    assert "did you mean 'transport/link/tx/lease'?" in refusal("transport/link/rx/lease", "1")
    assert "did you mean 'scouting/multicast/ttl'?" in refusal("ttl", "1")


def outcome(call: Callable[[], object]) -> InvalidConfig | None:
    """Nothing else than a refusal with problems may come out of what strangers write."""
    try:
        call()
    except InvalidConfig as error:
        return error
    return None


@given(st.sampled_from(PATHS), json_values)
def test_any_value_at_any_path_is_taken_or_refused(path: str, value: object) -> None:
    config = Config()
    refused = outcome(lambda: config.insert_json5(path, json.dumps(value)))
    if refused is not None:
        assert all(problem.path.startswith(path) for problem in refused.problems)
        assert config == Config()
        return
    # What was taken can be used in every mode, and is taken again in the form it is shown in.
    for mode in MODES:
        config.for_mode(mode)
    shown = config.get_json(path)
    again = Config()
    again.insert_json5(path, shown)
    assert again.get_json(path) == shown


@given(json_values)
def test_any_json_is_a_configuration_or_refused(value: object) -> None:
    refused = outcome(lambda: Config.from_json5(json.dumps(value)))
    assert refused is None or str(refused)


@given(st.text(max_size=30), st.text(max_size=10))
def test_any_path_and_text_are_taken_or_refused(path: str, text: str) -> None:
    for refused in (
        outcome(lambda: Config().insert_json5(path, text)),
        outcome(lambda: Config().get_json(path)),
    ):
        assert refused is None or str(refused)
