"""How samples find their way, and the regions that a node serves."""

from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, NonEmpty, key, section
from zenlake.config.grammar import RegionName, Zid
from zenlake.config.model_transport import Milliseconds
from zenlake.config.shape import Mode, Whole

__all__ = ["Gateway", "GatewayFilter", "RoutingSettings", "SouthRegion"]


@section
class TransportWeight:
    """The cost of the way to one neighbour."""

    dst_zid: Zid = key(REQUIRED, "The neighbour's id.")
    weight: Annotated[int, Whole("", 1, 65535)] = key(REQUIRED, "The cost; 100 where none is set.")


@section
class Linkstate:
    """The map of a network that its nodes share."""

    transport_weights: tuple[TransportWeight, ...] = key(
        (),
        "Costs of the ways to neighbours; the greater of both sides' counts.",
        honoured_by="zenlake.engine.settings.node_settings",
    )


@section
class PeerLinkstate:
    """Costs of ways between peers, of older versions."""

    transport_weights: tuple[TransportWeight, ...] = key((), "Costs that no longer do anything.")


@section
class RouterRouting:
    """Routing among routers."""

    peers_failover_brokering: bool | None = key(
        None,
        "Whether a router passes on between peers that have no link to each other, instead of "
        "introducing them to each other.",
        hidden=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    linkstate: Linkstate = key(Linkstate, "The map of the network.")


@section
class PeerRouting:
    """Routing among peers, as older versions let one choose it."""

    mode: str | None = key(
        None, "A choice of older versions that no longer does anything.", hidden=True
    )
    linkstate: PeerLinkstate = key(
        PeerLinkstate, "Costs of older versions that no longer do anything.", hidden=True
    )


@section
class InterestRouting:
    """Declarations that others asked for."""

    timeout: Milliseconds = key(
        10_000,
        "How long to wait for declarations asked for.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )


@section
class RoutingSettings:
    """Finding the way from publisher to subscriber."""

    router: RouterRouting = key(RouterRouting, "Routing among routers.")
    peer: PeerRouting = key(
        PeerRouting, "Routing among peers, as older versions let one choose it.", hidden=True
    )
    interests: InterestRouting = key(InterestRouting, "Declarations that others asked for.")


@section
class GatewayFilter:
    """Neighbours that have all the properties listed; a property not listed does not matter."""

    modes: tuple[Mode, ...] | None = key(None, "Their mode.")
    interfaces: Annotated[tuple[str, ...], NonEmpty()] | None = key(
        None, "The network interface they are reached through."
    )
    zids: Annotated[tuple[Zid, ...], NonEmpty()] | None = key(None, "Their id.")
    region_names: Annotated[tuple[RegionName, ...], NonEmpty()] | None = key(
        None, "The name of the region they say they are in."
    )
    negated: bool = key(False, "Whether it is about all other neighbours instead.")


@section
class SouthRegion:
    """A region that this node serves as gateway."""

    filters: tuple[GatewayFilter, ...] | None = key(
        None, "Neighbours that match one of these are in it; null is all of them."
    )


@section
class Gateway:
    """The regions that this node connects."""

    south: Literal["auto"] | tuple[SouthRegion, ...] = key(
        "auto",
        "The regions it serves; auto: those that follow from the modes of both nodes.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
