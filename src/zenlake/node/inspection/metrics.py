"""The metrics of a node: each declared once, read off its counters, written as OpenMetrics.

`METRICS` is the page that explains them; the reference in `docs` is made of it. Names, labels and
the words for reasons are Eclipse's where it counts the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from zenlake.node.inspection.view import DECLARED, sessions, zid_text
from zenlake.node.node import Node
from zenlake.node.sessions.counts import PRIORITIES, SessionCounts, counts_of
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.node.traffic import OTHER, Prefixes, Tally
from zenlake.routing.regions import LOCAL, ROLE_NAMES

Kind = Literal["counter", "gauge", "info"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family: its name without the common beginning, and what it says."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""

    @property
    def family(self) -> str:
        """Its whole name."""
        return f"zenoh_{self.name}"

    @property
    def sample(self) -> str:
        """The name of its series."""
        return self.family + {"counter": "_total", "gauge": "", "info": "_info"}[self.kind]


SESSION = ("remote_zid", "remote_whatami", "src_locator", "dst_locator", "protocol")

BUILD = Metric("build", "info", "Zenoh build version.", ("version",))
UPTIME = Metric("uptime_seconds", "gauge", "Time since the node started.", unit="seconds")
TRANSPORTS = Metric("transports_opened", "gauge", "Sessions that are open.")
TRANSPORTS_PAST = Metric("transports_closed", "counter", "Sessions that were open and are over.")
UNOPENED = Metric("links_unopened", "counter", "Links on which no session came about.")
REJECTED = Metric(
    "rejected",
    "counter",
    "What was not taken from neighbours and strangers, by reason: key (not legal), login, "
    "batch-size (too small), undecodable (not Zenoh), silent (no session in time), handshake "
    "(any other disagreement), protocol (an open session broke it), pending (too many at once), "
    "limit (more than a neighbour may have), slow (too much waits for it).",
    ("reason",),
)
EVENTS = Metric(
    "events",
    "counter",
    "What happened that an operator should know of, by kind: denied, rejected, login, limit, slow.",
    ("kind",),
)
PASSED_OVER = Metric(
    "announcements_passed_over",
    "counter",
    "What neighbours announced of other nodes and was passed over, by kind: entry (of an unknown "
    "node, or beyond what is remembered), locator (not dialled on a neighbour's word alone).",
    ("kind",),
)
LINKS = Metric("links_opened", "gauge", "Links of sessions that are open.", ("protocol",))
RESOURCES = Metric(
    "resources_declared",
    "gauge",
    "Keys with declarations, by what is declared and whether here or elsewhere.",
    ("resource", "locality"),
)
QUERIES = Metric("queries_pending", "gauge", "Queries of neighbours that are not final.")
REFUSED = Metric("admin_refused", "counter", "What the admin space refused.", ("reason",))
RX_BYTES = Metric("rx_bytes", "counter", "Bytes received.", SESSION, "bytes")
TX_BYTES = Metric("tx_bytes", "counter", "Bytes sent.", SESSION, "bytes")
RX_BATCHES = Metric("rx_batches", "counter", "Batches received.", SESSION)
TX_BATCHES = Metric("tx_batches", "counter", "Batches sent.", SESSION)
LANE = ("priority", "reliability")
RX_MESSAGES = Metric(
    "rx_network_message", "counter", "Network messages received.", (*SESSION, *LANE)
)
TX_MESSAGES = Metric("tx_network_message", "counter", "Network messages sent.", (*SESSION, *LANE))
RX_LANE_BYTES = Metric(
    "rx_lane_bytes",
    "counter",
    "Bytes of the frames and fragments received.",
    (*SESSION, "priority"),
    "bytes",
)
TX_LANE_BYTES = Metric(
    "tx_lane_bytes", "counter", "Bytes of the batches sent.", (*SESSION, "priority"), "bytes"
)
RX_DROPPED = Metric(
    "rx_network_message_dropped",
    "counter",
    "What was received and went no further, by reason: access-control, downsampling, low-pass; "
    "duplicate (a frame that came before), incomplete (a fragment is missing), undecodable, "
    "ignored (it made no sense).",
    (*SESSION, "reason", "priority"),
)
TX_DROPPED = Metric(
    "tx_network_message_dropped",
    "counter",
    "What was not sent, by reason: access-control, downsampling, low-pass; congestion (no room), "
    "oversized (too large for a low-latency session).",
    (*SESSION, "reason", "priority"),
)
TX_FILTERED = Metric(
    "tx_filtered_samples",
    "counter",
    "Samples for neighbours whose subscribers have filters: held-back (not sent), unasked (sent "
    "because they were too large, or too many to look at).",
    ("outcome",),
)
RX_KEY = Metric("rx_key_samples", "counter", "Samples received, by prefix of key.", ("prefix",))
RX_KEY_BYTES = Metric(
    "rx_key_payload_bytes", "counter", "Payload received, by prefix of key.", ("prefix",), "bytes"
)
TX_KEY = Metric(
    "tx_key_samples", "counter", "Samples published by this node, by prefix of key.", ("prefix",)
)
TX_KEY_BYTES = Metric(
    "tx_key_payload_bytes",
    "counter",
    "Payload published by this node, by prefix of key.",
    ("prefix",),
    "bytes",
)
KEY_DROPPED = Metric(
    "key_dropped",
    "counter",
    "What was dropped, by prefix of key and reason: access-control, downsampling, low-pass, "
    "congestion, oversized as for sessions; full (a program of this node does not take it), oldest "
    "(a ring of this node made room for a newer one), websocket, events (too slow a client or "
    "reader over HTTP). Where much is dropped, what falls to a "
    "prefix is an estimate.",
    ("reason", "prefix"),
)
RX_FILTER = Metric(
    "rx_key_filter_samples",
    "counter",
    "Samples received on keys that one of stats/filters includes.",
    ("key",),
)
RX_FILTER_BYTES = Metric(
    "rx_key_filter_payload_bytes", "counter", "Payload of those.", ("key",), "bytes"
)

STORAGE = ("storage",)
STORAGE_KEYS = Metric("storage_keys", "gauge", "Keys of a storage that have a value.", STORAGE)
STORAGE_WAITING = Metric(
    "storage_waiting", "gauge", "Changes that the volume of a storage has not written yet.", STORAGE
)
STORAGE_WAITING_BYTES = Metric(
    "storage_waiting_bytes", "gauge", "Bytes of those changes.", STORAGE, "bytes"
)
STORAGE_LAG = Metric(
    "storage_lag_seconds", "gauge", "How long the oldest of those has waited.", STORAGE, "seconds"
)
STORAGE_DROPPED = Metric(
    "storage_dropped", "counter", "Samples not stored because too many waited.", STORAGE
)
STORAGE_FAILURES = Metric(
    "storage_failures", "counter", "Writes that a volume refused; they are tried again.", STORAGE
)
STORAGE_REFUSED = Metric(
    "storage_refused", "counter", "Values that a volume can never keep.", STORAGE
)
REPLICATION_EVENTS = Metric(
    "replication_events", "gauge", "Incidents in the replication log of a storage.", STORAGE
)
REPLICATION_DIFFERENCES = Metric(
    "replication_differences", "counter", "Digests of others that had what it lacked.", STORAGE
)
REPLICATION_PUTS = Metric(
    "replication_puts", "counter", "Values that a storage took from others.", STORAGE
)
REPLICATION_DELETES = Metric(
    "replication_deletes", "counter", "Deletions that a storage took from others.", STORAGE
)
REPLICATION_MALFORMED = Metric(
    "replication_malformed", "counter", "Messages of others that could not be read.", STORAGE
)
REPLICATION_REFUSED = Metric(
    "replication_refused", "counter", "Queries and digests beyond what is handled.", STORAGE
)
REPLICATION_FAILURES = Metric(
    "replication_failures", "counter", "Alignments that ended early.", STORAGE
)
STORAGE_METRICS = (
    STORAGE_KEYS, STORAGE_WAITING, STORAGE_WAITING_BYTES, STORAGE_LAG, STORAGE_DROPPED,
    STORAGE_FAILURES, STORAGE_REFUSED, REPLICATION_EVENTS, REPLICATION_DIFFERENCES,
    REPLICATION_PUTS, REPLICATION_DELETES, REPLICATION_MALFORMED, REPLICATION_REFUSED,
    REPLICATION_FAILURES,
)  # fmt: skip

HTTP_REQUESTS = Metric(
    "http_requests", "counter", "Requests over HTTP that were answered.", ("method", "code")
)
HTTP_REFUSED = Metric(
    "http_refused",
    "counter",
    "Requests over HTTP that were refused, by reason: name (host or origin), unknown (no "
    "credentials), access (a rule), guessing, busy, address (it has too many under way), memory "
    "(of bodies or of answers), gone (who asked).",
    ("reason",),
)
HTTP_CONNECTIONS = Metric(
    "http_connections",
    "gauge",
    "Connections that are open, at the port of HTTP (rest) or of the remote API (remote_api).",
    ("at",),
)
HTTP_BUFFERED = Metric(
    "http_buffered_bytes", "gauge", "Bytes of requests and messages that come in.", ("at",)
)
HTTP_UNSENT = Metric(
    "http_unsent_bytes",
    "gauge",
    "Bytes of answers, events and messages that clients have not taken, those included that are "
    "being made.",
    ("at",),
)
HTTP_CUT = Metric(
    "http_connections_refused",
    "counter",
    "Connections that were refused or ended, by reason: head (too large), malformed, method (none "
    "that is served), slow (a head or the taking of an answer), connections (too many), address "
    "(too many of it), memory, tls, descriptors (the process has none), error (of zenlake's own; "
    "its log has it).",
    ("at", "reason"),
)
HTTP_STREAMS = Metric("http_streams", "gauge", "Streams of events that are open.")
HTTP_SKIPPED = Metric("http_skipped", "counter", "Samples that slow readers of events missed.")
REMOTE_CLIENTS = Metric(
    "remote_clients",
    "gauge",
    "Clients of the remote API, at its own port (remote_api) or at that of HTTP (rest).",
    ("at",),
)
REMOTE_REFUSED = Metric(
    "remote_refused",
    "counter",
    "Clients of the remote API that were refused, by reason: name, origin, user, busy.",
    ("at", "reason"),
)
REMOTE_DROPPED = Metric(
    "remote_dropped",
    "counter",
    "What slow clients of the remote API missed: sample, query, reply, unanswered.",
    ("at", "kind"),
)
JOURNAL_ROWS = Metric("journal_rows", "counter", "Rows that a journal recorded.", ("journal",))
JOURNAL_DROPPED = Metric(
    "journal_dropped", "counter", "Samples that a journal could not keep.", ("journal",)
)
JOURNAL_STUCK = Metric(
    "journal_stuck", "gauge", "1 while nothing can be written to a journal, else 0.", ("journal",)
)
JOURNAL_METRICS = (JOURNAL_ROWS, JOURNAL_DROPPED, JOURNAL_STUCK)
WEB_METRICS = (
    HTTP_REQUESTS, HTTP_REFUSED, HTTP_CONNECTIONS, HTTP_BUFFERED, HTTP_UNSENT, HTTP_CUT,
    HTTP_STREAMS,
    HTTP_SKIPPED, REMOTE_CLIENTS, REMOTE_REFUSED, REMOTE_DROPPED,
)  # fmt: skip

METRICS = (
    BUILD, UPTIME, TRANSPORTS, TRANSPORTS_PAST, UNOPENED, REJECTED, EVENTS, PASSED_OVER,
    LINKS, RESOURCES, QUERIES, REFUSED, RX_BYTES, TX_BYTES, RX_BATCHES, TX_BATCHES, RX_MESSAGES,
    TX_MESSAGES, RX_LANE_BYTES,
    TX_LANE_BYTES, RX_DROPPED, TX_DROPPED, TX_FILTERED, RX_KEY, RX_KEY_BYTES, TX_KEY, TX_KEY_BYTES,
    KEY_DROPPED, RX_FILTER, RX_FILTER_BYTES, *STORAGE_METRICS, *WEB_METRICS, *JOURNAL_METRICS,
)  # fmt: skip
"""All metrics, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class MetricSelection:
    """Which series are told."""

    #: A series for each session, or one for all of them together.
    per_transport: bool = True
    #: With the locators of the link.
    per_link: bool = True
    #: By prefix of key.
    per_key: bool = True
    #: The last of the sessions that are over, one by one.
    disconnected: bool = False
    #: Lines that explain.
    descriptors: bool = True


