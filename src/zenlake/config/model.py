"""HOW a node should behave: every key of its configuration, declared once.

The classes are what the node works with (`settings.scouting.multicast.enabled`), and the page
that explains the configuration: types, defaults, ranges and sentences are read off them. The
names are those of Eclipse Zenoh's configuration, so its files load unchanged.

`honoured_by` names the code that obeys a key. Where it is absent the key is accepted, so that
files move over without edits, but nothing obeys it yet, and setting it says so.
"""

from __future__ import annotations

from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, ByMode, NonEmpty, key, section
from zenlake.config.grammar import Endpoint, KeyText, Namespace, RegionName, SocketAddress, Zid
from zenlake.config.json5 import Plain
from zenlake.config.model_interceptors import AccessControl, Downsampling, LowPassFilter, Qos
from zenlake.config.model_services import JournalService
from zenlake.config.model_transport import Milliseconds, Transport
from zenlake.config.shape import FreeForm, Mode, Real, Whole
from zenlake.values.locator import EndPoint

__all__ = ["EndpointGroup", "Retry", "SearchDir", "Settings", "StrategyByTarget"]

Patience = Annotated[int, Whole("milliseconds", -(2**63), 2**63 - 1)]
Strategy = Literal["always", "greater-zid"]


@section
class Retry:
    """How long to pause between attempts."""

    period_init_ms: Milliseconds = key(
        ByMode(1000, 1000, 1000),
        "The first pause.",
        null=True,
        honoured_by="zenlake.node.connect.ConnectPlan",
    )
    period_max_ms: Milliseconds = key(
        ByMode(4000, 4000, 4000),
        "The longest pause.",
        null=True,
        honoured_by="zenlake.node.connect.ConnectPlan",
    )
    period_increase_factor: Annotated[float, Real("", 0)] = key(
        ByMode(2.0, 2.0, 2.0),
        "Each pause is this many times the one before.",
        null=True,
        honoured_by="zenlake.node.connect.ConnectPlan",
    )


@section
class EndpointGroup:
    """Several endpoints of one neighbour."""

    strategy: Literal["allOf", "oneOf"] = key(
        REQUIRED, "Whether all of them become links of one session, or the first that answers."
    )
    locators: tuple[Endpoint, ...] = key(REQUIRED, "The endpoints.")


