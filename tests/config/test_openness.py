"""Options of `zenlake up` and `zenlake router` open nothing that a configuration file closes."""

import json

import pytest

from zenlake.config import Config, InvalidConfig
from zenlake.config.openness import refuse_more_open

MTLS = """transport: {link: {tls: {
    enable_mtls: true, root_ca_certificate: "/ca",
    listen_certificate: "/c", listen_private_key: "/k",
}}},"""
USERS = 'transport: {auth: {usrpwd: {dictionary_file: "/u"}}},'
KEYS = 'transport: {auth: {pubkey: {private_key_file: "/own"}}},'
NO_PEER = "transport: {auth: {roles: {peer: []}}},"
HERE = 'listen: {endpoints: ["tcp/127.0.0.1:7"]},'
TLS_ALONE = 'listen: {endpoints: ["tls/[::]:7"]},'
EVERYBODY = 'listen/endpoints:["tcp/[::]:7447"]'
DEFAULT = Config().get_json("listen/endpoints")
RULES = 'access_control: {enabled: true, default_permission: "deny"},'
TOKENS = 'plugins: {rest: {http_port: 1, tokens_file: "/t", cors_origins: ["https://a"]}},'
WSS = """plugins: {remote_api: {websocket_port: "0.0.0.0:1", tokens_file: "/t",
    secure_websocket: {certificate_path: "/c", private_key_path: "/k"}}},"""
SMALL = '{messages: ["put"], key_exprs: ["**"], size_limit: 10}'
SLOW = '{messages: ["put"], rules: [{key_expr: "**", freq: 0}]}'
DEVICES = 'xrce: {listen: ["udp/127.0.0.1:1"], authentication: "aa", prefix: "floor/1"},'
ANYBODY_BY_HTTP = 'plugins/rest:{http_port: "0.0.0.0:1", allow_anonymous: true}'


def changed(file: str, *changes: str) -> tuple[Config, Config]:
    """A file, and the configuration that options make of it."""
    said, made = Config.from_json5(f"{{{file}}}"), Config.from_json5(f"{{{file}}}")
    for change in changes:
        key, _, value = change.partition(":")
        made.insert_json5(key, value)
    return said, made


