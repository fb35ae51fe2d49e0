"""`zenlake why`: what stops a sample between a publisher and a subscriber."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from zenlake.cli.connection import FAILED, Connection, networked
from zenlake.cli.pages import examples
from zenlake.printable import printable

Plain = dict[str, Any]

#: The stages that a sample passes, in their order.
STAGES = (
    "publisher",
    "subscriber",
    "route",
    "access control",
    "low-pass filter",
    "downsampling",
    "congestion",
)


@examples(
    "zenlake why robot/1/pose",
)
@networked
def why(
    connection: Connection,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of the samples.")],
) -> None:
    """Find out what stops samples on a key.

    Asks the nodes that can be reached for publishers, subscribers, routes, access control,
    filters and drops, and names the first stage that stops samples between a publisher and a
    subscriber. Ends with 0 if nothing stops them, 1 if something does, 3 if no node answers.
    """
    from zenlake.cli.admin_space import asked, shown_nodes
    from zenlake.cli.show import paint, print_json
    from zenlake.keys import check

    check(key)
    with connection.session() as session:
        shown_nodes(session, connection)
        pages = {page["zid"]: page for _, page in asked(session, f"@/*/*/why/{key}")}
        hops = dict(asked(session, "@/*/router/route/successor/**"))
    verdict = Diagnosis(key, pages, hops).run()
    if connection.as_json:
        print_json(verdict.facts())
    else:
        for stage, word, text in verdict.lines:
            colour = {"ok": "green", "stop": "red", "note": "yellow"}[word]
            typer.echo(f"{paint(f'{word:<4}', colour)}  {stage:<16}{printable(text)}")
        typer.echo(printable(verdict.sentence()))
    if verdict.stopped:
        raise typer.Exit(FAILED)


@dataclass(slots=True)
class RouteVerdict:
    """What was found, stage by stage."""

    key: str
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    #: The first stage that stops samples, and how; empty: none does.
    stopped: str = ""
    because: str = ""

    def ok(self, stage: str, text: str) -> None:
        """A stage lets samples pass."""
        self.lines.append((stage, "ok", text))

    def note(self, stage: str, text: str) -> None:
        """A stage lets some of them pass."""
        self.lines.append((stage, "note", text))

    def stop(self, stage: str, text: str) -> RouteVerdict:
        """A stage stops them."""
        self.lines.append((stage, "stop", text))
        self.stopped = stage
        self.because = text
        return self

    def sentence(self) -> str:
        """The finding in one line."""
        if self.stopped:
            return f"samples on '{self.key}' stop at: {self.stopped} ({self.because})"
        return f"nothing stops samples on '{self.key}' as far as these nodes know"

    def facts(self) -> Plain:
        """For programs."""
        return {
            "key": self.key,
            "stopped": self.stopped or None,
            "because": self.because or None,
            "stages": [
                {"stage": stage, "result": word, "found": text} for stage, word, text in self.lines
            ],
        }


@dataclass(frozen=True, slots=True)
class Leg:
    """One step of a path: out of one node, into another."""

    node: str
    source: str
    target: str


class Diagnosis:
    """Follows samples on a key through the nodes that could be asked."""

    def __init__(self, key: str, pages: dict[str, Plain], hops: dict[str, str]) -> None:
        """`pages`: what each node knows of the key; `hops`: the routes between routers."""
        self._key = key
        self._pages = pages
        self._hops = hops
        self._verdict = RouteVerdict(key)

    def run(self) -> RouteVerdict:
        """Stage by stage, until one stops them."""
        verdict = self._verdict
        if not self._pages:
            return verdict.stop("publisher", "no node tells of its ways: they are not zenlake's")
        publishers = self._ends("publishers") or self._speakers()
        if not publishers:
            denied = self._denied("ingress", "put")
            if denied:
                return verdict.stop("access control", denied)
            return verdict.stop("publisher", "nobody has declared one, and nothing was heard")
        verdict.ok("publisher", ", ".join(sorted({zid for zid, _ in publishers})))
        subscribers = self._ends("subscribers")
        if not subscribers:
            denied = self._denied("ingress", "declare_subscriber")
            if denied:
                return verdict.stop("access control", denied)
            return verdict.stop(
                "subscriber", f"nobody subscribes to anything that meets '{self._key}'"
            )
        verdict.ok("subscriber", ", ".join(sorted({zid for zid, _ in subscribers})))
        return self._follow(publishers, subscribers)

    # --------------------------------------------------------------------------------- the ends

    def _ends(self, kind: str) -> set[tuple[str, str]]:
        """Who publishes or subscribes, each with the node that serves it."""
        ends: set[tuple[str, str]] = set()
        for teller, page in self._pages.items():
            for row in page[kind]:
                zid = row["zid"]
                if zid == teller:
                    if row["whatami"] == "client":
                        ends.add((zid, teller))
                elif zid not in self._pages or self._pages[zid]["whatami"] != "router":
                    ends.add((zid, teller))
        served = {zid for zid, teller in ends if zid == teller}
        # A node that tells of itself knows best.
        return {(zid, teller) for zid, teller in ends if zid == teller or zid not in served} | {
            (zid, teller) for zid, teller in ends if zid != teller and self._is_router(teller)
        }

    def _is_router(self, zid: str) -> bool:
        return zid in self._pages and self._pages[zid]["whatami"] == "router"

    def _speakers(self) -> set[tuple[str, str]]:
        """Who has published without a declaration."""
        return {
            (row["from"], teller)
            for teller, page in self._pages.items()
            for row in page["heard"]
            if row["whatami"] != "router"
        }

    def _denied(self, flow: str, kind: str) -> str:
        """Whether some neighbour of some node may not say what would have to be said."""
        for teller, page in self._pages.items():
            for neighbour in page["neighbours"]:
                gate = neighbour[flow].get(kind)
                if gate is not None and not gate["allowed"]:
                    return (
                        f"{page['whatami']} {teller} denies {kind} of "
                        f"{neighbour['whatami']} {neighbour['zid']} ({flow}): {gate['access']}"
                    )
        return ""

    # ---------------------------------------------------------------------------------- the path

    def _follow(
        self, publishers: set[tuple[str, str]], subscribers: set[tuple[str, str]]
    ) -> RouteVerdict:
        verdict = self._verdict
        paths: list[tuple[str, str, list[Leg]]] = []
        direct: list[str] = []
        cut: list[str] = []
        for publisher, first in sorted(publishers):
            for subscriber, last in sorted(subscribers):
                if publisher == subscriber:
                    continue
                legs = self._path(publisher, first, subscriber, last)
                if legs is None and self._linked(first, publisher, subscriber):
                    direct.append(f"{publisher} → {subscriber} directly")
                elif legs is None:
                    cut.append(f"{publisher} to {subscriber}")
                else:
                    paths.append((publisher, subscriber, legs))
        if not paths and not direct and cut:
            return verdict.stop(
                "route",
                f"there is no way from {'; from '.join(cut)}; peers must have a link to each "
                "other, since routers carry nothing between them",
            )
        drawn = [*(self._drawn(*path) for path in paths), *direct]
        verdict.ok("route", "; ".join(drawn) or "publisher and subscriber are one node")
        if cut:
            verdict.note("route", f"but there is none from {'; from '.join(cut)}")
        for stage, look in (
            ("access control", self._access),
            ("low-pass filter", self._limit),
            ("downsampling", self._pace),
            ("congestion", self._drops),
        ):
            findings = {word for _, _, legs in paths for leg in legs if (word := look(leg))}
            if not findings:
                verdict.ok(stage, "nothing is stopped")
            elif stage == "access control":
                return verdict.stop(stage, "; ".join(sorted(findings)))
            else:
                stopping = sorted(word for word in findings if word.startswith("!"))
                if stopping:
                    return verdict.stop(stage, "; ".join(word[1:] for word in stopping))
                verdict.note(stage, "; ".join(sorted(findings)))
        return verdict

    def _path(self, publisher: str, first: str, subscriber: str, last: str) -> list[Leg] | None:
        """The steps from a publisher to a subscriber; None if there is no path."""
        legs: list[Leg] = []
        at, source = first, publisher
        for _ in range(len(self._pages) + 1):
            page = self._pages.get(at)
            if page is None:
                return legs
            goes_to = self._goes_to(page, source)
            if subscriber in goes_to or (at == subscriber):
                legs.append(Leg(at, source, subscriber))
                return legs
            hop = self._hop(at, first, last) if last != at else ""
            if hop not in goes_to and at == first:
                return None
            if not hop or hop == source:
                return None
            legs.append(Leg(at, source, hop))
            at, source = hop, at
        return None

    def _linked(self, at: str, publisher: str, subscriber: str) -> bool:
        """Whether two peers have a link to each other, as one of them told its router."""
        return any(
            neighbour["zid"] == one and other in neighbour.get("links", ())
            for one, other in ((publisher, subscriber), (subscriber, publisher))
            for neighbour in self._pages[at]["neighbours"]
        )

    def _goes_to(self, page: Plain, source: str) -> list[str]:
        if source == page["zid"]:
            return list(page["own_goes_to"])
        for neighbour in page["neighbours"]:
            if neighbour["zid"] == source:
                return list(neighbour["goes_to"])
        return []

    def _hop(self, at: str, root: str, last: str) -> str:
        """Who is next from a node towards another."""
        successor = self._hops.get(f"@/{at}/router/route/successor/src/{root}/dst/{last}")
        if successor:
            return successor
        page = self._pages[at]
        zids = [neighbour["zid"] for neighbour in page["neighbours"]]
        return last if last in zids else ""

    def _drawn(self, publisher: str, subscriber: str, legs: list[Leg]) -> str:
        stops = [publisher, *(leg.node for leg in legs if leg.node != publisher)]
        if stops[-1] != subscriber:
            stops.append(subscriber)
        return " → ".join(stops)

    # -------------------------------------------------------------------------------- the gates

    def _gates(self, leg: Leg) -> list[tuple[str, Plain, Plain]]:
        """The gates of a step, each with its neighbour: ingress, then egress."""
        gates: list[tuple[str, Plain, Plain]] = []
        for flow, zid in (("ingress", leg.source), ("egress", leg.target)):
            for neighbour in self._pages[leg.node]["neighbours"]:
                if neighbour["zid"] == zid and zid != leg.node:
                    gates.append((flow, neighbour, neighbour[flow].get("put", {})))
        return gates

    def _access(self, leg: Leg) -> str:
        for flow, neighbour, gate in self._gates(leg):
            if gate and not gate["allowed"]:
                towards = "from" if flow == "ingress" else "to"
                return (
                    f"{self._pages[leg.node]['whatami']} {leg.node} denies put {towards} "
                    f"{neighbour['whatami']} {neighbour['zid']} ({flow}): {gate['access']}"
                )
        return ""

    def _limit(self, leg: Leg) -> str:
        return self._filtered(leg, "limit", "low-pass")

    def _pace(self, leg: Leg) -> str:
        return self._filtered(leg, "downsampling", "downsampling")

    def _filtered(self, leg: Leg, what: str, reason: str) -> str:
        for flow, neighbour, gate in self._gates(leg):
            rules = gate.get(what)
            if rules:
                text = rules if isinstance(rules, str) else ", ".join(rules)
                direction = "rx" if flow == "ingress" else "tx"
                many = neighbour["dropped"][direction].get(reason, 0)
                mark = "!" if many or " lets 0 a second" in text else ""
                return (
                    f"{mark}{leg.node}, {flow} of {neighbour['zid']}: {text}; {many} dropped so far"
                )
        return ""

    def _drops(self, leg: Leg) -> str:
        for flow, neighbour, _ in self._gates(leg):
            many = neighbour["dropped"]["tx"].get("congestion", 0)
            if flow == "egress" and many:
                here = sum(
                    row["dropped"]
                    for row in neighbour.get("dropped_here", ())
                    if row["reason"] == "congestion"
                )
                told = f"{leg.node} had no room for {many} messages to {neighbour['zid']}"
                if here:
                    return f"!{told}, {here} of them on this key or with it in one row"
                return f"{told}, none of them on this key"
        return ""