Row = tuple[Metric, dict[str, str], float]


def openmetrics(
    node: Node,
    wanted: MetricSelection,
    version: str,
    uptime: float,
    refused: dict[str, int] | None = None,
    services: Iterable[Row] = (),
) -> str:
    """All metrics of a node, as OpenMetrics text.

    Args:
        node: nothing changes it meanwhile.
        wanted: which series.
        version: of the program.
        uptime: in seconds.
        refused: what the admin space refused, by reason.
        services: what services of the node count.
    """
    own = {"local_id": zid_text(node.zid), "local_whatami": ROLE_NAMES[node.mode]}
    lines_of: dict[Metric, list[str]] = {metric: [] for metric in METRICS}
    rows: list[Row] = [(BUILD, {"version": version}, 1), (UPTIME, {}, uptime)]
    rows += _node(node)
    rows += [(REFUSED, {"reason": why}, many) for why, many in (refused or {}).items()]
    for labels, counts in _sessions(node, wanted):
        rows += _session(labels, counts)
    if wanted.per_key:
        rows += _keys(node)
    rows += services
    for metric, labels, value in rows:
        written = ",".join(
            [f'{name}="{_escaped(text)}"' for name, text in (own | labels).items() if text]
        )
        lines_of[metric].append(f"{metric.sample}{{{written}}} {_number(value)}\n")
    parts: list[str] = []
    for metric, lines in lines_of.items():
        if lines and wanted.descriptors:
            parts.append(_described(metric))
        parts += lines
    return "".join(parts) + "# EOF\n"


