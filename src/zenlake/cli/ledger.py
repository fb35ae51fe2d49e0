"""`zenlake ledger`: what each source sent, and what of it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import REFUSED, Connection, networked, note
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from collections.abc import Mapping


@examples(
    "zenlake ledger",
    "zenlake ledger flight --json",
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
) -> None:
    """Print what each source sent, and what of it is missing.

    Without a folder and without --name it reads zenlake-data/journal, where `zenlake up` keeps
    it. Ends with 1 if something is missing.
    """
    report = _report(connection, folder, name)
    if connection.as_json:
        from zenlake.cli.show import print_json

        print_json(dict(report))
    else:
        _print(report)
    if report["totals"]["missing"]:
        raise typer.Exit(1)


def _report(connection: Connection, folder: str | None, name: str | None) -> Mapping[str, Any]:
    if (folder is None) == (name is None):
        note("say whose: the folder of a journal, or --name with -e ENDPOINT")
        raise typer.Exit(REFUSED)
    if folder is not None:
        from zenlake.journal import Journal
        from zenlake.journal.ledger import checkpoint

        journal = Journal.open(folder)
        return checkpoint.caught_up(journal, checkpoint.stored(journal.path)).report()
    assert name is not None
    from zenlake.journal.serving.bus import RemoteJournal

    with connection.session() as session:
        return RemoteJournal.open(session, name).ledger()


def _print(report: Mapping[str, Any]) -> None:
    from zenlake.cli.show import escaped

    head = ("expected", "received", "missing", "duplicate", "reordered", "healed")
    typer.echo(f"{'source':<42} {' '.join(f'{word:>10}' for word in head)}  key")
    for page in report["sources"]:
        numbers = [
            page[word]
            for word in ("expected", "received", "missing", "duplicates", "reordered", "healed")
        ]
        counts = " ".join([f"{number:>10}" for number in numbers])
        typer.echo(f"{page['source']:<42} {counts}  {escaped(page['key'])}")
        gaps = [f"{a}..{b}" if a != b else str(a) for a, b in page["gaps"]]
        if gaps:
            typer.echo(f"  missing {', '.join(gaps[:10])}{' …' if len(gaps) > 10 else ''}")
    unprovable = report["unprovable"]
    if unprovable:
        typer.echo("unprovable: these samples have no numbers, nobody can say whether all came")
        for key, count in sorted(unprovable.items(), key=lambda item: -item[1])[:20]:
            typer.echo(f"  {count:>10}  {escaped(key)}")
        if len(unprovable) > 20:
            typer.echo(f"  and {len(unprovable) - 20} keys more")
    for reason, count in report["drops"].items():
        typer.echo(f"dropped by the recorder: {count} ({reason})")
