"""`zenlake top`: what flows now, by key and by session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.ls import KeyArgument
from zenlake.cli.natural import natural
from zenlake.cli.options import Every
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

#: Keys that are counted here, if nodes do not tell.
MOST_KEYS = 10_000
#: From this part of a limit on a session is shown with it, and from the other on before the rest.
SHOWN, NEAR = 0.1, 0.5


class SortOrder(StrEnum):
    """What comes first; the first letter is the key to press for it."""

    RATE = "rate"
    BYTES = "bytes"
    TOTAL = "total"
    KEY = "key"


@examples(
    "zenlake top",
    "zenlake top 'robot/**' --sort bytes",
    "zenlake top --once --json",
)
@networked
def top(
    connection: Connection,
    key: KeyArgument = "**",
    every: Every = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one report and stop.")] = False,
    order: Annotated[
        SortOrder,
        typer.Option("--sort", metavar="ORDER", help="Sort by rate, bytes, total or key."),
    ] = SortOrder.RATE,
    rows: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--rows",
            metavar="COUNT",
            min=1,
            help="The most keys to show.  [default: as many as fit]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show live traffic, sessions near a limit, and what is dropped.

    Asks the admin spaces of the nodes that can be reached. Where none of them counts traffic, it
    subscribes and counts what comes. On a terminal r, b, t and k change the order (rate, bytes,
    total, key), and q quits.
    """
    from zenlake.cli.admin_space import shown_nodes
    from zenlake.keys import check

    check(key)
    with connection.session() as session:
        shown = shown_nodes(session, connection)
        counted: Callable[[], dict[tuple[str, str], TopRow]] | None = None
        if not any(node.ours for node in shown.values()):
            note(f"no node tells of its traffic: subscribed to '{key}' to count it here")
            counter = Counter()
            session.declare_subscriber(key, counter.heard)
            counted = counter.rows
        with until_interrupted():
            _show(connection, lambda: look(session, key, counted), every, once, rows, order)


# ------------------------------------------------------------------------------------ looking


@dataclass(frozen=True, slots=True)
class TopRow:
    """What passed so far."""

    samples: int
    size: int


@dataclass(slots=True)
class Look:
    """What there was to see at one moment."""

    when: float
    #: By key and by who said it.
    keys: dict[tuple[str, str], TopRow] = field(default_factory=dict)
    #: What people call the nodes, where they have a name.
    names: dict[str, str] = field(default_factory=dict)
    #: By node and neighbour: kind of neighbour, messages and bytes in, messages and bytes out.
    sessions: dict[tuple[str, str], tuple[str, TopRow | None, TopRow | None]] = field(
        default_factory=dict
    )
    #: By node and neighbour: the limit that it is nearest to, and how much of it is used.
    nearest: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    #: By node, reason and key: what was dropped.
    dropped: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def part(self, session: tuple[str, str]) -> float:
        """How near a session is to a limit: 1 at the limit."""
        return self.nearest.get(session, ("", 0.0))[1]


class Counter:
    """Counts what a subscriber hears."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], TopRow] = {}

    def heard(self, sample: Sample) -> None:
        """A sample came."""
        source = sample.source_info
        who = "" if source is None else str(source.source_id.zid)
        where = (str(sample.key_expr), who)
        with self._lock:
            if where not in self._rows and len(self._rows) >= MOST_KEYS:
                where = ("other keys", "")
            row = self._rows.get(where, TopRow(0, 0))
            self._rows[where] = TopRow(row.samples + 1, row.size + sample.size())

    def rows(self) -> dict[tuple[str, str], TopRow]:
        """What came so far."""
        with self._lock:
            return dict(self._rows)


def look(
    session: Session, key: str, counted: Callable[[], dict[tuple[str, str], TopRow]] | None
) -> Look:
    """See what there is now."""
    from zenlake.cli.admin_space import dropped, nearest_limits, nodes, traffic

    shown = nodes(session, stats=True)
    seen = Look(time.monotonic())
    if counted is not None:
        seen.keys = counted()
    else:
        for where, row in traffic(session, shown, key).items():
            seen.keys[where] = TopRow(row["samples"], row["bytes"])
    own = str(session.zid())
    for node in shown.values():
        if node.name:
            seen.names[node.zid] = node.name
        for one in node.page.get("sessions", ()):
            stats: dict[str, Any] = one.get("stats") or {}
            if one["peer"] != own:
                seen.sessions[node.zid, one["peer"]] = (
                    one["whatami"],
                    _row(stats, "rx"),
                    _row(stats, "tx"),
                )
    if any(node.ours for node in shown.values()):
        seen.nearest = nearest_limits(session)
        seen.dropped = dropped(session)
    return seen


def _row(stats: dict[str, Any], direction: str) -> TopRow | None:
    if f"{direction}_messages" not in stats:
        return None
    return TopRow(stats[f"{direction}_messages"], stats[f"{direction}_bytes"])


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast something goes: samples and bytes a second, and all of them so far."""

    samples: float
    size: float
    total: int


