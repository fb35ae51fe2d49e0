"""`zenlake lake`: fill a lake from a journal, look at it, keep it in shape."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import note
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenlake.lake import LakeConfig
    from zenlake.lake.upkeep import Progress

LAKE = "zenlake-data/lake"
JOURNAL = "zenlake-data/journal"

Where = Annotated[str, typer.Option("--lake", metavar="DIR", help="Where the tables are.")]
Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="The Spark to use, e.g. spark://host:7077.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given often."),
]


class Action(StrEnum):
    """What can be done with a lake."""

    RUN = "run"
    COMPACT = "compact"
    VACUUM = "vacuum"
    RETAIN = "retain"
    STATUS = "status"
    TABLES = "tables"


@examples(
    "zenlake lake run --journal flight --lake tables",
    "zenlake lake status",
    "zenlake lake retain --keys 'robot/*/camera' --older 7d",
)
def lake(
    action: Annotated[
        Action,
        typer.Argument(
            help="run: fill the tables from a journal · compact: merge small files · vacuum: "
            "delete files that no table needs · retain: drop what is too old · status: how large "
            "and how far each table is · tables: their columns."
        ),
    ],
    where: Where = LAKE,
    journal: Annotated[
        str, typer.Option("--journal", metavar="DIR", help="The journal to read.")
    ] = JOURNAL,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Typed tables, retention, sizes; lake.json5 in the lake's folder, if not said.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when all is read.")] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Shortest time between two commits.")
    ] = "1s",
    keys: Annotated[
        str, typer.Option("--keys", metavar="KEYEXPR", help="retain: of these keys.")
    ] = "**",
    older: Annotated[
        str | None,
        typer.Option(
            "--older",
            metavar="TIME",
            help="retain: what was received longer ago, else what the configuration says; "
            "vacuum: files of at least this age.",
            show_default=False,
        ),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="vacuum: only say what.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts as JSON.")] = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Turn a journal into open tables, and keep them in shape.

    Each sample is in each table once, whoever is killed when. The tables are Delta tables, which
    Spark, DuckDB, delta-rs, Trino and others read; `zenlake sql` asks them.
    """
    settings = configuration(config, where)
    if settings.path is not None and where == LAKE:
        where = settings.path
    if settings.journal is not None and journal == JOURNAL:
        journal = settings.journal
    if action is Action.RUN:
        _run(where, journal, settings, once, every, as_json, master, conf)
    elif action is Action.STATUS:
        _status(where, journal, as_json)
    elif action is Action.TABLES:
        _tables(where, as_json)
    elif action is Action.VACUUM:
        _vacuum(where, settings, older, dry, as_json)
    else:
        _keep(action, where, settings, keys, older, as_json, master, conf)


def configuration(told: Path | None, where: str) -> LakeConfig:
    """The configuration in a file, or in `lake.json5` of the lake's own folder."""
    from zenlake.errors import ConfigError
    from zenlake.lake import LakeConfig, read_config

    file = told or Path(where) / "lake.json5"
    if told is None and not file.is_file():
        return LakeConfig()
    try:
        return read_config(file.read_text("utf-8"), str(file))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error


@contextmanager
def sparking(master: str, conf: list[str] | None) -> Iterator[SparkSession]:
    """Spark for as long as the block runs."""
    from zenlake.errors import ConfigError
    from zenlake.spark.session import spark_session, stop_spark

    settings: dict[str, str] = {}
    for pair in conf or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--conf {pair}: write KEY=VALUE")
        settings[name] = value
    spark = spark_session(master=master, conf=settings, progress=_starting)
    try:
        yield spark
    finally:
        stop_spark(spark)


def _starting(words: str) -> None:
    # `zenlake up` shows what its lake says while it starts.
    if sys.stderr.isatty() or "ZENLAKE_SUPERVISED" in os.environ:
        note(words)


def _run(
    where: str,
    journal: str,
    settings: LakeConfig,
    once: bool,
    every: str,
    as_json: bool,
    master: str,
    conf: list[str] | None,
) -> None:
    from zenlake.journal import Journal
    from zenlake.lake import Pipeline
    from zenlake.lake.config import seconds_of
    from zenlake.lake.pipeline import Step
    from zenlake.lake.run import Ran, run
    from zenlake.lake.tasks import SparkTasks

    pause = seconds_of(every, "--every")
    if once:
        Journal.open(journal)  # before Spark is started for nothing
    stop = threading.Event()
    with sparking(master, conf) as spark, _stopping(stop):
        if not _there(journal, stop):
            return
        tasks = SparkTasks(spark)
        tasks.warm()
        pipeline = Pipeline(where, journal, tasks, settings)
        if as_json:
            typer.echo(json.dumps({"ready": True}))
        else:
            note(f"the journal {journal} flows into the lake {where}; Ctrl-C ends it")
        with _bar(as_json) as bar:

            def tell(done: Ran, step: Step) -> None:
                if as_json:
                    facts = {"rows": step.rows, "behind": step.behind, "lost": step.lost}
                    facts |= {"quarantined": step.quarantined}
                    typer.echo(json.dumps(facts | {"seconds": round(step.seconds, 3)}))
                elif bar is not None:
                    bar(f"{done.rows:,} rows", done.rows, done.rows + step.behind)

            done = run(pipeline, tasks, stop=stop, once=once, every=pause, tell=tell)
    if not as_json:
        told = f"{done.rows:,} rows in {done.steps} steps"
        if done.quarantined:
            told += f", {done.quarantined:,} in quarantine"
        if done.lost:
            told += f"; {done.lost:,} rows had left the journal before they were read"
        note(told)


