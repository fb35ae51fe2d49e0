"""`zenlake sql`: ask the lake."""

from __future__ import annotations

import csv
import json
import re
import sys
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.lake import LAKE, Conf, Master, Where, sparking
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


@examples(
    "zenlake sql 'SELECT key, count(*) FROM samples GROUP BY key'",
    "zenlake sql 'SELECT * FROM pose' --format csv > pose.csv",
)
def sql(
    query: Annotated[str, typer.Argument(help="The question; - reads the standard input.")],
    where: Where = LAKE,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="table: for people · json: an object a line · csv · arrow: an IPC stream.",
        ),
    ] = Format.TABLE,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Rows that a table shows at most.")
    ] = 100,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds after which it is cancelled.")
    ] = 3600.0,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Rows that an answer has at most.")
    ] = 10_000_000,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe",
            help="Whatever Spark can do: it writes, deletes, reads any file and runs any code.",
        ),
    ] = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Query the tables of a lake in SQL.

    Tables: samples, latest, gaps, quarantine, and the typed ones of the configuration;
    `zenlake lake tables` shows their columns. A question is a single SELECT over them; what else
    Spark can do needs --unsafe.
    """
    import zenlake.lake
    from zenlake.errors import LocalError
    from zenlake.lake.gate import Gate, Limits

    asked = sys.stdin.read() if query == "-" else query
    zenlake.lake.open(where).ask(asked)  # before Spark is started for nothing
    with sparking(master, conf) as spark:
        from pyspark.errors import PySparkException

        lake = zenlake.lake.open(where, spark)
        most = limit + 1 if form is Format.TABLE else rows
        try:
            # As Arrow, whatever the form: rows would come in the time zone of this machine.
            if unsafe:
                told = lake.sql(asked).limit(most).toArrow()
            else:
                answer = Gate(lake).answer(asked, limits=Limits(timeout, most))
                told = answer.rows
                if answer.cut and form is not Format.TABLE:
                    raise LocalError(f"the answer has more than {rows:,} rows; say --rows for more")
        except PySparkException as error:
            raise LocalError(one_line(str(error))) from error
    if form is Format.ARROW:
        _arrow(told)
    elif form is Format.TABLE:
        _table(told, limit)
    else:
        _lines(told, form)


def one_line(told: str) -> str:
    """What Spark says of a question in one line: without its codes, plans and stacks."""
    first = told.strip().partition("\n")[0]
    first = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first)
    first = re.sub(r"\s*SQLSTATE: \w+", "", first)
    where = re.search(r"\(line (\d+), pos (\d+)\)|; line (\d+) pos (\d+)", told)
    first = re.sub(r"; line \d+ pos \d+;?$", "", first).strip()
    if where is not None and "line" not in first:
        line, column = (where[1], where[2]) if where[1] else (where[3], where[4])
        first = f"{first.rstrip('.')} (line {line}, column {int(column) + 1})"
    return first or "Spark refused the question and did not say why"


def _table(answer: pa.Table, limit: int) -> None:
    names = answer.column_names
    columns = [[_shown(value) for value in column.to_pylist()] for column in answer.columns]
    lines = [names, *(list(row) for row in zip(*columns, strict=True))][: limit + 1]
    widths = [min(60, max(len(line[n]) for line in lines)) for n in range(len(names))]
    for n, line in enumerate(lines):
        cells = [_cut(cell, width) for cell, width in zip(line, widths, strict=True)]
        typer.echo(" │ ".join(cells).rstrip())
        if n == 0:
            typer.echo("─┼─".join("─" * width for width in widths))
    if answer.num_rows > limit:
        typer.echo(f"… more than {limit} rows; say --limit, or --format json for all", err=True)


def _cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bytes | bytearray):
        data = bytes(value)
        try:
            text = data[:200].decode()
        except UnicodeDecodeError:
            return data[:30].hex()
        return text if text.isprintable() else data[:30].hex()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, list | dict):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(value).replace("\n", "⏎")


def _lines(answer: pa.Table, form: Format) -> None:
    names = answer.column_names
    columns = [[_plain(value) for value in column.to_pylist()] for column in answer.columns]
    rows = zip(*columns, strict=True)
    if form is Format.CSV:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(names)
        out.writerows(rows)
        return
    for row in rows:
        typer.echo(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value).hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _arrow(answer: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sys.stdout.buffer, answer.schema) as writer:
        writer.write_table(answer)
