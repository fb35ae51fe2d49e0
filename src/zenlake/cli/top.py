"""`zenlake top`: what flows now, by key and by session."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.ls import KeyArgument
from zenlake.cli.options import Every

if TYPE_CHECKING:
    from rich.console import RenderableType

    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

#: Keys that are counted here, if nodes do not tell.
MOST_KEYS = 10_000


@networked
def top(
    connection: Connection,
    key: KeyArgument = "**",
    every: Every = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Look twice, tell what changed, and stop.")
    ] = False,
    rows: Annotated[
        int, typer.Option("-r", "--rows", metavar="COUNT", min=1, help="How many keys are shown.")
    ] = 30,
) -> None:
    """Show live what flows: samples and bytes a second by key, and messages by session.

    Asks the admin spaces of all nodes that show themselves. Where none of them tells of traffic,
    it subscribes itself and counts what comes.
    """
    from zenlake.cli.admin_space import shown_nodes

    with connection.session() as session:
        shown = shown_nodes(session, connection)
        counted: Callable[[], dict[tuple[str, str], Row]] | None = None
        if not any(node.ours for node in shown.values()):
            note(f"no node tells of its traffic: subscribed to '{key}' to count it here")
            counter = Counter()
            session.declare_subscriber(key, counter.heard)
            counted = counter.rows
        with until_interrupted():
            _show(connection, lambda: look(session, key, counted), every, once, rows)


# ------------------------------------------------------------------------------------ looking


@dataclass(frozen=True, slots=True)
class Row:
    """What passed so far."""

    samples: int
    size: int


@dataclass(slots=True)
class Look:
    """What there was to see at one moment."""

    when: float
    #: By key and by who said it.
    keys: dict[tuple[str, str], Row] = field(default_factory=dict)
    #: By node and neighbour: kind of neighbour, messages and bytes in, messages and bytes out.
    sessions: dict[tuple[str, str], tuple[str, Row | None, Row | None]] = field(
        default_factory=dict
    )


class Counter:
    """Counts what a subscriber hears."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], Row] = {}

    def heard(self, sample: Sample) -> None:
        """A sample came."""
        source = sample.source_info
        who = "" if source is None else str(source.source_id.zid)
        where = (str(sample.key_expr), who)
        with self._lock:
            if where not in self._rows and len(self._rows) >= MOST_KEYS:
                where = ("other keys", "")
            row = self._rows.get(where, Row(0, 0))
            self._rows[where] = Row(row.samples + 1, row.size + sample.size())

    def rows(self) -> dict[tuple[str, str], Row]:
        """What came so far."""
        with self._lock:
            return dict(self._rows)


def look(
    session: Session, key: str, counted: Callable[[], dict[tuple[str, str], Row]] | None
) -> Look:
    """See what there is now."""
    from zenlake.cli.admin_space import nodes, traffic

    shown = nodes(session, stats=True)
    seen = Look(time.monotonic())
    if counted is not None:
        seen.keys = counted()
    else:
        for where, row in traffic(session, shown, key).items():
            seen.keys[where] = Row(row["samples"], row["bytes"])
    own = str(session.zid())
    for node in shown.values():
        for one in node.page.get("sessions", ()):
            stats: dict[str, Any] = one.get("stats") or {}
            if one["peer"] != own:
                seen.sessions[node.zid, one["peer"]] = (
                    one["whatami"],
                    _row(stats, "rx"),
                    _row(stats, "tx"),
                )
    return seen