def _there(journal: str, stop: threading.Event) -> bool:
    """Wait until somebody records; whether that came before the end."""
    from zenlake.errors import JournalError
    from zenlake.journal import Journal

    told = False
    while not stop.is_set():
        try:
            Journal.open(journal)
        except JournalError:
            if not told:
                told = True
                note(f"waiting for a journal in {journal}; start `zenlake record --to {journal}`")
            stop.wait(0.2)
        else:
            return True
    return False


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """An interruption lets the step at hand finish; a second one does not."""

    def asked(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _bar(quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on a terminal; elsewhere nothing."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as shown:
        task = shown.add_task("", total=1)

        def tell(what: str, done: int, total: int) -> None:
            shown.update(task, description=what, completed=done, total=max(1, total))

        yield tell


def _keep(
    action: Action,
    where: str,
    settings: LakeConfig,
    keys: str,
    older: str | None,
    as_json: bool,
    master: str,
    conf: list[str] | None,
) -> None:
    import zenlake.lake
    from zenlake.errors import ConfigError
    from zenlake.keys import KeyExpr
    from zenlake.lake import Retention
    from zenlake.lake.config import seconds_of

    rules = settings.retain
    if action is Action.RETAIN:
        if older is not None:
            rules = (Retention(str(KeyExpr.autocanonize(keys)), seconds_of(older, "--older")),)
        if not rules:
            raise ConfigError("nothing says how long to retain; give --older 7d, or a rule")
    zenlake.lake.open(where)  # before Spark is started for nothing
    with sparking(master, conf) as spark, _bar(as_json) as bar:
        lake = zenlake.lake.open(where, spark, settings)
        if action is Action.COMPACT:
            _report(lake.compact(progress=bar), "files fewer", as_json)
        else:
            _report(lake.retain(rules, progress=bar), "rows dropped", as_json)


def _vacuum(where: str, settings: LakeConfig, older: str | None, dry: bool, as_json: bool) -> None:
    import zenlake.lake
    from zenlake.lake.config import seconds_of

    lake = zenlake.lake.open(where, config=settings)
    age = None if older is None else seconds_of(older, "--older")
    gone = {name: len(files) for name, files in lake.vacuum(age, dry=dry).items()}
    _report(gone, "files would be deleted" if dry else "files deleted", as_json)


def _status(where: str, journal: str, as_json: bool) -> None:
    import zenlake.lake
    from zenlake.errors import ZError
    from zenlake.journal import Journal

    lake = zenlake.lake.open(where)
    facts = lake.status()
    behind: dict[str, int] = {}
    try:
        heard = Journal.open(journal)
        ends = heard.watermark().offsets
    except ZError:
        heard, ends = None, ()
    for one, table in zip(facts, lake.tables().values(), strict=True):
        if heard is not None and table.name != "quarantine":
            behind[table.name] = sum(
                max(0, end - (table.committed(f"{heard.id}/{p}") or 0))
                for p, end in enumerate(ends)
            )
            one["behind"] = behind[table.name]
    if as_json:
        typer.echo(json.dumps(facts))
        return
    lines = [("table", "rows", "files", "MB", "version", "behind")]
    for one in facts:
        lines.append(
            (
                one["table"],
                f"{one['rows']:,}",
                str(one["files"]),
                f"{one['bytes'] / 1e6:,.1f}",
                str(one["version"]),
                f"{one['behind']:,}" if "behind" in one else "-",
            )
        )
    _columns(lines)


def _tables(where: str, as_json: bool) -> None:
    import zenlake.lake

    found = zenlake.lake.open(where).tables()
    columns = {
        name: {field.name: str(field.type) for field in table.schema}
        for name, table in found.items()
    }
    if as_json:
        typer.echo(json.dumps(columns))
        return
    for name, fields in columns.items():
        typer.echo(name)
        for column, kind in fields.items():
            typer.echo(f"  {column:<20} {kind}")


def _report(counts: dict[str, int], what: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(counts))
        return
    for name, count in counts.items():
        typer.echo(f"{name}: {count:,} {what}")


def _columns(lines: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    for line in lines:
        cells: list[Any] = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        typer.echo("  ".join(cells))