def rate(before: TopRow | None, after: TopRow, seconds: float) -> Rate:
    """How fast it went between two looks."""
    first = before or TopRow(0, 0)
    # A node that was started anew counts from nothing.
    samples = max(0, after.samples - first.samples)
    size = max(0, after.size - first.size)
    return Rate(samples / seconds, size / seconds, after.samples)


def rates(
    before: Look, after: Look, order: SortOrder = SortOrder.RATE
) -> list[tuple[str, str, Rate]]:
    """What flowed between two looks: the most first, or by key."""
    seconds = max(after.when - before.when, 1e-9)
    flows = [
        (key, who, rate(before.keys.get((key, who)), row, seconds))
        for (key, who), row in after.keys.items()
    ]
    # Rates of equal robots differ a little each time: rounded, they keep their places.
    measures: dict[SortOrder, Callable[[Rate], float]] = {
        SortOrder.RATE: lambda flow: -round(flow.samples),
        SortOrder.BYTES: lambda flow: -flow.size,
        SortOrder.TOTAL: lambda flow: -flow.total,
        SortOrder.KEY: lambda flow: 0.0,
    }
    measure = measures[order]
    return sorted(flows, key=lambda one: (measure(one[2]), natural(one[0]), one[1]))


def drops(before: Look, after: Look) -> list[tuple[tuple[str, str, str], float, int]]:
    """What was dropped, by node, reason and key: a second and in all, the most first."""
    seconds = max(after.when - before.when, 1e-9)
    lost = [
        (where, max(0, total - before.dropped.get(where, 0)) / seconds, total)
        for where, total in after.dropped.items()
    ]
    return sorted(lost, key=lambda one: (-one[1], -one[2], one[0]))


# ------------------------------------------------------------------------------------ showing


def _show(
    connection: Connection,
    take: Callable[[], Look],
    every: float,
    once: bool,
    rows: int | None,
    order: SortOrder,
) -> None:
    from zenlake.cli.screen import Screen

    before = take()
    if connection.as_json or once or not Screen.possible():
        while True:
            time.sleep(every)
            after = take()
            if connection.as_json:
                _print_json(before, after, rows or ROWS, order)
            else:
                for line in drawn(before, after, order, width=Screen.size()[0], rows=rows or ROWS):
                    typer.echo(line)
            before = after
            if once or not connection.as_json:
                return
    letters = {name.value[0]: name for name in SortOrder}
    with Screen() as screen:
        after = before
        due = time.monotonic() + every
        while True:
            width, height = screen.size()
            lines = drawn(before, after, order, width=width, rows=rows, height=height)
            screen.show(lines)
            letter = screen.pressed(due - time.monotonic())
            if letter == "q":
                return
            order = letters.get(letter, order)
            if time.monotonic() >= due:
                before, after = after, take()
                due = time.monotonic() + every