REFUSED = [
    # Sessions: who is asked for what, and from where.
    (USERS, "transport/auth/usrpwd/dictionary_file:null", "transport/auth/usrpwd/dictionary_file"),
    (USERS, 'transport/auth/usrpwd/dictionary_file:"/v"', "transport/auth/usrpwd/dictionary_file"),
    (KEYS, 'transport/auth/pubkey/known_keys_file:"/all"', "transport/auth/pubkey/known_keys_file"),
    (KEYS, "transport/auth/pubkey/private_key_file:null", "transport/auth/pubkey"),
    (HERE + MTLS, "transport/link/tls/enable_mtls:false", "transport/link/tls/enable_mtls"),
    (MTLS, 'transport/link/tls/root_ca_certificate:"/x"', "transport/link/tls/root_ca_certificate"),
    (MTLS, EVERYBODY, "listen/endpoints"),
    (MTLS, 'listen/endpoints:["tls/[::]:7#enable_mtls=false"]', "listen/endpoints"),
    (MTLS, 'listen/endpoints:["tls/[::]:7#root_ca_certificate_file=/x"]', "listen/endpoints"),
    (TLS_ALONE + MTLS, EVERYBODY, "listen/endpoints"),
    (TLS_ALONE + MTLS, 'listen/endpoints:["tls/[::]:7", "tcp/127.0.0.1:7"]', "listen/endpoints"),
    (TLS_ALONE + MTLS, f"listen/endpoints:{DEFAULT}", "listen/endpoints"),
    (MTLS, f"listen/endpoints:{DEFAULT}", "listen/endpoints"),
    (TLS_ALONE + USERS, EVERYBODY, "listen/endpoints"),
    (USERS + HERE, 'listen/endpoints:["udp/224.0.0.9:7"]', "transport/auth/usrpwd/dictionary_file"),
    (HERE, EVERYBODY, "listen/endpoints"),
    ("listen: {endpoints: []},", 'listen/endpoints:["tcp/127.0.0.1:7"]', "listen/endpoints"),
    ('listen: {endpoints: ["unixsock-stream//s"]},', EVERYBODY, "listen/endpoints"),
    ("transport: {link: {tls: {root_ca_certificate: '/ca'}}},",
     "transport/link/tls/verify_name_on_connect:false",
     "transport/link/tls/verify_name_on_connect"),
    ("transport: {link: {tls: {close_link_on_expiration: true}}},",
     "transport/link/tls/close_link_on_expiration:false",
     "transport/link/tls/close_link_on_expiration"),
    ("transport: {link: {protocols: ['tls']}},", "transport/link/protocols:null",
     "transport/link/protocols"),
    ("scouting: {gossip: {networks: ['10.0.0.0/8']}},", "scouting/gossip/networks:null",
     "scouting/gossip/networks"),
    # What those may do who are let in.
    (NO_PEER, "transport/auth/roles/peer:null", "transport/auth/roles/peer"),
    ("transport: {auth: {roles: {router: ['r']}}},", "transport/auth/roles/router:['r', 's']",
     "transport/auth/roles/router"),
    (RULES, "access_control/enabled:false", "access_control"),
    (RULES, 'access_control/default_permission:"allow"', "access_control"),
    (f"low_pass_filter: [{SMALL}],", "low_pass_filter:[]", "low_pass_filter"),
    (f"low_pass_filter: [{SMALL}],", f"low_pass_filter:[{SMALL.replace('10', '11')}]",
     "low_pass_filter"),
    (f"downsampling: [{SLOW}],", "downsampling:[]", "downsampling"),
    ('namespace: "plant",', "namespace:null", "namespace"),
    ('namespace: "plant/a",', 'namespace:"plant/b"', "namespace"),
    # The admin space.
    ("adminspace: {permissions: {read: false}},", "adminspace/permissions/read:true",
     "adminspace/permissions/read"),
    ("adminspace: {permissions: {write: false}},", "adminspace/permissions/write:true",
     "adminspace/permissions/write"),
    (USERS, "adminspace/permissions/write:true", "adminspace/permissions/write"),
    (RULES, "adminspace/permissions/write:true", "adminspace/permissions/write"),
    (HERE, "adminspace/permissions/write:true", "adminspace/permissions/write"),
    (TOKENS, "adminspace/permissions/write:true", "adminspace/permissions/write"),
    (NO_PEER, "adminspace/permissions/write:true", "adminspace/permissions/write"),
    (MTLS, 'adminspace/permissions/links:"any"', "adminspace/permissions/read"),
    # HTTP and WebSockets.
    (TOKENS, "plugins/rest/allow_anonymous:true", "plugins/rest/allow_anonymous"),
    (TOKENS, "plugins/rest/tokens_file:null", "plugins/rest/tokens_file"),
    (TOKENS, 'plugins/rest/tokens_file:"/v"', "plugins/rest/tokens_file"),
    (TOKENS, "plugins/rest:{http_port: 2}", "plugins/rest/tokens_file"),
    (TOKENS, 'plugins/rest/cors_origins:["*"]', "plugins/rest/cors_origins"),
    (TOKENS, 'plugins/rest/hosts:["router.example"]', "plugins/rest/hosts"),
    (USERS + "plugins: {rest: {http_port: 1}},", 'plugins/rest/tokens_file:"/t"',
     "transport/auth/usrpwd/dictionary_file"),
    ("plugins: {rest: {http_port: 1, page: false}},", "plugins/rest/page:true",
     "plugins/rest/page"),
    ('plugins: {rest: {http_port: "127.0.0.1:1", allow_anonymous: true}},',
     'plugins/rest/http_port:"0.0.0.0:1"', "plugins/rest"),
    (TLS_ALONE + MTLS, ANYBODY_BY_HTTP, "plugins/rest"),
    (MTLS, ANYBODY_BY_HTTP, "plugins/rest"),
    (HERE, ANYBODY_BY_HTTP, "plugins/rest"),
    (MTLS, 'plugins/rest:{http_port: 1, cors_origins: ["*"]}', "plugins/rest/cors_origins"),
    (WSS, "plugins/remote_api/secure_websocket:null", "plugins/remote_api/secure_websocket"),
    # Devices of 2018.
    (HERE, 'xrce/listen:["udp/0.0.0.0:7400"]', "xrce/listen"),
    (USERS, 'xrce/listen:["udp/127.0.0.1:7400"]', "xrce/listen"),
    (DEVICES, 'xrce/authentication:""', "xrce/authentication"),
    (DEVICES, 'xrce/prefix:"floor"', "xrce/prefix"),
    (DEVICES + RULES, 'xrce/username:"boss"', "xrce/username"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "path"), REFUSED)
