"""`zenlake ledger`: what each source sent, and what of it came."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import REFUSED, Connection, networked, note
from zenlake.cli.natural import natural
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Where `zenlake up` keeps its journal.
FOLDER = "zenlake-data/journal"
#: How much of a source's id is shown.
SHORT = 8
FIELDS = ("expected", "received", "missing", "duplicates", "reordered", "healed")


@examples(
    "zenlake ledger",
    "zenlake ledger flight --totals",
    "zenlake ledger --name flight -e tcp/localhost:7447",
)
@networked
def ledger(
    connection: Connection,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="DIR", help="The folder of a journal.  [default: zenlake-data/journal]"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="A journal that is recorded now, by its name on the bus."
        ),
    ] = None,
    only_totals: Annotated[
        bool, typer.Option("-t", "--totals", help="Print the totals, without each source.")
    ] = False,
) -> None:
    """Print what each source sent, and what of it is missing.

    Without a folder and without --name it reads zenlake-data/journal, where `zenlake up` keeps
    it. Ends with 1 if something is missing.
    """
    report = _report(connection, folder, name)
    if connection.as_json:
        from zenlake.cli.show import print_json

        print_json(dict(report["totals"] if only_totals else report))
    else:
        for line in page(report, shutil.get_terminal_size((80, 24)).columns, only_totals):
            typer.echo(line)
    if report["totals"]["missing"]:
        raise typer.Exit(1)


def _report(connection: Connection, folder: str | None, name: str | None) -> Mapping[str, Any]:
    if folder is not None and name is not None:
        note("give a folder or --name, not both")
        raise typer.Exit(REFUSED)
    if name is None:
        folder = folder or FOLDER
        from zenlake.journal import Journal
        from zenlake.journal.ledger import checkpoint

        journal = Journal.open(folder)
        from zenlake.journal.ledger.outages import known_outages

        report = checkpoint.caught_up(journal, checkpoint.stored(journal.path)).report()
        return report | {"outages": known_outages(journal.path)}
    from zenlake.journal.serving.bus import RemoteJournal

    with connection.session() as session:
        return RemoteJournal.open(session, name).ledger()


def page(report: Mapping[str, Any], width: int, only_totals: bool = False) -> list[str]:
    """The report for people: a line for each source, what is missing, and the totals."""
    from zenlake.cli.show import elided
    from zenlake.printable import printable

    # A source is an id and a number: its beginning tells it from others.
    room = max(16, width - 62)
    heads = ("expected", "received", "missing", "twice", "late", "healed")
    lines = [_row("source", heads, "key")]
    listed = [] if only_totals else report["sources"]
    for source in sorted(listed, key=lambda one: (natural(one["key"]), one["source"])):
        name, _, number = source["source"].rpartition(":")
        shown = f"{name[:SHORT]}:{number}" if len(name) > SHORT else source["source"]
        counts = [str(source[field]) for field in FIELDS]
        lines.append(_row(shown, counts, elided(printable(source["key"]), room)))
        gaps = [f"{a}..{b}" if a != b else str(a) for a, b in source["gaps"]]
        if gaps:
            lines.append(f"  missing {', '.join(gaps[:10])}{' …' if len(gaps) > 10 else ''}")
    totals = report["totals"]
    if report["sources"]:
        counts = [str(totals[field]) for field in FIELDS]
        many = totals["sources"]
        lines.append(_row("total", counts, f"{many} source{'' if many == 1 else 's'}"))
    unprovable = report["unprovable"]
    if unprovable:
        lines.append(
            f"{sum(unprovable.values())} samples have no numbers: whether all came cannot be proved"
        )
        ranked = (
            []
            if only_totals
            else sorted(unprovable.items(), key=lambda item: (-item[1], natural(item[0])))
        )
        lines += [
            f"  {count:>9}  {elided(printable(key), width - 13)}" for key, count in ranked[:20]
        ]
        if len(ranked) > 20:
            lines.append(f"  and {len(ranked) - 20} more keys")
    for reason, count in report["drops"].items():
        lines.append(f"dropped by the recorder: {count} ({reason})")
    lines += outages_lines(report.get("outages") or {})
    if len(lines) == 1:
        return ["nothing was recorded yet"]
    lines.append(verdict(totals))
    return lines


def outages_lines(outages: Mapping[str, Any]) -> list[str]:
    """When the recorder was away while its router ran; the last ones, and how many there were."""
    last = outages.get("last", ())[-10:]
    lines = [
        f"not recorded from {one['from']} to {one['to']}: the recorder was away" for one in last
    ]
    if int(outages.get("count", 0)) > len(last):
        lines.append(f"the recorder was away {outages['count']} times, {outages['seconds']:g} s")
    return lines


def verdict(totals: Mapping[str, Any]) -> str:
    """The ledger in one sentence."""
    if totals["missing"]:
        return f"{totals['missing']} of {totals['expected']} numbered samples are missing"
    if totals["expected"]:
        return f"all {totals['expected']} numbered samples are here"
    return "no source numbers its samples: nothing can be proved"


def _row(source: str, counts: Sequence[str], key: str) -> str:
    numbers = "  ".join(
        [f"{count:>{size}}" for count, size in zip(counts, (8, 8, 7, 5, 6, 6), strict=True)]
    )
    return f"{source:<{SHORT + 4}}  {numbers}  {key}".rstrip()
