"""`zenlake lake status` and `zenlake lake tables`: what a lake has."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import typer

from zenlake.cli.lake_options import LAKE, AsJson, ConfigFile, Journals, Where, choose_lake
from zenlake.cli.pages import examples
from zenlake.printable import printable

__all__ = ["lake_status", "lake_tables"]


@examples("zenlake lake status", "zenlake lake status --lake tables --journal flight --json")
def lake_status(
    where: Where = LAKE,
    journals: Journals = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say how large each table is, and how far behind the journal."""
    import zenlake.lake
    from zenlake.errors import ZError
    from zenlake.journal import Journal

    chosen = choose_lake(where, config, journals)
    heard: list[Journal] = []
    for journal in chosen.journals:
        with suppress(ZError):
            heard.append(Journal.open(journal))
    status = zenlake.lake.open(chosen.where).status(*heard)
    if as_json:
        typer.echo(json.dumps(status.plain()))
        return
    lines = [("table", "rows", "files", "MB", "version", "behind")]
    for one in status.tables:
        behind = "-" if not heard or one.name == "quarantine" else f"{one.behind:,}"
        size = f"{one.bytes / 1e6:,.1f}"
        lines.append((one.name, f"{one.rows:,}", str(one.files), size, str(one.version), behind))
    _columns(lines)
    now = time.time()
    what = "no pipeline runs"
    if status.fresh(now):
        what = f"{status.state}, commits every {status.every:.0f} s, {status.freshness:.1f} s old"
    typer.echo("")
    typer.echo(f"pipeline    {what}")
    typer.echo(f"missing     {status.gaps:,} samples by the numbers of their sources")
    typer.echo(f"quarantine  {status.quarantine:,} samples")
    live, total = status.bytes_live / 1e6, status.bytes_total / 1e6
    typer.echo(f"disk        {live:,.1f} MB in use, {total:,.1f} MB in all")
    if status.error is not None and status.error_at is not None:
        when = datetime.fromtimestamp(status.error_at)
        typer.echo(f"last error  {when:%Y-%m-%d %H:%M:%S} {printable(str(status.error))}")
    for keys in status.without_table:
        shown = ", ".join(keys.examples)
        typer.echo(printable(f"no table    for {keys.count:,}: {keys.reason}; {shown}"))
    for problem in status.problems:
        typer.echo(printable(f"problem     {problem}"))


@examples("zenlake lake tables", "zenlake lake tables --ros")
def lake_tables(
    where: Where = LAKE,
    config: ConfigFile = None,
    ros: Annotated[bool, typer.Option("--ros", help="Those of topics of ROS 2 alone.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the tables with their columns."""
    import zenlake.lake
    from zenlake.lake.decode.ros2_tables import DESCRIBED

    tables = zenlake.lake.open(choose_lake(where, config).where).tables()
    if ros:
        tables = {name: one for name, one in tables.items() if one.described.startswith(DESCRIBED)}
    columns = {
        name: {field.name: str(field.type) for field in table.schema}
        for name, table in tables.items()
    }
    if as_json:
        typer.echo(json.dumps(columns))
        return
    # What all topics have would be most of the lines, again and again.
    topics = [columns[name] for name in columns if tables[name].described.startswith(DESCRIBED)]
    shared = set.intersection(*(set(one.items()) for one in topics)) if len(topics) > 1 else set()
    for name, fields in columns.items():
        said = tables[name].described
        typer.echo(printable(f"{name}  ({said})" if said else name))
        is_topic = said.startswith(DESCRIBED)
        for column, kind in fields.items():
            if not is_topic or (column, kind) not in shared:
                typer.echo(printable(f"  {column:<20} {kind}"))
    if shared:
        typer.echo("every topic of ROS 2 also has")
        for column, kind in topics[0].items():
            if (column, kind) in shared:
                typer.echo(printable(f"  {column:<20} {kind}"))


def _columns(lines: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        typer.echo("  ".join(cells))
