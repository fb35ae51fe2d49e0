"""`zenlake journal`: look into a journal, check it, and move rows in and out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli import quantities
from zenlake.cli.connection import FAILED, ended_well, note, until_interrupted
from zenlake.cli.pages import group, page
from zenlake.printable import json_text, printable

if TYPE_CHECKING:
    from zenlake.journal.reading.reader import Journal

journal = group("Look into a journal, check it, move rows in and out of it.")

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="The folder of the journal, or its URI.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: one object a line.")]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "-k", "--key", metavar="KEYEXPR", help="Only these keys; repeatable.",
        show_default=False,
    ),
]  # fmt: skip
Time = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="RANGE", help="Only this range of time, e.g. [now(-1h)..].",
        show_default=False,
    ),
]  # fmt: skip
Start = Annotated[
    int | None,
    typer.Option("--start", metavar="OFFSET", help="Begin at this offset.", show_default=False),
]


@page(
    journal,
    "ls",
    "zenlake journal ls zenlake-data/journal",
)
def ls(folder: Folder, as_json: AsJson = False) -> None:
    """List the segments of a journal: offsets, sizes, times, keys."""
    with ended_well():
        opened = _open(folder)
        for partition in range(opened.partitions):
            for segment in opened.segments(partition):
                if as_json:
                    page = segment.to_page() | {"partition": partition, "sealed": segment.sealed}
                    typer.echo(json.dumps(page))
                    continue
                keys = "many" if segment.keys is None else len(segment.keys)
                typer.echo(
                    f"p{partition:04d}  {segment.first:>12} … {segment.end - 1:<12} "
                    f"{segment.bytes:>12} B  {_when(segment.min_time)} … "
                    f"{_when(segment.max_time)}  {keys} keys"
                    f"{f', {segment.retired} rows retired' if segment.retired else ''}"
                    f"{'' if segment.sealed else '  growing'}"
                )
        if not as_json:
            durable = ", ".join([str(offset) for offset in opened.watermark().offsets])
            typer.echo(f"'{opened.name}' {opened.id}, durable up to {durable}")


@page(
    journal,
    "cat",
    "zenlake journal cat zenlake-data/journal -k 'robot/1/**'",
    "zenlake journal cat flight --time '[now(-1h)..]' --json",
    "zenlake journal cat flight --follow",
)
def cat(
    folder: Folder,
    keys: Keys = None,
    time_range: Time = None,
    start: Start = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Continue with new rows as they come.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the rows of a journal."""
    from zenlake.cli.rows import row_facts, row_line

    with ended_well(), until_interrupted():
        for partition, batch in _batches(folder, keys, time_range, start, follow):
            for row in batch.to_pylist():
                if as_json:
                    facts = {"partition": partition} | row_facts(row)
                    typer.echo(json_text(facts))
                else:
                    typer.echo(row_line(row))


@page(
    journal,
    "verify",
    "zenlake journal verify zenlake-data/journal",
)
def verify(folder: Folder, as_json: AsJson = False) -> None:
    """Check every byte, and the ledger against the rows.

    Reads all of the journal: checksums, offsets, counts. Ends with 1 if something is wrong.
    """
    from zenlake.journal.verify import verify as check

    with ended_well():
        verdict = check(_open(folder), lambda what: None if as_json else note(what))
        if as_json:
            typer.echo(
                json.dumps(
                    {
                        "sound": verdict.sound,
                        "rows": verdict.rows,
                        "heartbeats": verdict.heartbeats,
                        "segments": verdict.segments,
                        "bytes": verdict.bytes,
                        "ledger": verdict.ledger,
                        "totals": verdict.totals,
                        "problems": verdict.problems,
                    }
                )
            )
        else:
            beats = ""
            if verdict.heartbeats:
                beats = f" and {verdict.heartbeats} heartbeat{'s' * (verdict.heartbeats > 1)}"
            if verdict.retired:
                beats += f", {verdict.retired} retired by rule,"
            typer.echo(
                f"{verdict.rows} rows{beats} in {verdict.segments} segments, {verdict.bytes} B: "
                f"{'sound' if verdict.sound else 'NOT SOUND'}"
            )
            totals = verdict.totals
            if totals:
                typer.echo(
                    f"ledger {verdict.ledger}: {totals['sources']} sources sent "
                    f"{totals['expected']}, {totals['received']} came, "
                    f"{totals['missing']} missing, "
                    f"{totals['duplicates']} duplicates, {totals['unprovable_rows']} unprovable"
                )
            for problem in verdict.problems:
                typer.echo(printable(f"  {problem}"))
        if not verdict.sound:
            raise typer.Exit(FAILED)