def drawn(
    before: Look,
    after: Look,
    order: SortOrder,
    *,
    width: int,
    rows: int | None,
    height: int | None = None,
) -> list[str]:
    """What is shown: lines of at most `width`, and at most `height` of them."""
    from zenlake.cli.show import elided, scaled
    from zenlake.printable import printable

    flows = rates(before, after, order)
    shown_sessions = sorted(
        after.sessions.items(),
        key=lambda one: (-max(NEAR, after.part(one[0])), -_moved(one[1]), one[0]),
    )
    room = len(shown_sessions)
    lost = drops(before, after)
    told = ROWS if height is None else DROPS
    if height is not None:
        # Two headings, a blank line and the last line, two more for drops if there are any;
        # sessions get a third of the rest.
        above = 4 + (2 + min(len(lost), told) + (len(lost) > told) if lost else 0)
        room = min(room, max(1, (height - above) // 3))
        fit = max(1, height - above - room - (room < len(shown_sessions)))
        rows = fit if rows is None else min(rows, fit)
    rows = ROWS if rows is None else rows
    called = names(after)
    # The numbers take what they take; keys have the rest.
    wide = max(16, width - sum(NUMBERS) - NAME - 2 * (len(NUMBERS) + 1))
    lines = [f"{'KEY':<{wide}}  {'FROM':<{NAME}}  {'SAMPLES/S':>9}  {'BYTES/S':>9}  {'SAMPLES':>9}"]
    most = rows if len(flows) <= rows else rows - 1
    for key, who, flow in flows[:most]:
        lines.append(
            f"{elided(printable(key), wide):<{wide}}  {called.get(who, who[:NAME]):<{NAME}}  "
            f"{flow.samples:>9.1f}  {scaled(flow.size):>9}  {flow.total:>9}"
        )
    if len(flows) > most:
        lines.append(f"and {len(flows) - most} more keys")
    lines += ["", _heading(width)]
    seconds = max(after.when - before.when, 1e-9)
    for (node, peer), (whatami, came, went) in shown_sessions[:room]:
        known = before.sessions.get((node, peer), ("", None, None))
        cells: list[str] = []
        for first, now in ((known[1], came), (known[2], went)):
            if now is None:
                cells += ["", ""]
            else:
                flow = rate(first, now, seconds)
                cells += [f"{flow.samples:.1f}", scaled(flow.size)]
        row = "  ".join([f"{cell:>9}" for cell in cells])
        lines.append(
            f"{called.get(node, node[:NAME]):<{NAME}}  {called.get(peer, peer[:NAME]):<{NAME}}  "
            f"{whatami:<6}  {row}  {_limit(after, (node, peer), width)}"
        )
    if len(shown_sessions) > room:
        lines.append(f"and {len(shown_sessions) - room} more sessions")
    if lost:
        wide -= WHY - NUMBERS[0]
        lines += [
            "",
            f"{'DROPPED':<{wide}}  {'AT':<{NAME}}  {'WHY':<{WHY}}  {'DROPS/S':>9}  {'DROPS':>9}",
        ]
        for (node, reason, key), a_second, total in lost[:told]:
            lines.append(
                f"{elided(printable(key), wide):<{wide}}  {called.get(node, node[:NAME]):<{NAME}}  "
                f"{reason:<{WHY}}  {a_second:>9.1f}  {total:>9}"
            )
        if len(lost) > told:
            lines.append(f"and {len(lost) - told} more keys that lost something")
    if height is not None:
        foot = f"sorted by {order}; r b t k: by rate, bytes, total, key; q quits"
        lines = [*lines[: height - 1], foot[:width]]
    return [line.rstrip() for line in lines]


#: How wide names of nodes and the three numbers of a key are.
NAME = 10
NUMBERS = (9, 9, 9)
#: Rows of what was dropped on a screen.
DROPS = 5
#: How wide the reason of a drop is.
WHY = 14
#: How wide the line of a session is, up to the limit that it is near to.
SESSION = 2 * (NAME + 2) + 6 + 2 + 4 * 9 + 3 * 2 + 2
#: Keys that are printed where there is no screen to fill.
ROWS = 30


def _moved(session: tuple[str, TopRow | None, TopRow | None]) -> int:
    """How many bytes a session has moved in both directions."""
    return sum(row.size for row in session[1:] if isinstance(row, TopRow))


def _limit(seen: Look, session: tuple[str, str], width: int) -> str:
    """The limit that a session is nearest to, as far as there is room for it and a need."""
    name, part = seen.nearest.get(session, ("", 0.0))
    room = width - SESSION
    text = f"{part:.0%}" if room < len(f"100% of {name}") else f"{part:.0%} of {name}"
    return text if part >= SHOWN and len(text) <= room else ""


def _heading(width: int) -> str:
    words = "  ".join([f"{word:>9}" for word in ("IN/S", "BYTES/S", "OUT/S", "BYTES/S")])
    near = "NEAR A LIMIT" if width >= SESSION + len("NEAR A LIMIT") else "NEAR"
    heading = f"{'NODE':<{NAME}}  {'NEIGHBOUR':<{NAME}}  {'':<6}  {words}"
    return f"{heading}  {near}" if width >= SESSION + len(near) else heading


def names(seen: Look) -> dict[str, str]:
    """A short name for each id: the node's own, or as much of its id as sets it apart."""
    ids = {who for _, who in seen.keys if who} | {zid for pair in seen.sessions for zid in pair}
    least = next(
        size for size in range(6, 33) if size == 32 or len({zid[:size] for zid in ids}) == len(ids)
    )
    return {zid: (seen.names.get(zid) or zid[:least])[:NAME] for zid in ids}


def _print_json(before: Look, after: Look, rows: int, order: SortOrder) -> None:
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
        for key, who, flow in rates(before, after, order)[:rows]
    ]
    sessions: list[dict[str, object]] = []
    for (node, peer), (whatami, came, went) in sorted(after.sessions.items()):
        known = before.sessions.get((node, peer), ("", None, None))
        document: dict[str, object] = {"node": node, "neighbour": peer, "whatami": whatami}
        for direction, first, now in (("rx", known[1], came), ("tx", known[2], went)):
            if now is not None:
                flow = rate(first, now, seconds)
                document[f"{direction}_messages_per_s"] = flow.samples
                document[f"{direction}_bytes_per_s"] = flow.size
        if (node, peer) in after.nearest:
            limit, part = after.nearest[node, peer]
            document["nearest_limit"] = {"limit": limit, "part": part}
        sessions.append(document)
    dropped = [
        {
            "node": node,
            "reason": reason,
            "key": key,
            "dropped_per_s": a_second,
            "dropped": total,
        }
        for (node, reason, key), a_second, total in drops(before, after)[:rows]
    ]
    print_json({"seconds": seconds, "keys": keys, "sessions": sessions, "dropped": dropped})