@section
class Connect:
    """Neighbours to open sessions with."""

    timeout_ms: Patience = key(
        ByMode(-1, -1, 0),
        "How long to try at start, all endpoints together; 0 tries once, -1 never gives up.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    endpoints: tuple[Endpoint | EndpointGroup, ...] = key(
        ByMode((), (), ()),
        "Where to connect.",
        honoured_by="zenlake.engine.settings.connect_endpoints",
    )
    exit_on_failure: bool = key(
        ByMode(False, False, True),
        "Whether opening fails when the time is over.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    retry: Retry = key(Retry, "How long to pause between attempts.", null=True)


@section
class Listen:
    """Where others may open sessions with this node."""

    timeout_ms: Patience = key(
        ByMode(0, 0, 0),
        "How long to try at start, all endpoints together; 0 tries once, -1 never gives up.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    endpoints: tuple[Endpoint, ...] = key(
        ByMode((EndPoint.parse("tcp/[::]:7447"),), (EndPoint.parse("tcp/[::]:0"),), ()),
        "Where to listen.",
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    exit_on_failure: bool = key(
        ByMode(True, True, True),
        "Whether opening fails when the time is over.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    retry: Retry = key(Retry, "How long to pause between attempts.", null=True)


@section
class ReturnConditions:
    """What opening a session waits for, at most for `scouting/delay`."""

    connect_scouted: bool = key(
        True,
        "Sessions with the nodes found by scouting.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    declares: bool = key(
        True,
        "What connected peers declare first.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )


@section
class Open:
    """Opening a session."""

    return_conditions: ReturnConditions = key(ReturnConditions, "What opening waits for.")


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
        True, "Whether it is done.", null=True, honoured_by="zenlake.engine.scouts.Scouts"
    )
    address: SocketAddress = key(
        "224.0.0.224:7446",
        "The multicast group and port.",
        null=True,
        honoured_by="zenlake.engine.scouts.Scouts",
    )
    interface: str = key(
        "auto",
        "The network interface; auto takes all that can.",
        null=True,
        honoured_by="zenlake.engine.scouts.Scouts",
    )
    ttl: Annotated[int, Whole("hops", 0, 2**32 - 1)] = key(
        1,
        "How many routers of the IP network a scout message may cross.",
        null=True,
        honoured_by="zenlake.engine.scouts.Scouts",
    )
    autoconnect: tuple[Mode, ...] = key(
        _AUTOCONNECT,
        "The modes of found nodes that this node connects to.",
        null=True,
        honoured_by="zenlake.engine.scouts.Scouts",
    )
    autoconnect_strategy: Strategy | StrategyByTarget = key(
        _STRATEGY, _STRATEGY_DOC, null=True, honoured_by="zenlake.engine.scouts.Scouts"
    )
    listen: bool = key(
        ByMode(True, True, True),
        "Whether the scout messages of others are answered.",
        null=True,
        honoured_by="zenlake.engine.scouts.Scouts",
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
class Scouting:
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


@section
class Timestamping:
    """Timestamps of data."""

    enabled: bool = key(
        ByMode(True, False, False),
        "Whether data without a timestamp gets one.",
        null=True,
        honoured_by="zenlake.api.put.Putting",
    )
    drop_future_timestamp: bool = key(
        False,
        "Whether data stamped too far in the future is dropped; if not, it is stamped anew.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime",
    )


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
class Routing:
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


@section
class Aggregation:
    """One wide declaration instead of many narrow ones."""

    subscribers: tuple[KeyText, ...] = key((), "Subscribers included in one of these share it.")
    publishers: tuple[KeyText, ...] = key((), "Publishers included in one of these share it.")


@section
class AdminPermissions:
    """What others may do in the admin space."""

    read: bool = key(
        True, "Whether it answers queries.", honoured_by="zenlake.admin.space.AdminSpace"
    )
    write: bool = key(
        False,
        "Whether it takes changes of the configuration.",
        honoured_by="zenlake.admin.space.AdminSpace",
    )
    links: Literal["loopback", "any"] = key(
        "loopback",
        "The links over which it answers queries: those within this machine, or any.",
        hidden=True,
        honoured_by="zenlake.admin.space.AdminSpace",
    )


@section
class AdminSpace:
    """The keys under `@/` that show the node itself."""

    enabled: bool = key(False, "Whether they exist.", honoured_by="zenlake.admin.space.AdminSpace")
    permissions: AdminPermissions = key(AdminPermissions, "What others may do there.")


@section
class StatsFilter:
    """Keys counted on their own."""

    key: KeyText = key(
        REQUIRED,
        "Messages on keys included in this are counted separately.",
        honoured_by="zenlake.node.traffic.Prefixes",
    )


@section
class StatsPrefixes:
    """How keys are counted together."""

    depth: Annotated[int, Whole("chunks", 1, 16)] = key(
        2,
        "Keys are counted together that begin with the same so many chunks.",
        honoured_by="zenlake.node.traffic.Prefixes",
    )
    limit: Annotated[int, Whole("prefixes", 1, 65536)] = key(
        256,
        "How many such beginnings are counted; all others are counted together.",
        honoured_by="zenlake.node.traffic.Prefixes",
    )


@section
class Stats:
    """Counters."""

    filters: tuple[StatsFilter, ...] = key(
        (), "Keys counted on their own.", honoured_by="zenlake.node.traffic.Prefixes"
    )
    prefixes: StatsPrefixes = key(StatsPrefixes, "How all others are counted.", hidden=True)


@section
class SearchDir:
    """A directory with plugins."""

    kind: Literal["path", "current_exe_parent"] = key(
        REQUIRED, "Whether it is named, or is the one where the program lies."
    )
    value: str | None = key(None, "Its name.")


@section
class PluginsLoading:
    """Where plugins are found."""

    enabled: bool = key(False, "Whether plugins are loaded.")
    search_dirs: tuple[str | SearchDir, ...] = key(
        (
            SearchDir(kind="current_exe_parent"),
            ".",
            "~/.zenoh/lib",
            "/opt/homebrew/lib",
            "/usr/local/lib",
            "/usr/lib",
        ),
        "Directories searched for a plugin that does not say its `__path__`.",
    )


@section
class Settings:
    """The configuration of a node."""

    id: Zid | None = key(
        None,
        "The node's id; null makes one up at each start.",
        honoured_by="zenlake.engine.runtime.Runtime",
    )
    metadata: Annotated[Plain, FreeForm()] = key(
        None,
        "Anything worth telling about the node; shown in its admin space.",
        honoured_by="zenlake.admin.documents.documents",
    )
    mode: Mode = key(
        "peer",
        "What the node is to others.",
        null=True,
        honoured_by="zenlake.config.config.Config.for_mode",
    )
    region_name: RegionName | None = key(
        None,
        "The region it says it is in, to gateways that sort their neighbours.",
        honoured_by="zenlake.transport.handshake.Offer",
    )
    gateway: Gateway = key(Gateway, "The regions that this node connects.")
    connect: Connect = key(Connect, "Neighbours to open sessions with.")
    listen: Listen = key(Listen, "Where others may open sessions with this node.")
    open: Open = key(Open, "Opening a session.")
    scouting: Scouting = key(Scouting, "Finding other nodes.")
    timestamping: Timestamping = key(Timestamping, "Timestamps of data.")
    queries_default_timeout: Milliseconds = key(
        10_000,
        "How long a query waits for replies when it does not say.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    routing: Routing = key(Routing, "Finding the way from publisher to subscriber.")
    aggregation: Aggregation = key(Aggregation, "One wide declaration instead of many narrow ones.")
    qos: Qos = key(Qos, "Quality of service decided by key instead of by program.")
    transport: Transport = key(Transport, "Sessions with neighbours and the links below them.")
    adminspace: AdminSpace = key(AdminSpace, "The keys under `@/` that show the node itself.")
    namespace: Namespace | None = key(
        None,
        "A prefix put before every key that leaves and taken off every key that arrives.",
        honoured_by="zenlake.node.local.Local",
    )
    downsampling: tuple[Downsampling, ...] = key(
        (),
        "Messages thinned out to a frequency.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )
    access_control: AccessControl = key(AccessControl, "Who may do what on which keys.")
    low_pass_filter: tuple[LowPassFilter, ...] = key(
        (), "Messages above a size dropped.", honoured_by="zenlake.routing.policy.policy.Policy"
    )
    stats: Stats = key(Stats, "Counters.")
    journals: tuple[JournalService, ...] = key(
        (),
        "Journals that `zenlake router` records.",
        hidden=True,
        honoured_by="zenlake.journal.service.recording",
    )
    plugins_loading: PluginsLoading = key(PluginsLoading, "Where plugins are found.")
    plugins: Annotated[Plain, FreeForm(members=True)] = key(
        {}, "A member for each plugin or service of the node, with its own settings."
    )