@page(
    journal,
    "export",
    "zenlake journal export flight --parquet flight.parquet",
    "zenlake journal export flight --mcap flight.mcap -k 'robot/1/**'",
)
def export(
    folder: Folder,
    parquet: Annotated[
        str | None, typer.Option("--parquet", metavar="FILE", help="Write a Parquet file.")
    ] = None,
    mcap: Annotated[
        str | None, typer.Option("--mcap", metavar="FILE", help="Write an MCAP file.")
    ] = None,
    keys: Keys = None,
    time_range: Time = None,
    start: Start = None,
) -> None:
    """Write rows to a Parquet or MCAP file."""
    from zenlake.journal.transfer.export import to_mcap, to_parquet

    with ended_well():
        if (parquet is None) == (mcap is None):
            raise typer.BadParameter("give one of the two", param_hint="--parquet / --mcap")
        chosen = {"keys": keys or None, "time": time_range, "start": start}
        if parquet is not None:
            rows = to_parquet(_open(folder), parquet, **chosen)
        else:
            assert mcap is not None
            rows = to_mcap(_open(folder), mcap, None, **chosen)
        typer.echo(f"{rows} rows written to {parquet or mcap}")


@page(
    journal,
    "import",
    "zenlake journal import flight flight.mcap",
    "zenlake journal import flight rows.parquet --again",
)
def import_(
    folder: Folder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .parquet or an .mcap file.")],
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="COUNT", help="Partitions, if it is created.", show_default=False
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also if it was imported before.")] = False,
) -> None:
    """Append the rows of a Parquet or MCAP file.

    They are marked as imported. A file that was imported before is refused, unless --again.
    """
    from zenlake.journal import JournalWriter
    from zenlake.journal.transfer.imports import from_mcap, from_parquet

    with ended_well():
        quantities.local(folder, "DIR")
        read = from_mcap if file.endswith(".mcap") else from_parquet
        with JournalWriter.open(folder, partitions=partitions) as writer:
            try:
                rows = read(writer, file, again=again)
            except OSError as error:
                note(f"{file} cannot be read: {error}")
                raise typer.Exit(FAILED) from None
        typer.echo(f"{rows} rows from {file}")


@page(
    journal,
    "ship",
    "zenlake journal ship zenlake-data/journal --to s3://bucket/robot-7",
    "zenlake journal ship zenlake-data/journal --to s3://bucket/robot-7 --delete",
)
def ship(
    folder: Folder,
    to: Annotated[
        str, typer.Option("--to", metavar="URI", help="Where to: s3://bucket/prefix, file:///…")
    ],
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Delete here what was read back from there and is the same."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Upload sealed segments to another filesystem.

    What is there already is not sent again, so call it as often as there is a network. Readers
    and lakes open the address as they do a folder. Keys to a store come from the environment:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL. --delete is for a journal that
    nobody records; beside a recorder, its retention lets go of what was shipped.
    """
    from dataclasses import asdict

    from zenlake.journal.transfer.ship import ship as send

    with ended_well():
        quantities.local(folder, "DIR")
        try:
            done = send(folder, to, delete=delete)
        except OSError as error:
            note(f"not everything arrived at {to}: {error}; call it again to go on")
            raise typer.Exit(FAILED) from None
        if as_json:
            typer.echo(json.dumps(asdict(done)))
        else:
            typer.echo(
                f"{done.segments} segments, {done.bytes} B, uploaded to {to}; {done.present} were "
                f"there already, {done.deleted} deleted here"
            )


def _open(folder: str) -> Journal:
    from zenlake.journal import Journal

    return Journal.open(folder)


def _batches(
    folder: str,
    keys: list[str] | None,
    time_range: str | None,
    start: int | None,
    follow: bool,
) -> Iterator[tuple[int, Any]]:
    opened = _open(folder)
    chosen: dict[str, Any] = {"keys": keys or None, "time": time_range}
    if follow:
        if opened.partitions == 1:
            yield from ((0, batch) for batch in opened.follow(start, **chosen))
            return
        for batch in opened.follow(start, **chosen):
            from zenlake.journal import partition_of

            key = batch.column("key")[0].as_py()
            yield partition_of(key, opened.partitions), batch
        return
    for partition in range(opened.partitions):
        for batch in opened.scan(start, partition=partition, **chosen):
            yield partition, batch


def _when(micros: int) -> str:
    from datetime import UTC, datetime, timedelta

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")
