"""Return the table of all ways into a node: which door, from where, who is asked for what.

    door                      reach          demands                       who
    listen/endpoints          MACHINE        user, key, certificate        everybody
    plugins/rest              OTHERS         a token                       everybody
    transport/auth/roles/…    MACHINE                                      the user "router-2"

A way that demands less, or is for more, is more open: `config/openness` compares two tables.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from zenlake.config.json5 import Plain
from zenlake.config.model import Settings
from zenlake.config.model_remote import remote_api
from zenlake.config.model_web import place, rest
from zenlake.errors import LocatorError
from zenlake.records import record
from zenlake.values.locator import EndPoint
from zenlake.values.loopback import is_within_machine

if TYPE_CHECKING:
    from zenlake.config.config import Config
    from zenlake.config.shape import Mode

__all__ = [
    "HTTP",
    "LISTENING",
    "READING",
    "SESSIONS",
    "WRITING",
    "Demand",
    "DoorTable",
    "Reach",
    "Way",
    "ways_in",
]

#: Doors are called by the key of the configuration that opens them.
SESSIONS: Final = "listen/endpoints"
MESSAGES: Final = "messages"
READING: Final = "adminspace/permissions/read"
WRITING: Final = "adminspace/permissions/write"
REST: Final = "plugins/rest"
REMOTE_API: Final = "plugins/remote_api"
DEVICES: Final = "xrce/listen"
ROUTERS: Final = "transport/auth/roles/router"
PEERS: Final = "transport/auth/roles/peer"
PROTOCOLS: Final = "transport/link/protocols"
NETWORKS: Final = "scouting/gossip/networks"

HTTP: Final = (REST, REMOTE_API)
#: Doors for those of some names, or for everybody.
NAMED: Final = (ROUTERS, PEERS, PROTOCOLS, NETWORKS)
LISTENING: Final = (SESSIONS, REST, REMOTE_API, DEVICES)

SECURE: Final = frozenset(("tls", "quic", "wss"))
AUTHORITY_OPTIONS: Final = tuple(f"root_ca_certificate_{it}" for it in ("file", "base64", "raw"))
USERS: Final = "transport/auth/usrpwd/dictionary_file"
KEYS: Final = "transport/auth/pubkey/known_keys_file"
TLS: Final = "transport/link/tls"
HERE: Final = "only this machine reaches it"


class Reach(IntEnum):
    """From where a door is reached."""

    MACHINE = 0
    OTHERS = 1


@record(frozen=True, slots=True)
class Demand:
    """One thing that a door asks for, and the key of the configuration that has it ask."""

    path: str
    words: str
    value: Hashable = None
    #: Whether it proves who somebody is.
    is_proof: bool = False
    #: Whether it is about what others could read on the way.
    is_secrecy: bool = False


@record(frozen=True, slots=True)
class Way:
    """One way in, for everybody who meets the demands, or for one of that name alone."""

    door: str
    reach: Reach = Reach.MACHINE
    demands: frozenset[Demand] = frozenset()
    who: str | None = None
    #: Where it listens, for messages.
    where: str = ""

    @property
    def has_proof(self) -> bool:
        """Return True if nobody comes in here who does not prove who they are."""
        return any(demand.is_proof for demand in self.demands)

    def lacks(self, other: Way) -> frozenset[Demand]:
        """Return the demands of another way that this one does not make.

        Within this machine nobody reads along.
        """
        return frozenset(
            demand
            for demand in other.demands - self.demands
            if not (demand.is_secrecy and self.reach is Reach.MACHINE)
        )


@record(frozen=True, slots=True)
class DoorTable:
    """All ways in, and the doors that the configuration says something about.

    `closed` has a sentence for each of these: what holds for those whom no way is for.
    """

    ways: tuple[Way, ...]
    closed: Mapping[str, str]

    @property
    def guards_nothing(self) -> bool:
        """Return True if everybody may connect from everywhere, as whatever, under no rule."""
        free = {(way.door, way.reach) for way in self.ways if not way.demands and way.who is None}
        everywhere = {(door, Reach.OTHERS) for door in (SESSIONS, MESSAGES)}
        named = {(door, Reach.MACHINE) for door in NAMED}
        return everywhere | named <= free and not any(way.has_proof for way in self.ways)


def ways_in(config: Config) -> DoorTable:
    """Return the table of a configuration, for a router if it does not say what it is for."""
    settings = config.for_mode(_mode(config))
    ways = [*_sessions(config, settings)]
    closed = {SESSIONS: HERE if ways else "it listens nowhere", MESSAGES: ""}
    ways.append(Way(MESSAGES, Reach.OTHERS, _of_messages(settings)))
    roles = settings.transport.auth.roles
    for door, words, nobody, names in (
        (ROUTERS, "{} may connect as a router", "nobody", roles.router),
        (PEERS, "{} may connect as a peer", "nobody", roles.peer),
        (PROTOCOLS, "links use {}", "no protocol", settings.transport.link.protocols),
        (NETWORKS, "nodes are dialled in {}", "no network", settings.scouting.gossip.networks),
    ):
        ways += [Way(door)] if names is None else [Way(door, who=name) for name in names]
        closed[door] = words.format(f"only {', '.join(names)}" if names else nobody)
    ways += _admin_space(settings)
    if config.names("adminspace"):
        closed[READING] = "the admin space answers nobody else"
        closed[WRITING] = "the admin space takes changes from nobody else"
    plugins: dict[str, Plain] = json.loads(config.get_json("plugins"))
    for name in plugins:
        found = list(_http(name, plugins, settings))
        ways += found
        if f"plugins/{name}" in HTTP:
            closed[f"plugins/{name}"] = HERE
            for part in ("cors_origins", "origins", "hosts"):
                closed[f"plugins/{name}/{part}"] = "pages of other origins are not answered"
            closed[f"plugins/{name}/page"] = "the page and its WebSocket are not served"
    ways += _devices(settings)
    if config.names("xrce") or settings.xrce.listen:
        closed[DEVICES] = HERE if settings.xrce.listen else "devices of 2018 connect nowhere"
    return DoorTable(tuple(ways), closed)


def _mode(config: Config) -> Mode:
    return config.mode if config.get_json("mode") != "null" else "router"


# ---------------------------------------------------------------------------------- sessions


def _sessions(config: Config, settings: Settings) -> Iterator[Way]:
    """Return a way for each listener.

    A configuration without listeners says nothing of where to listen, and by `enable_mtls` that
    others are asked for a certificate there. On this machine `zenlake up` listens on tcp.
    """
    asked = frozenset(_credentials(settings))
    tls = settings.transport.link.tls
    if not config.names(SESSIONS):
        yield Way(SESSIONS, Reach.MACHINE, asked)
        yield Way(SESSIONS, Reach.OTHERS, asked | ({_certificate()} if tls.enable_mtls else set()))
        return
    for endpoint in settings.listen.endpoints:
        demands = set() if _is_group(endpoint) else set(asked)
        if endpoint.protocol in SECURE:
            demands.add(_encrypted(SESSIONS))
            given = endpoint.get("enable_mtls")
            if tls.enable_mtls if given is None else given == "true":
                own = tuple(filter(None, map(endpoint.get, AUTHORITY_OPTIONS)))
                demands.add(_certificate(own))
        where = str(endpoint.locator)
        yield from _reached(SESSIONS, is_within_machine(where), demands, where)


def _credentials(settings: Settings) -> Iterator[Demand]:
    """Return what every session is asked for, whatever its link."""
    auth = settings.transport.auth
    users, keys = auth.usrpwd.dictionary_file, auth.pubkey.known_keys_file
    if users is not None:
        yield _user(users)
    if auth.pubkey.private_key_file is not None or auth.pubkey.private_key_pem is not None:
        yield Demand("transport/auth/pubkey", "only known public keys are let in", is_proof=True)
        who = "no public key is let in" if keys is None else f"only keys in {keys} are let in"
        yield Demand(KEYS, who, keys, is_proof=True)


def _user(users: str) -> Demand:
    return Demand(USERS, f"only users in {users} are let in", users, is_proof=True)


def _certificate(own: tuple[str, ...] = ()) -> Demand:
    words = "whoever connects has to show a certificate of its authority"
    return Demand(SESSIONS, words, ("certificate", own), is_proof=True)


def _encrypted(path: str) -> Demand:
    return Demand(path, "what passes is encrypted", "encrypted", is_secrecy=True)


def _is_group(endpoint: EndPoint) -> bool:
    """Return True for a multicast group, whose members are asked for nothing."""
    if endpoint.protocol != "udp":
        return False
    try:
        return ipaddress.ip_address(endpoint.host.partition("%")[0]).is_multicast
    except (ValueError, LocatorError):
        return False


def _reached(door: str, within: bool, demands: Iterable[Demand], where: str) -> Iterator[Way]:
    """Return the ways of a place to listen: what others reach is reached from here, too."""
    for reach in (Reach.MACHINE,) if within else (Reach.MACHINE, Reach.OTHERS):
        yield Way(door, reach, frozenset(demands), where=where)


def _of_messages(settings: Settings) -> frozenset[Demand]:
    """Return what is demanded of all that is said and believed, over whatever link."""
    tls = settings.transport.link.tls
    demands: list[Demand] = []
    if tls.enable_mtls:
        demands.append(Demand(f"{TLS}/enable_mtls", "only certificates are let in"))
    authority = (tls.root_ca_certificate, tls.root_ca_certificate_base64)
    if any(authority):
        words = f"only certificates of {authority[0] or 'its authority'} are believed"
        demands.append(Demand(f"{TLS}/root_ca_certificate", words, authority))
        if tls.verify_name_on_connect:
            words = "a router that is dialled has to be the one of its certificate"
            demands.append(Demand(f"{TLS}/verify_name_on_connect", words))
    if tls.close_link_on_expiration:
        words = "links end when their certificates expire"
        demands.append(Demand(f"{TLS}/close_link_on_expiration", words))
    if settings.access_control.enabled:
        rules = settings.access_control
        demands.append(Demand("access_control", "rules say who may do what", rules))
    for small in settings.low_pass_filter:
        words = "messages above a size are dropped"
        demands.append(Demand("low_pass_filter", words, small))
    for slow in settings.downsampling:
        words = "messages above a frequency are dropped"
        demands.append(Demand("downsampling", words, slow))
    demands += _below("namespace", "its own programs and HTTP", str(settings.namespace or ""))
    return frozenset(demands)


def _below(path: str, who: str, prefix: str) -> Iterator[Demand]:
    """Return a demand for each beginning of a prefix: below it is narrower, elsewhere is not."""
    chunks = [chunk for chunk in prefix.split("/") if chunk]
    for length in range(1, len(chunks) + 1):
        beginning = "/".join(chunks[:length])
        yield Demand(path, f"{who} reach only keys below {beginning}", beginning)


def _admin_space(settings: Settings) -> Iterator[Way]:
    permissions = settings.adminspace.permissions
    for door, permitted in ((READING, permissions.read), (WRITING, permissions.write)):
        if permitted:
            within = permissions.links == "loopback"
            yield from _reached(door, within, (), f"permissions/links: '{permissions.links}'")


# ------------------------------------------------------------------------------ other doors


def _http(name: str, plugins: dict[str, Plain], settings: Settings) -> Iterator[Way]:
    """Return a way for each kind of credentials that a server takes, and for pages of others."""
    door, mode = f"plugins/{name}", settings.mode
    has: list[Demand] = []
    if door == REST and (web := rest(plugins, mode)) is not None:
        port, anonymous, tokens = web.http_port, web.allow_anonymous, web.tokens_file
        lists = {"cors_origins": web.cors_origins, "hosts": web.hosts}
        page = web.page
    elif door == REMOTE_API and (remote := remote_api(plugins, mode)) is not None:
        port, anonymous, tokens = remote.websocket_port, remote.allow_anonymous, remote.tokens_file
        lists = {"origins": remote.origins, "hosts": remote.hosts}
        page = False
        if remote.secure_websocket is not None:
            has.append(_encrypted(f"{door}/secure_websocket"))
    else:
        return
    if not anonymous:
        words = "who shows no user is not answered"
        has.append(Demand(f"{door}/allow_anonymous", words))
    proofs: list[Demand] = []
    users = settings.transport.auth.usrpwd.dictionary_file
    if users is not None:
        proofs.append(_user(users))
    if tokens is not None:
        words = f"only tokens in {tokens} are answered"
        proofs.append(Demand(f"{door}/tokens_file", words, tokens, is_proof=True))
    host, number = place(port)
    where = f"{host}:{number}"
    within = is_within_machine(f"tcp/{f'[{host}]' if ':' in host else host}:{number}")
    for shown in [{proof} for proof in proofs] or [set()]:
        if within or shown or anonymous:  # else it does not start
            yield from _reached(door, within, {*has, *shown}, where)
        for part, origins in lists.items():
            for origin in origins:
                who = None if origin == "*" else origin
                yield Way(f"{door}/{part}", Reach.OTHERS, frozenset(shown), who, where)
    if page:
        yield Way(f"{door}/page", where=where)


def _devices(settings: Settings) -> Iterator[Way]:
    """Return a way for each listener of the broker of 2018."""
    broker = settings.xrce
    demands = [*_below("xrce/prefix", "devices", broker.prefix)]
    who = f"the user '{broker.username}'" if broker.username else "nobody by name"
    demands.append(Demand("xrce/username", f"devices are {who} to rules", broker.username))
    if broker.authentication:
        words = "devices have to show their secret"
        demands.append(Demand("xrce/authentication", words, broker.authentication, is_proof=True))
    for text in broker.listen:
        where = str(EndPoint.parse(text).locator)
        yield from _reached(DEVICES, is_within_machine(where), demands, where)
