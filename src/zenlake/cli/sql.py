"""`zenlake sql`: ask the lake."""

from __future__ import annotations

import csv
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import note
from zenlake.cli.lake_options import LAKE, Conf, Master, Where
from zenlake.cli.own_spark import Announcing, sparking
from zenlake.cli.pages import examples
from zenlake.printable import json_text, printable, printable_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from zenlake.lake.query.executor import SqlExecutor
    from zenlake.lake_client import LocalRequest


NARROWEST = 6
LOOK_EVERY_SECONDS = 0.2
MOST_BYTES = 4 << 30
"""Of an answer whose Spark was started for it: --rows is the bound that users set."""


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


@examples(
    "zenlake sql",
    "zenlake sql 'SELECT key, count(*) FROM samples GROUP BY key'",
    "zenlake sql 'SELECT * FROM pose' --format csv > pose.csv",
    "zenlake sql 'SELECT time, x FROM pose ORDER BY time' --plot",
    "zenlake sql 'SELECT count(*) FROM samples' --asof 2026-11-16T08:00",
)
def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="The question; - reads the standard input. Without one, a shell.",
            show_default=False,
        ),
    ] = None,
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
    asof: Annotated[
        str | None,
        typer.Option(
            "--asof",
            metavar="TIME",
            help="The tables as they were then: 2026-11-16T08:00 (UTC, or with a zone).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        bool,
        typer.Option(
            "--plot",
            help="Draw the last column over the first: a line over numbers and times, else bars.",
        ),
    ] = False,
    own: Annotated[
        bool,
        typer.Option("--own-spark", help="Start a Spark, though a lake runs that could be asked."),
    ] = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Query the tables of a lake in SQL.

    Tables: samples, latest, gaps, quarantine, and the typed ones of the configuration;
    `zenlake lake tables` shows their columns. A question is a single SELECT over them; what else
    Spark can do needs --unsafe. If `zenlake up` or `zenlake lake run` runs here, it is asked; a
    lake that `zenlake up` is starting is waited for. Otherwise a Spark is started for the
    question, which takes some seconds.
    """
    if master.startswith("sc://"):
        from zenlake.errors import LocalError

        raise LocalError(
            "questions are judged in the Java of their Spark, and Spark Connect hides it; ask "
            "without --master on a machine that sees the lake"
        )
    own = own or unsafe or asof is not None or master != "local[*]" or bool(conf)
    if query is None and sys.stdin.isatty():
        from zenlake.cli.sql_shell import shell

        shell(where, SqlOptions(own, unsafe, timeout, rows, master, tuple(conf or ()), asof), limit)
        return
    asked = sys.stdin.read() if query in (None, "-") else str(query)
    options = SqlOptions(own, unsafe, timeout, rows, master, tuple(conf or ()), asof)
    first = limit + 1 if form is Format.TABLE and not plot else None
    answered = None if own else answer_of_running_lake(where, asked, options, first)
    if answered is None:
        with asker(where, options) as answer:
            answered = answer(asked, first)
    if plot:
        from zenlake.cli.plot import drawn

        typer.echo(printable_lines(drawn(answered)))
    elif form is Format.ARROW:
        _arrow(answered)
    elif form is Format.TABLE:
        show_table(answered, limit)
    else:
        _lines(answered, form)


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """How questions are asked, and how much they may cost."""

    own: bool
    unsafe: bool
    seconds: float
    rows: int
    master: str
    conf: tuple[str, ...]
    asof: str | None = None


def answer_of_running_lake(
    where: str, query: str, options: SqlOptions, first: int | None
) -> pa.Table | None:
    """The answer of the lake that runs in this folder; None if none does."""
    request = {
        "do": "sql",
        "sql": query,
        "first": first,
        "seconds": options.seconds,
        "rows": options.rows,
    }
    asking = _ask(where, request)
    if asking is None:
        return None
    with asking:
        return asking.table()


def _ask(where: str, request: dict[str, Any]) -> LocalRequest | None:
    """Ask the lake that runs in this folder, when it is up if it is starting; None if none does.

    A second Spark beside one that is starting would make both of them slow.
    """
    from zenlake.lake_client import ask

    asking = ask(where, request)
    if asking is None and _is_starting(where):
        with Announcing() as tell:
            tell(f"the lake in {where} is starting; it is asked as soon as it is up")
            while asking is None and _is_starting(where):
                time.sleep(LOOK_EVERY_SECONDS)
                asking = ask(where, request)
        asking = asking or ask(where, request)
    return asking


def _is_starting(where: str) -> bool:
    """Return True if the lake in this folder is that of a `zenlake up` which is starting it."""
    from zenlake.supervise.parts import State
    from zenlake.supervise.pid_file import page_of, running
    from zenlake.supervise.plan import LAKE as PART

    data = Path(where).expanduser().parent
    if not running(data):
        return False
    parts = (page_of(data) or {}).get("parts", ())
    states = {part["name"]: part["state"] for part in parts}
    return states.get(PART) in (State.WAITING, State.STARTING)


@contextmanager
def asker(where: str, options: SqlOptions) -> Iterator[Callable[[str, int | None], pa.Table]]:
    """A Spark of our own that answers questions, started when the first one needs it."""
    import zenlake.lake
    from zenlake.errors import LocalError

    with ExitStack() as held:
        opened: list[SqlExecutor] = []

        def answer(query: str, first: int | None) -> pa.Table:
            from pyspark.errors import PySparkException

            from zenlake.lake.query.executor import SqlExecutor, SqlQuestion, one_line
            from zenlake.lake.query.limits import QueryLimits
            from zenlake.lake.query.planner import count_of

            if not opened:
                # Before Spark is started for nothing.
                lake = zenlake.lake.open(where)
                lake.ask(query, options.asof)
                counted = count_of(lake.catalog, query) if options.asof is None else None
                if counted is not None:
                    return counted
                if not options.own:
                    note(f"no lake runs in {where}; a Spark is started for this question")
                spark = held.enter_context(sparking(options.master, list(options.conf)))
                opened.append(SqlExecutor(zenlake.lake.open(where, spark)))
                held.callback(opened[0].close)
            if options.unsafe:
                most = options.rows if first is None else first
                try:
                    # As Arrow, whatever the form: rows would come in this machine's time zone.
                    return opened[0].lake.sql(query, asof=options.asof).limit(most).toArrow()
                except PySparkException as error:
                    raise LocalError(one_line(str(error))) from error
            limits = QueryLimits(options.seconds, options.rows, bytes=MOST_BYTES)
            question = SqlQuestion(query, limits, first=first, asof=options.asof)
            return opened[0].run(question)

        yield answer


def show_table(answer: pa.Table, limit: int) -> None:
    """Print rows as a table that fits the terminal."""
    names = [_shown(name) for name in answer.column_names]
    columns = [[_shown(value) for value in column.to_pylist()] for column in answer.columns]
    lines = [names, *(list(row) for row in zip(*columns, strict=True))][: limit + 1]
    widths = fitting([max(len(line[n]) for line in lines) for n in range(len(names))])
    for n, line in enumerate(lines):
        cells = [_cut(cell, width) for cell, width in zip(line, widths, strict=True)]
        typer.echo(" │ ".join(cells).rstrip())
        if n == 0:
            typer.echo("─┼─".join("─" * width for width in widths))
    if answer.num_rows > limit:
        typer.echo(f"… more than {limit} rows; say --limit, or --format json for all", err=True)


def fitting(wanted: list[int], room: int | None = None) -> list[int]:
    """The widths of columns: as wide as they want, the widest cut until the line fits."""
    if room is None:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    widths = [min(60, width) for width in wanted]
    room -= 3 * (len(widths) - 1)
    while room > 0 and sum(widths) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


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
        from zenlake.lake.model.json_values import plain

        return json_text(plain(value))
    return printable(str(value).replace("\n", "⏎"))


def _lines(answer: pa.Table, form: Format) -> None:
    from zenlake.lake.model.json_values import plain

    names = answer.column_names
    columns = [[plain(value) for value in column.to_pylist()] for column in answer.columns]
    rows = zip(*columns, strict=True)
    if form is Format.CSV:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(names)
        out.writerows(rows)
        return
    for row in rows:
        typer.echo(json_text(dict(zip(names, row, strict=True))))


def _arrow(answer: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sys.stdout.buffer, answer.schema) as writer:
        writer.write_table(answer)
