"""What commands learn from the admin spaces of the nodes they can reach."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from zenlake.cli.connection import NOBODY, Connection, note
from zenlake.cli.natural import natural

if TYPE_CHECKING:
    from zenlake.api.session import Session

KINDS = ("publisher", "subscriber", "queryable", "querier", "token")
TIMEOUT = 3.0

Plain = dict[str, Any]


def asked(session: Session, selector: str) -> list[tuple[str, Any]]:
    """The records that answer, with their keys; what is no JSON is left out."""
    from zenlake.values import QueryTarget

    records: list[tuple[str, Any]] = []
    for reply in session.get(selector, timeout=TIMEOUT, target=QueryTarget.ALL):
        sample = reply.ok
        if sample is None:
            continue
        try:
            records.append((str(sample.key_expr), json.loads(sample.payload.to_bytes())))
        except ValueError:
            continue
    return records


@dataclass(slots=True)
class Shown:
    """A node that shows itself."""

    zid: str
    whatami: str
    page: Plain
    #: Whether it tells of traffic and of ways.
    ours: bool

    @property
    def name(self) -> str:
        """What its configuration calls it in `metadata/name`; empty if it does not."""
        metadata = self.page.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) and name.isprintable() else ""


def nodes(session: Session, stats: bool = False) -> dict[str, Shown]:
    """The nodes that answer, by id."""
    by_id: dict[str, Shown] = {}
    for key, page in asked(session, f"@/*/*{'?_stats=true' if stats else ''}"):
        chunks = key.split("/")
        if len(chunks) == 3 and isinstance(page, dict):
            ours = str(page.get("version", "")).startswith("zenlake")
            by_id[chunks[1]] = Shown(chunks[1], chunks[2], page, ours)
    return by_id


def nearest_limits(session: Session) -> dict[tuple[str, str], tuple[str, float]]:
    """By node and neighbour: the limit that the session is nearest to, and the part it uses."""
    return {
        (key.split("/")[1], one["peer"]): (one["nearest"]["limit"], one["nearest"]["part"])
        for key, page in asked(session, "@/*/*/limits")
        for one in page["sessions"]
    }


def dropped(session: Session) -> dict[tuple[str, str, str], int]:
    """By node, reason and key: what was dropped so far."""
    return {
        (key.split("/")[1], row["reason"], row["key"]): row["dropped"]
        for key, page in asked(session, "@/*/*/drops")
        for row in page["keys"]
    }


def shown_nodes(session: Session, connection: Connection) -> dict[str, Shown]:
    """The nodes that show themselves; if there are none, say what to do and end with 3."""
    from zenlake.cli.patience import neighboured

    if neighboured(session, connection):
        by_id = nodes(session)
        if by_id:
            return by_id
        note(
            "no node shows its admin space; start a `zenlake router` on this machine, or have a "
            'node show it: adminspace/enabled, and adminspace/permissions/links "any" for other '
            "machines"
        )
    raise typer.Exit(NOBODY)


@dataclass(slots=True)
class KeyFacts:
    """What is known of one key."""

    key: str
    #: By kind: who declared it.
    declared: dict[str, set[str]] = field(default_factory=dict)
    samples: int = 0
    size: int = 0

    def facts(self) -> Plain:
        """For programs."""
        document: Plain = {"key": self.key}
        document |= {f"{kind}s": sorted(self.declared.get(kind, ())) for kind in KINDS}
        return document | {"samples": self.samples, "bytes": self.size}

    def words(self) -> str:
        """For people."""
        parts = [
            f"{len(zids)} {kind}{'s' if len(zids) > 1 else ''}"
            for kind in KINDS
            if (zids := self.declared.get(kind))
        ]
        if self.samples:
            parts.append(f"{self.samples} sample{'s' if self.samples > 1 else ''}")
        return ", ".join(parts)


def keyspace(session: Session, shown: dict[str, Shown], among: str) -> list[KeyFacts]:
    """The keys that are declared or spoken on, of those that meet `among`."""
    by_key: dict[str, KeyFacts] = {}
    for kind in KINDS:
        for key, sources in asked(session, f"@/*/*/{kind}/{among}"):
            chunks = key.split("/", 4)
            if len(chunks) < 5 or chunks[4].startswith("@/"):
                continue
            facts = by_key.setdefault(chunks[4], KeyFacts(chunks[4]))
            zids = declarers(chunks[1], sources, shown)
            facts.declared.setdefault(kind, set()).update(zids)
    for (key, _), row in traffic(session, shown, among).items():
        facts = by_key.setdefault(key, KeyFacts(key))
        facts.samples += row["samples"]
        facts.size += row["bytes"]
    return [by_key[key] for key in sorted(by_key, key=natural)]


def declarers(teller: str, sources: Plain, shown: dict[str, Shown]) -> set[str]:
    """The nodes that declared something, without the routers that only pass it on."""
    zids: set[str] = set()
    for kind in ("routers", "peers", "clients"):
        for zid in sources.get(kind, ()):
            if zid == teller:
                if kind == "clients":  # the programs of the node itself
                    zids.add(zid)
            elif zid not in shown or shown[zid].whatami != "router":
                zids.add(zid)
    return zids


def traffic(
    session: Session, shown: dict[str, Shown], among: str = "**"
) -> dict[tuple[str, str], Plain]:
    """What passed, by key and by who said it: one row each, however many nodes saw it."""
    rows: dict[tuple[str, str], Plain] = {}
    passed_on: dict[tuple[str, str], Plain] = {}
    for _, page in asked(session, f"@/*/*/traffic?key={among}"):
        for row in page["keys"]:
            if row["key"].startswith("@"):
                continue
            zid = row["from"]
            transit = row["whatami"] == "router" and zid in shown and shown[zid].ours
            among_them = passed_on if transit else rows
            before = among_them.get((row["key"], zid))
            if before is None or before["samples"] < row["samples"]:
                among_them[row["key"], zid] = row
    said = {key for key, _ in rows}
    return rows | {where: row for where, row in passed_on.items() if where[0] not in said}