def _described(metric: Metric) -> str:
    text = f"# HELP {metric.family} {_escaped(metric.help)}\n"
    text += f"# TYPE {metric.family} {metric.kind}\n"
    if metric.unit:
        text += f"# UNIT {metric.family} {metric.unit}\n"
    return text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _node(node: Node) -> Iterator[Row]:
    neighbours = [neighbour for neighbour in node.neighbours if neighbour.face is not None]
    yield TRANSPORTS, {}, len(sessions(node))
    yield TRANSPORTS_PAST, {}, node.sessions.past.many
    yield UNOPENED, {}, node.sessions.past.unopened
    for event, happened in node.incidents.counts.items():
        yield EVENTS, {"kind": event}, happened
    for reason, rejected in node.rejections.counts.items():
        yield REJECTED, {"reason": reason}, rejected
    yield PASSED_OVER, {"kind": "entry"}, node.topology.passed_over()
    yield PASSED_OVER, {"kind": "locator"}, node.sessions.discovered.passed_over
    links: dict[str, int] = {}
    for neighbour in neighbours:
        protocol = neighbour.dst.partition("/")[0]
        links[protocol] = links.get(protocol, 0) + 1
    for protocol, many in sorted(links.items()):
        yield LINKS, {"protocol": protocol}, many
    held = {(name, where): 0 for name in DECLARED for where in ("local", "remote")}
    for entry in node.tables.tree.entries():
        for name, kind in DECLARED.items():
            for face in entry.value.holders[kind]:
                held[name, "local" if face.role == LOCAL else "remote"] += 1
    for (name, where), many in held.items():
        yield RESOURCES, {"resource": name, "locality": where}, many
    yield QUERIES, {}, len(node.queries.open)
    yield TX_FILTERED, {"outcome": "held-back"}, node.filters.held_back
    yield TX_FILTERED, {"outcome": "unasked"}, node.filters.unasked


