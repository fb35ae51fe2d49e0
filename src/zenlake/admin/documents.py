"""Which records of a node match a query about its admin space, and what is in them.

Records that Eclipse's nodes have too match any expression that intersects their keys. Those of our
own (`config`, `traffic`, `drops`, `events`, `limits`, `why`) are given only to a query that names
them, so that `@/**` gives what it gives everywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from zenlake.config import Config
from zenlake.config.declare import Section
from zenlake.config.load import all_keys
from zenlake.config.problem import InvalidConfig
from zenlake.keys import Parameters
from zenlake.keys.matching import intersects
from zenlake.node.incidents import KINDS
from zenlake.node.inspection import view
from zenlake.node.inspection.drops import drops
from zenlake.node.inspection.metrics import MetricSelection, Row, openmetrics
from zenlake.node.inspection.shares import shares
from zenlake.node.inspection.why import why
from zenlake.node.node import Node

JSON = "application/json"
TEXT = "text/plain"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

#: How many rows of traffic are told unless the query says otherwise, and at most.
ROWS = 1000
MOST_ROWS = 100_000


class Document(NamedTuple):
    """A record: its key, what it is, and its bytes."""

    key: str
    encoding: str
    payload: bytes


@dataclass(slots=True)
class Facts:
    """What is known of a node besides the node itself."""

    version: str
    config: Config
    uptime: float = 0.0
    #: What the admin space refused, by reason.
    refused: dict[str, int] = field(default_factory=dict)
    #: What services of the node count.
    services: list[Row] = field(default_factory=list)
    #: The services that serve, by the names of Eclipse's plugins.
    plugins: dict[str, object] | None = None


def documents(node: Node, asked: str, parameters: str, facts: Facts) -> Iterator[Document]:
    """The records that match a query; the node's lock is held."""
    above = view.root(node)
    wanted = Parameters(parameters)
    if intersects(asked, above):
        metadata = json.loads(facts.config.shown_json("metadata"))
        stats = _flag(wanted, "_stats", False)
        summary = view.summary(node, facts.version, metadata, stats, facts.plugins)
        yield json_document(above, summary)
    if intersects(asked, f"{above}/metrics"):
        yield _metrics(node, f"{above}/metrics", wanted, facts)
    for kind in view.ENTITIES:
        below = f"{above}/{kind}"
        if intersects(asked, f"{below}/**"):
            for entity in view.entities(node, kind, view.meets(asked, below)):
                yield json_document(f"{below}/{entity.key}", entity.sources())
    if intersects(asked, f"{above}/linkstate/*"):
        for region, graph in view.graphs(node).items():
            if intersects(asked, f"{above}/linkstate/{region}"):
                yield Document(f"{above}/linkstate/{region}", TEXT, graph.encode())
    if intersects(asked, f"{above}/route/successor/src/*/dst/*"):
        for source, destination, hop in view.successors(node):
            key = f"{above}/route/successor/src/{source}/dst/{destination}"
            if intersects(asked, key):
                yield json_document(key, hop)
    names = asked.split("/")
    if "config" in names:
        yield from _config(above, asked, facts.config)
    if "traffic" in names and intersects(asked, f"{above}/traffic"):
        yield _traffic(node, f"{above}/traffic", wanted)
    if "events" in names:
        yield from _events(node, above, asked)
    if "drops" in names and intersects(asked, f"{above}/drops"):
        yield json_document(f"{above}/drops", drops(node))
    if "limits" in names and intersects(asked, f"{above}/limits"):
        yield json_document(f"{above}/limits", shares(node))
    if "why" in names:
        yield from _why(node, above, asked)


def _flag(parameters: Parameters, name: str, default: bool) -> bool:
    value = parameters.get(name)
    return default if value is None else value.lower() != "false"


def json_document(key: str, content: object) -> Document:
    """A record that is JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Document(key, JSON, text.encode())


def _metrics(node: Node, key: str, parameters: Parameters, facts: Facts) -> Document:
    text = openmetrics(
        node,
        MetricSelection(
            per_transport=_flag(parameters, "per_transport", True),
            per_link=_flag(parameters, "per_link", True),
            per_key=_flag(parameters, "per_key", True),
            disconnected=_flag(parameters, "disconnected", False),
            descriptors=_flag(parameters, "descriptors", True),
        ),
        facts.version,
        facts.uptime,
        facts.refused,
        facts.services,
    ).encode()
    if not _flag(parameters, "compression", True):
        return Document(key, OPENMETRICS, text)
    return Document(key, f"{OPENMETRICS};content-encoding=gzip", gzip.compress(text, 6, mtime=0))


def _config(above: str, asked: str, config: Config) -> Iterator[Document]:
    """The configuration as it stands, without what nobody should read."""
    below = f"{above}/config"
    if asked == below:
        yield Document(below, JSON, config.shown_json("").encode())
    elif "*" not in asked and asked.startswith(f"{below}/"):
        try:
            text = config.shown_json(asked[len(below) + 1 :])
        except InvalidConfig:
            return
        yield Document(asked, JSON, text.encode())
    else:
        for path, key in all_keys().items():
            if not isinstance(key.shape, Section) and intersects(asked, f"{below}/{path}"):
                yield Document(f"{below}/{path}", JSON, config.shown_json(path).encode())


def _traffic(node: Node, key: str, parameters: Parameters) -> Document:
    rows = parameters.get("rows") or ""
    limit = min(int(rows), MOST_ROWS) if rows.isdecimal() else ROWS
    among = parameters.get("key") or "**"
    return json_document(key, view.traffic(node, lambda other: intersects(among, other), limit))


def _events(node: Node, above: str, asked: str) -> Iterator[Document]:
    """What happened that an operator should know of, the newest first; all, and by kind."""
    newest = [event.plain(node.now) for event in node.incidents.newest()]
    if intersects(asked, f"{above}/events"):
        yield json_document(f"{above}/events", newest)
    for kind in KINDS:
        if intersects(asked, f"{above}/events/{kind}"):
            chosen = [event for event in newest if event["kind"] == kind]
            yield json_document(f"{above}/events/{kind}", chosen)


def _why(node: Node, above: str, asked: str) -> Iterator[Document]:
    """What the node knows of a key: the end of the expression, whatever is before it."""
    before, slash, key = asked.partition("/why/")
    if not slash or not intersects(f"{before}/why", f"{above}/why"):
        return
    yield json_document(f"{above}/why/{key}", why(node, key))
