"""HOW a node should behave: every key of its configuration, declared once.

The classes are what the node works with (`settings.scouting.multicast.enabled`), and the page
that explains the configuration: types, defaults, ranges and sentences are read off them. The
names are those of Eclipse Zenoh's configuration, so its files load unchanged.

`honoured_by` names the code that obeys a key. Where it is absent the key is accepted, so that
files move over without edits, but nothing obeys it yet, and setting it says so.
"""

from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, ByMode, Section, key, section, section_of
from zenlake.config.grammar import KeyText, Namespace, RegionName, Zid
from zenlake.config.json5 import Plain
from zenlake.config.model_connect import Connect, Listen, OpenSettings
from zenlake.config.model_interceptors import AccessControl, Downsampling, LowPassFilter, Qos
from zenlake.config.model_limits import LimitSettings
from zenlake.config.model_routing import Gateway, RoutingSettings
from zenlake.config.model_scouting import ScoutingSettings
from zenlake.config.model_services import JournalService, XrceService
from zenlake.config.model_transport import Milliseconds, TransportSettings
from zenlake.config.shape import FreeForm, Mode, Whole

__all__ = ["SearchDir", "Settings"]


@section
class Timestamping:
    """Timestamps of data."""

    enabled: bool = key(
        ByMode(True, False, False),
        "Whether data without a timestamp gets one.",
        null=True,
        honoured_by="zenlake.api.push.PushBuilder",
    )
    drop_future_timestamp: bool = key(
        False,
        "Whether data stamped too far in the future is dropped; if not, it is stamped anew.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime",
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
        "The links over which it answers queries and takes changes: those within this machine, "
        "or any.",
        hidden=True,
        honoured_by="zenlake.admin.space.AdminSpace",
    )


@section
class AdminSpaceSettings:
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
class StatsSettings:
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


def _declared_plugins() -> dict[str, Section]:
    """The plugins whose settings are declared; imported for a configuration that has plugins."""
    from zenlake.config.model_remote import RemoteApi
    from zenlake.config.model_storages import StorageManager
    from zenlake.config.model_web import Rest

    return {
        "storage_manager": section_of(StorageManager),
        "rest": section_of(Rest),
        "remote_api": section_of(RemoteApi),
    }


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
    open: OpenSettings = key(OpenSettings, "Opening a session.")
    scouting: ScoutingSettings = key(ScoutingSettings, "Finding other nodes.")
    timestamping: Timestamping = key(Timestamping, "Timestamps of data.")
    queries_default_timeout: Milliseconds = key(
        10_000,
        "How long a query waits for replies when it does not say.",
        null=True,
        honoured_by="zenlake.engine.settings.node_settings",
    )
    routing: RoutingSettings = key(RoutingSettings, "Finding the way from publisher to subscriber.")
    aggregation: Aggregation = key(Aggregation, "One wide declaration instead of many narrow ones.")
    qos: Qos = key(Qos, "Quality of service decided by key instead of by program.")
    transport: TransportSettings = key(
        TransportSettings, "Sessions with neighbours and the links below them."
    )
    adminspace: AdminSpaceSettings = key(
        AdminSpaceSettings, "The keys under `@/` that show the node itself."
    )
    namespace: Namespace | None = key(
        None,
        "A prefix put before every key that leaves and taken off every key that arrives.",
        honoured_by="zenlake.node.programs.local.Local",
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
    limits: LimitSettings = key(
        LimitSettings, "What neighbours may have of this node.", hidden=True
    )
    stats: StatsSettings = key(StatsSettings, "Counters.")
    journals: tuple[JournalService, ...] = key(
        (),
        "Journals that `zenlake router` records.",
        hidden=True,
        honoured_by="zenlake.journal.service.recording",
    )
    xrce: XrceService = key(
        XrceService,
        "The broker for constrained devices that `zenlake router` runs.",
        hidden=True,
    )
    plugins_loading: PluginsLoading = key(PluginsLoading, "Where plugins are found.")
    plugins: Annotated[
        Plain,
        FreeForm(members=True, known=_declared_plugins),
    ] = key({}, "A member for each plugin or service of the node, with its own settings.")