def _sessions(
    node: Node, wanted: MetricSelection
) -> Iterator[tuple[dict[str, str], SessionCounts]]:
    """What was counted, for each set of labels."""
    live = [counts_of(n) for n in node.neighbours if n.face is not None]
    if not wanted.per_transport:
        total = SessionCounts()
        total.add(node.sessions.past.total)
        for counts in live:
            total.add(counts)
        yield {}, total
        return
    if wanted.disconnected:
        live += node.sessions.past.sessions
    merged: dict[tuple[tuple[str, str], ...], SessionCounts] = {}
    for counts in live:
        labels = {
            "remote_zid": zid_text(counts.zid),
            "remote_whatami": counts.whatami,
            "protocol": counts.protocol,
        }
        if wanted.per_link:
            labels |= {"src_locator": counts.src, "dst_locator": counts.dst}
        # The same node may have come several times.
        merged.setdefault(tuple(labels.items()), SessionCounts()).add(counts)
    for names, counts in merged.items():
        yield dict(names), counts


def _session(labels: dict[str, str], counts: SessionCounts) -> Iterator[Row]:
    yield RX_BYTES, labels, counts.rx_bytes
    yield TX_BYTES, labels, counts.tx_bytes
    yield RX_BATCHES, labels, counts.rx_batches
    yield TX_BATCHES, labels, counts.tx_batches
    for metric, messages in ((RX_MESSAGES, counts.rx_messages), (TX_MESSAGES, counts.tx_messages)):
        for index, many in enumerate(messages):
            if many:
                lane = {
                    "priority": PRIORITIES[index >> 1],
                    "reliability": "reliable" if index & 1 else "best_effort",
                }
                yield metric, labels | lane, many
    for metric, sizes in (
        (RX_LANE_BYTES, counts.rx_lane_bytes),
        (TX_LANE_BYTES, counts.tx_lane_bytes),
    ):
        for index, size in enumerate(sizes):
            if size:
                yield metric, labels | {"priority": PRIORITIES[index]}, size
    for metric, dropped in ((RX_DROPPED, counts.rx_dropped), (TX_DROPPED, counts.tx_dropped)):
        for (reason, priority), many in dropped.items():
            yield metric, labels | {"reason": reason, "priority": priority}, many


