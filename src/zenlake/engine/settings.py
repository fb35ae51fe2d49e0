"""From a configuration to what a node needs to know."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from zenlake.clock.backoff import Backoff
from zenlake.config.model import Settings
from zenlake.config.model_connect import EndpointGroup, Retry
from zenlake.config.model_limits import LimitSettings
from zenlake.config.model_routing import GatewayFilter
from zenlake.config.model_transport import PublicKeySettings
from zenlake.errors import ConfigError
from zenlake.links.secrets import demand_secret
from zenlake.node.settings import MODES, NodeSettings
from zenlake.routing.limits import ResourceLimits
from zenlake.routing.policy import Policy
from zenlake.routing.regions import RegionFilter, Subregion
from zenlake.transport.auth import Credentials, read_dictionary
from zenlake.transport.pem import private_key, public_keys
from zenlake.transport.rsa import PrivateKey
from zenlake.transport.rsa import PublicKey as RsaKey
from zenlake.values.whatami import WhatAmI

T = TypeVar("T")

#: Bits of the resolution byte by the configuration's word.
RESOLUTIONS = {"8bit": 0b00, "16bit": 0b01, "32bit": 0b10}


def roles(names: tuple[str, ...]) -> int:
    """A set of roles as flags."""
    flags = 0
    for name in names:
        flags |= WhatAmI.parse(name).value
    return flags


def connect_endpoints(settings: Settings) -> tuple[str, ...]:
    """The endpoints to connect to, groups opened up."""
    endpoints: list[str] = []
    for item in settings.connect.endpoints:
        if isinstance(item, EndpointGroup):
            endpoints.extend(str(endpoint) for endpoint in item.locators)
        else:
            endpoints.append(str(item))
    return tuple(endpoints)


def backoff_of(retry: Retry) -> Backoff:
    """Return the pauses between tries that the configuration asks for."""
    return Backoff(
        retry.period_init_ms / 1000, retry.period_max_ms / 1000, retry.period_increase_factor
    )


def node_settings(settings: Settings, zid: bytes, locators: tuple[str, ...]) -> NodeSettings:
    """What a node needs to know; `locators`: where it listens."""
    unicast = settings.transport.unicast
    tx = settings.transport.link.tx
    gossip = settings.scouting.gossip
    resolution = RESOLUTIONS.get(str(tx.sequence_number_resolution))
    if resolution is None:
        raise ConfigError(
            "transport/link/tx/sequence_number_resolution: "
            f"{tx.sequence_number_resolution!r} is not spoken by any node; write '32bit'"
        )
    if unicast.lowlatency and unicast.qos.enabled:
        raise ConfigError(
            "transport/unicast/lowlatency: cannot be with priorities; "
            "set transport/unicast/qos/enabled to false"
        )
    if unicast.compression.enabled and find_spec("lz4") is None:
        raise ConfigError(
            "transport/unicast/compression/enabled: needs the package lz4; "
            "run: pip install 'zenlake[lz4]'"
        )
    strategy = gossip.autoconnect_strategy
    return NodeSettings(
        mode=MODES[settings.mode],
        zid=zid,
        connect=connect_endpoints(settings),
        retry=backoff_of(settings.connect.retry),
        resolution=0b1000 | resolution,
        batch_size=tx.batch_size,
        lease=tx.lease,
        keep_alive=tx.keep_alive,
        qos=unicast.qos.enabled,
        queue_depth=tx.queue.size.data,
        max_sessions=unicast.max_sessions,
        max_links=unicast.max_links,
        connect_all=unicast.max_links > 1
        and any(
            isinstance(item, EndpointGroup) and item.strategy == "allOf"
            for item in settings.connect.endpoints
        ),
        max_message=settings.transport.link.rx.max_message_size,
        open_timeout=unicast.open_timeout / 1000,
        accept_timeout=unicast.accept_timeout / 1000,
        accept_pending=unicast.accept_pending,
        query_timeout=settings.queries_default_timeout / 1000,
        interest_timeout=settings.routing.interests.timeout / 1000,
        limits=limits_of(settings.limits),
        timestamping=settings.timestamping.enabled,
        drop_future_timestamp=settings.timestamping.drop_future_timestamp,
        gossip=gossip.enabled,
        gossip_multihop=gossip.multihop,
        gossip_targets=roles(gossip.target),
        gossip_networks=gossip.networks,
        proven={
            MODES[mode]: frozenset(names)
            for mode, names in (
                ("router", settings.transport.auth.roles.router),
                ("peer", settings.transport.auth.roles.peer),
            )
            if names is not None
        },
        autoconnect=roles(gossip.autoconnect),
        strategy=strategy if isinstance(strategy, str) else "always",
        low_latency=unicast.lowlatency,
        compression=unicast.compression.enabled,
        credentials=credentials(settings),
        locators=locators,
        region_name=settings.region_name or "",
        south=subregions(settings),
        brokering=bool(settings.routing.router.peers_failover_brokering),
        policy=Policy.of(settings),
        link_weights=tuple(
            (bytes(weight.dst_zid), weight.weight)
            for weight in settings.routing.router.linkstate.transport_weights
        ),
        prefix_depth=settings.stats.prefixes.depth,
        prefix_limit=settings.stats.prefixes.limit,
        counted_keys=tuple(str(counted.key) for counted in settings.stats.filters),
    )


def subregions(settings: Settings) -> tuple[Subregion, ...] | None:
    """The parts of the south that the node serves as gateway; None: the modes decide."""
    south = settings.gateway.south
    if isinstance(south, str):
        return None
    return tuple(
        Subregion(None if part.filters is None else tuple(map(region_filter, part.filters)))
        for part in south
    )


def region_filter(chosen: GatewayFilter) -> RegionFilter:
    """What a filter of the configuration stands for."""
    return RegionFilter(
        roles=None if chosen.modes is None else tuple(MODES[mode] for mode in chosen.modes),
        interfaces=chosen.interfaces,
        zids=None if chosen.zids is None else tuple(bytes(zid) for zid in chosen.zids),
        names=chosen.region_names,
        negated=chosen.negated,
    )


def credentials(settings: Settings) -> Credentials:
    """The credentials of the node and of those it accepts; reads the files that hold them."""
    auth = settings.transport.auth.usrpwd
    users: dict[bytes, bytes] | None = None
    if auth.dictionary_file:
        where = "transport/auth/usrpwd/dictionary_file"
        users = _read(where, auth.dictionary_file, read_dictionary, secret=True)
    key = _private_key(settings.transport.auth.pubkey)
    return Credentials(
        user=(auth.user or "").encode(),
        password=(auth.password or "").encode(),
        users=users,
        key=key,
        known=frozenset() if key is None else _known_keys(settings.transport.auth.pubkey),
    )


def _private_key(settings: PublicKeySettings) -> PrivateKey | None:
    """The node's own pair of keys, if it has one; both halves must belong together."""
    where = "transport/auth/pubkey"
    if settings.private_key_pem is not None:
        key = _parsed(f"{where}/private_key_pem", settings.private_key_pem, private_key)
    elif settings.private_key_file is not None:
        file = settings.private_key_file
        key = _read(f"{where}/private_key_file", file, private_key, secret=True)
    else:
        return None
    if settings.public_key_pem is not None:
        public = _parsed(f"{where}/public_key_pem", settings.public_key_pem, public_keys)
    elif settings.public_key_file is not None:
        public = _read(f"{where}/public_key_file", settings.public_key_file, public_keys)
    else:
        return key
    if public != [key.public]:
        raise ConfigError(f"{where}: the public key is not the one of the private key")
    return key


