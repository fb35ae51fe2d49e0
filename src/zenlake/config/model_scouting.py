"""How nodes find each other, and whom they connect to of those they find."""

import ipaddress
from typing import Annotated, Literal

from zenlake.config.declare import ByMode, key, section
from zenlake.config.grammar import SocketAddress
from zenlake.config.model_transport import Milliseconds
from zenlake.config.shape import Mode, TextShape, Whole

__all__ = ["GossipScouting", "MulticastScouting", "ScoutingSettings", "StrategyByTarget"]

Strategy = Literal["always", "greater-zid"]


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


@section
class StrategyByTarget:
    """Who begins a session, by the mode of the other node."""

    to_router: Strategy | None = key(None, "When the other is a router.", hidden=True)
    to_peer: Strategy | None = key(None, "When the other is a peer.", hidden=True)
    to_client: Strategy | None = key(None, "When the other is a client.", hidden=True)


_AUTOCONNECT: ByMode[tuple[Mode, ...]] = ByMode(
    (), ("router", "peer", "client"), ("router", "peer", "client")
)
_STRATEGY: ByMode[Strategy | StrategyByTarget] = ByMode("always", "always", "always")
_STRATEGY_DOC = (
    "Whether to connect always, or only to nodes with a smaller id, so that one of two begins."
)


@section
class MulticastScouting:
    """Finding nodes by UDP multicast."""

    enabled: bool = key(
        True, "Whether it is done.", null=True, honoured_by="zenlake.engine.scouts.NodeScouting"
    )
    address: SocketAddress = key(
        "224.0.0.224:7446",
        "The multicast group and port.",
        null=True,
        honoured_by="zenlake.engine.scouts.NodeScouting",
    )
    interface: str = key(
        "auto",
        "The network interface; auto takes all that can.",
        null=True,
        honoured_by="zenlake.engine.scouts.NodeScouting",
    )
    ttl: Annotated[int, Whole("hops", 0, 2**32 - 1)] = key(
        1,
        "How many routers of the IP network a scout message may cross.",
        null=True,
        honoured_by="zenlake.engine.scouts.NodeScouting",
    )
    autoconnect: tuple[Mode, ...] = key(
        _AUTOCONNECT,
        "The modes of found nodes that this node connects to.",
        null=True,
        honoured_by="zenlake.engine.scouts.NodeScouting",
    )
    autoconnect_strategy: Strategy | StrategyByTarget = key(
        _STRATEGY, _STRATEGY_DOC, null=True, honoured_by="zenlake.engine.scouts.NodeScouting"
    )
    listen: bool = key(
        ByMode(True, True, True),
        "Whether the scout messages of others are answered.",
        null=True,
        honoured_by="zenlake.engine.scouts.NodeScouting",
    )


@section
class GossipScouting:
    """Finding nodes through those already connected."""

    enabled: bool = key(
        True, "Whether it is done.", null=True, honoured_by="zenlake.engine.settings.node_settings"
    )
    multihop: bool = key(
        False,
        "Whether what is learnt is passed on beyond direct neighbours.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    target: tuple[Mode, ...] = key(
        ByMode(("router", "peer"), ("router", "peer"), ("router", "peer")),
        "The modes of the neighbours that are told.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    networks: (
        tuple[Annotated[str, TextShape("a network like 10.0.0.0/8", _network)], ...] | None
    ) = key(
        None,
        "The networks in which nodes are connected to that others tell of; null: any.",
        hidden=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    autoconnect: tuple[Mode, ...] = key(
        _AUTOCONNECT,
        "The modes of found nodes that this node connects to.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    autoconnect_strategy: Strategy | StrategyByTarget = key(
        _STRATEGY, _STRATEGY_DOC, null=True, honoured_by="zenlake.engine.settings.node_settings"
    )


@section
class ScoutingSettings:
    """Finding other nodes."""

    timeout: Milliseconds = key(
        3000,
        "How long a client looks for a router or peer.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    delay: Milliseconds = key(
        500,
        "How long a peer waits at start for what it finds.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    multicast: MulticastScouting = key(MulticastScouting, "Finding nodes by UDP multicast.")
    gossip: GossipScouting = key(GossipScouting, "Finding nodes through those connected.")