def _keys(node: Node) -> Iterator[Row]:
    heard = node.traffic.heard.copy()
    speakers: list[Neighbour] = list(node.neighbours)
    for multicast in node.sessions.multicasts:
        speakers.extend(multicast.members)
    for neighbour in speakers:
        for inbound in neighbour.pushes.inbounds.all():
            heard.add(inbound.key, inbound.samples, inbound.size)
    said = node.traffic.said.copy()
    for key, tally in node.traffic.own.items():
        said.add(key, tally.samples, tally.size)
    yield from _prefixes(heard, RX_KEY, RX_KEY_BYTES)
    yield from _prefixes(said, TX_KEY, TX_KEY_BYTES)
    for reason, dropped in sorted(node.drops.prefixes.items()):
        for name, tally in _named(dropped):
            yield KEY_DROPPED, {"reason": reason, **name}, tally.samples
    for text, tally in heard.filters.items():
        yield RX_FILTER, {"key": text}, tally.samples
        yield RX_FILTER_BYTES, {"key": text}, tally.size


def _prefixes(prefixes: Prefixes, samples: Metric, size: Metric) -> Iterator[Row]:
    for name, tally in _named(prefixes):
        yield samples, name, tally.samples
        yield size, name, tally.size


def _named(prefixes: Prefixes) -> Iterator[tuple[dict[str, str], Tally]]:
    for prefix, tally in sorted(prefixes.totals.items()):
        yield {"prefix": prefix if prefix != OTHER else "other prefixes"}, tally