def _known_keys(settings: PublicKeySettings) -> frozenset[RsaKey]:
    """The keys that a node with a key accepts: without a file none, as in Eclipse's nodes."""
    if settings.known_keys_file is None:
        return frozenset()
    where = "transport/auth/pubkey/known_keys_file"
    return frozenset(_read(where, settings.known_keys_file, public_keys))


def _read(where: str, file: str, parse: Callable[[str], T], *, secret: bool = False) -> T:
    try:
        if secret:
            demand_secret(where, file)
        with open(file) as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {file}: {error}") from error
    return _parsed(f"{where}: {file}", text, parse)


def _parsed(where: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def limits_of(settings: LimitSettings) -> ResourceLimits:
    """What neighbours may have, as the node counts it."""
    session, address, node = settings.session, settings.address, settings.node
    return ResourceLimits(
        declarations=session.declarations,
        interests=session.interests,
        memory=session.memory,
        key_length=session.key_length,
        key_chunks=session.key_chunks,
        filters=session.filters,
        queries=session.queries,
        questions=session.questions,
        waiting=session.waiting,
        fragments=session.fragments,
        routers=session.routers,
        messages_a_second=session.messages_per_second,
        bytes_a_second=session.bytes_per_second,
        sessions=address.sessions,
        openings=address.openings,
        links=node.links,
        turn_messages=node.turn_messages,
        turn_seconds=node.turn_microseconds / 1e6,
        all_memory=node.memory,
        all_waiting=node.waiting,
        all_fragments=node.fragments,
    )
