"""From a configuration to what a node needs to know."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from zenlake.config.model import EndpointGroup, Settings
from zenlake.errors import ConfigError
from zenlake.node.settings import MODES, NodeSettings
from zenlake.transport.auth import Credentials, read_dictionary
from zenlake.values.whatami import WhatAmI

#: Bits of the resolution byte by the configuration's word.
RESOLUTIONS = {"8bit": 0b00, "16bit": 0b01, "32bit": 0b10}


def roles(names: tuple[str, ...]) -> int:
    """A set of roles as flags."""
    found = 0
    for name in names:
        found |= WhatAmI.parse(name).value
    return found


def connect_endpoints(settings: Settings) -> tuple[str, ...]:
    """The endpoints to connect to, groups opened up."""
    found: list[str] = []
    for item in settings.connect.endpoints:
        if isinstance(item, EndpointGroup):
            found.extend(str(endpoint) for endpoint in item.locators)
        else:
            found.append(str(item))
    return tuple(found)


def node_settings(settings: Settings, zid: bytes, locators: tuple[str, ...]) -> NodeSettings:
    """What a node needs to know; `locators`: where it listens."""
    unicast = settings.transport.unicast
    tx = settings.transport.link.tx
    retry = settings.connect.retry
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
        retry_init=retry.period_init_ms / 1000,
        retry_max=retry.period_max_ms / 1000,
        retry_factor=retry.period_increase_factor,
        resolution=0b1000 | resolution,
        batch_size=tx.batch_size,
        lease=tx.lease,
        keep_alive=tx.keep_alive,
        qos=unicast.qos.enabled,
        queue_depth=tx.queue.size.data,
        max_sessions=unicast.max_sessions,
        max_message=settings.transport.link.rx.max_message_size,
        open_timeout=unicast.open_timeout / 1000,
        accept_timeout=unicast.accept_timeout / 1000,
        query_timeout=settings.queries_default_timeout / 1000,
        interest_timeout=settings.routing.interests.timeout / 1000,
        timestamping=settings.timestamping.enabled,
        drop_future_timestamp=settings.timestamping.drop_future_timestamp,
        gossip=gossip.enabled,
        gossip_multihop=gossip.multihop,
        gossip_targets=roles(gossip.target),
        autoconnect=roles(gossip.autoconnect),
        strategy=strategy if isinstance(strategy, str) else "always",
        low_latency=unicast.lowlatency,
        compression=unicast.compression.enabled,
        credentials=credentials(settings),
        locators=locators,
        link_weights=tuple(
            (bytes(weight.dst_zid), weight.weight)
            for weight in settings.routing.router.linkstate.transport_weights
        ),
    )


def credentials(settings: Settings) -> Credentials:
    """Who the node is and whom it lets in; reads the dictionary file."""
    auth = settings.transport.auth.usrpwd
    users: dict[bytes, bytes] | None = None
    if auth.dictionary_file:
        path = Path(auth.dictionary_file)
        try:
            users = read_dictionary(path.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"transport/auth/usrpwd/dictionary_file: {path}: {error}") from error
    return Credentials(
        user=(auth.user or "").encode(), password=(auth.password or "").encode(), users=users
    )