def test_an_option_that_opens_a_way_in_is_refused_by_the_key_that_closes_it(
    file: str, change: str, path: str
) -> None:
    with pytest.raises(InvalidConfig) as refused:
        refuse_more_open(*changed(file, change), "plant.json5")
    assert path in {problem.path for problem in refused.value.problems}
    assert "plant.json5 says so, and an option would undo that" in str(refused.value)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        # What the file says nothing of, and guards nothing by.
        ("", EVERYBODY),
        ("", ANYBODY_BY_HTTP),
        ("", "adminspace/permissions/write:true"),
        ("", 'xrce/listen:["udp/0.0.0.0:7400"]'),
        ("", 'namespace:"plant"'),
        # What is narrower.
        (USERS + TLS_ALONE, 'listen/endpoints:["tls/127.0.0.1:7"]'),
        (USERS + TLS_ALONE, 'listen/endpoints:["unixsock-stream//s"]'),
        (USERS + TLS_ALONE, "transport/link/tls/enable_mtls:true"),
        (TLS_ALONE + MTLS, 'transport/auth/usrpwd/dictionary_file:"/u"'),
        ("transport: {auth: {roles: {router: ['r']}}},", "transport/auth/roles/router:[]"),
        (f"low_pass_filter: [{SMALL}],", f"low_pass_filter:[{SMALL}, {SMALL}]"),
        ('namespace: "plant",', 'namespace:"plant/a"'),
        ("adminspace: {permissions: {write: true}},", "adminspace/permissions/write:false"),
        (TOKENS, "plugins/rest/cors_origins:[]"),
        (TOKENS, "plugins/rest/max_body:1"),
        (USERS + TOKENS, "plugins/rest/tokens_file:null"),  # users are still asked
        (DEVICES, 'xrce/prefix:"floor/1/line"'),
        (DEVICES, "xrce/listen:[]"),
        # What opens a door, and asks who comes.
        (HERE + USERS, 'listen/endpoints:["tcp/0.0.0.0:7"]'),
        (HERE, 'plugins/rest:{http_port: "0.0.0.0:1", tokens_file: "/t"}'),
        (TOKENS, 'plugins/rest/http_port:"0.0.0.0:1"'),
        (HERE, 'xrce:{listen: ["udp/0.0.0.0:7400"], authentication: "aa"}'),
        # What `zenlake up` does unasked.
        (TLS_ALONE + MTLS, "plugins/rest:{http_port: 8000}"),
        (MTLS, 'listen/endpoints:["tcp/127.0.0.1:7447"]'),
    ],
)
def test_an_option_that_opens_nothing_is_as_good_as_the_file(file: str, change: str) -> None:
    refuse_more_open(*changed(file, change), "plant.json5")


@pytest.mark.parametrize("file", sorted({file for file, _, _ in REFUSED}))
def test_a_file_is_no_more_open_than_itself(file: str) -> None:
    refuse_more_open(*changed(file), "plant.json5")


def test_all_that_an_option_opens_is_told_at_once() -> None:
    said, made = changed(USERS + RULES, "access_control/enabled:false")
    made.insert_json5("transport/auth/usrpwd/dictionary_file", json.dumps(None))
    with pytest.raises(InvalidConfig) as refused:
        refuse_more_open(said, made, "plant.json5")
    assert [problem.path for problem in refused.value.problems] == [
        "transport/auth/usrpwd/dictionary_file",
        "access_control",
    ]
