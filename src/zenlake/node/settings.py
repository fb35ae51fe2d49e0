"""What a node needs to know of its configuration, as plain numbers."""

from __future__ import annotations

from dataclasses import field

from zenlake.clock.backoff import Backoff
from zenlake.records import record
from zenlake.routing.limits import DEFAULTS, ResourceLimits
from zenlake.routing.policy.policy import Policy
from zenlake.routing.regions import CLIENT, PEER, ROUTER, Subregion
from zenlake.transport.auth import Credentials

MODES = {"router": ROUTER, "peer": PEER, "client": CLIENT}


@record(frozen=True, slots=True)
class NodeSettings:
    """How a node behaves."""

    mode: int = PEER
    zid: bytes = b""
    connect: tuple[str, ...] = ()
    retry: Backoff = Backoff(1.0, 4.0)
    resolution: int = 0x0A
    batch_size: int = 65535
    lease: int = 10_000  # milliseconds
    keep_alive: int = 4
    qos: bool = True
    queue_depth: int = 2
    max_sessions: int = 1000
    max_links: int = 1
    #: Whether a client keeps a link to each of its endpoints.
    connect_all: bool = False
    max_message: int = 1 << 30
    open_timeout: float = 10.0
    accept_timeout: float = 10.0
    accept_pending: int = 100
    query_timeout: float = 10.0
    interest_timeout: float = 10.0
    timestamping: bool = False
    drop_future_timestamp: bool = False
    gossip: bool = True
    gossip_multihop: bool = False
    gossip_targets: int = 0b011
    #: Where nodes may be that gossip tells of; None: anywhere.
    gossip_networks: tuple[str, ...] | None = None
    #: By role: the users and certificate names that may have it; roles that are not here are free.
    proven: dict[int, frozenset[str]] = field(default_factory=dict)
    autoconnect: int = 0b111
    strategy: str = "always"
    low_latency: bool = False
    compression: bool = False
    credentials: Credentials = field(default=Credentials(), repr=False)
    locators: tuple[str, ...] = field(default=())
    #: The region that the node says it is in.
    region_name: str = ""
    #: The parts of its south, if it is a gateway by a list; None: the modes decide.
    south: tuple[Subregion, ...] | None = None
    #: Whether a router passes on between its peers that have no link to each other, instead of
    #: introducing them.
    brokering: bool = False
    #: What neighbours may have of this node.
    limits: ResourceLimits = DEFAULTS
    #: What may pass, and how.
    policy: Policy = field(default=Policy(), repr=False)
    #: What a router would have its links to others weigh.
    link_weights: tuple[tuple[bytes, int], ...] = ()
    #: Traffic is counted by the first chunks of keys, and by so many prefixes at most.
    prefix_depth: int = 2
    prefix_limit: int = 256
    #: Expressions whose keys are counted besides.
    counted_keys: tuple[str, ...] = ()