def _row(stats: dict[str, Any], way: str) -> Row | None:
    if f"{way}_messages" not in stats:
        return None
    return Row(stats[f"{way}_messages"], stats[f"{way}_bytes"])


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast something goes: samples and bytes a second, and all of them so far."""

    samples: float
    size: float
    total: int


def rate(before: Row | None, after: Row, seconds: float) -> Rate:
    """How fast it went between two looks."""
    first = before or Row(0, 0)
    # A node that was started anew counts from nothing.
    samples = max(0, after.samples - first.samples)
    size = max(0, after.size - first.size)
    return Rate(samples / seconds, size / seconds, after.samples)


def rates(before: Look, after: Look) -> list[tuple[str, str, Rate]]:
    """What flowed between two looks, the fastest first."""
    seconds = max(after.when - before.when, 1e-9)
    found = [
        (key, who, rate(before.keys.get((key, who)), row, seconds))
        for (key, who), row in after.keys.items()
    ]
    return sorted(found, key=lambda one: (-one[2].samples, -one[2].total, one[0], one[1]))


# ------------------------------------------------------------------------------------ showing


def _show(
    connection: Connection, take: Callable[[], Look], every: float, once: bool, rows: int
) -> None:
    live = sys.stdout.isatty() and not once and not connection.as_json
    before = take()
    with _screen(live) as show:
        while True:
            time.sleep(every)
            after = take()
            if connection.as_json:
                _print_json(before, after, rows)
            else:
                show(_drawn(before, after, rows))
            before = after
            if once or (not live and not connection.as_json):
                return


@contextmanager
def _screen(live: bool) -> Iterator[Callable[[RenderableType], None]]:
    from rich.console import Console
    from rich.live import Live

    console = Console(width=None if sys.stdout.isatty() else 120)
    if not live:
        yield console.print
        return
    with Live(console=console, screen=True, auto_refresh=False) as screen:
        yield lambda drawn: screen.update(drawn, refresh=True)


def _drawn(before: Look, after: Look, rows: int) -> RenderableType:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    from zenlake.cli.show import escaped, scaled

    keys = Table(box=None, pad_edge=False)
    keys.add_column("KEY", style="cyan", overflow="fold")
    keys.add_column("FROM", overflow="fold")
    for name in ("SAMPLES/S", "BYTES/S", "SAMPLES"):
        keys.add_column(name, justify="right", no_wrap=True)
    found = rates(before, after)
    for key, who, flow in found[:rows]:
        keys.add_row(
            escape(escaped(key)),
            who,
            f"{flow.samples:.1f}",
            f"{scaled(flow.size)}",
            str(flow.total),
        )
    if len(found) > rows:
        keys.add_row(f"and {len(found) - rows} more", "", "", "", "")
    sessions = Table(box=None, pad_edge=False)
    for name in ("NODE", "NEIGHBOUR", ""):
        sessions.add_column(name, overflow="fold")
    for name in ("IN/S", "BYTES/S", "OUT/S", "BYTES/S"):
        sessions.add_column(name, justify="right", no_wrap=True)
    seconds = max(after.when - before.when, 1e-9)
    for (node, peer), (whatami, came, went) in sorted(after.sessions.items()):
        known = before.sessions.get((node, peer), ("", None, None))
        cells: list[str] = []
        for first, now in ((known[1], came), (known[2], went)):
            if now is None:
                cells += ["", ""]
            else:
                flow = rate(first, now, seconds)
                cells += [f"{flow.samples:.1f}", scaled(flow.size)]
        sessions.add_row(node, peer, whatami, *cells)
    return Group(keys, "", sessions)


def _print_json(before: Look, after: Look, rows: int) -> None:
    from zenlake.cli.show import print_json

    seconds = max(after.when - before.when, 1e-9)
    keys = [
        {
            "key": key,
            "from": who,
            "samples_per_s": flow.samples,
            "bytes_per_s": flow.size,
            "samples": flow.total,
        }
        for key, who, flow in rates(before, after)[:rows]
    ]
    sessions: list[dict[str, object]] = []
    for (node, peer), (whatami, came, went) in sorted(after.sessions.items()):
        known = before.sessions.get((node, peer), ("", None, None))
        told: dict[str, object] = {"node": node, "neighbour": peer, "whatami": whatami}
        for way, first, now in (("rx", known[1], came), ("tx", known[2], went)):
            if now is not None:
                flow = rate(first, now, seconds)
                told[f"{way}_messages_per_s"] = flow.samples
                told[f"{way}_bytes_per_s"] = flow.size
        sessions.append(told)
    print_json({"seconds": seconds, "keys": keys, "sessions": sessions})
