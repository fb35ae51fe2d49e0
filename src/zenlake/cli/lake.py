"""`zenlake lake`: fill a lake from a journal, look at it, keep it in shape."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.lake_run import Serving, progress_bar, run_lake
from zenlake.cli.own_spark import sparking
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.lake import LakeConfig

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


class LakeAction(StrEnum):
    """What can be done with a lake."""

    RUN = "run"
    COMPACT = "compact"
    VACUUM = "vacuum"
    RETAIN = "retain"
    REBUILD = "rebuild"
    DECODE = "decode"
    FORGET = "forget"
    REPAIR = "repair"
    STATUS = "status"
    TABLES = "tables"
    VIEW = "view"
    ALERT = "alert"


@examples(
    "zenlake lake run --journal flight --lake tables",
    "zenlake lake status",
    "zenlake lake retain --keys 'robot/*/camera' --older 7d",
    "zenlake lake rebuild battery",
    "zenlake lake forget 'person/anna/**' --journal flight",
    "zenlake lake repair --dry-run",
)
def lake(
    action: Annotated[
        LakeAction,
        typer.Argument(
            help="run: fill the tables from a journal · compact: merge small files · vacuum: "
            "delete files that no table needs · retain: drop what is too old · rebuild: make a "
            "typed table again from samples · decode: the same, after a new definition or "
            "decoder · forget: take keys out of journal and tables for good · "
            "repair: say and do what can be done for damaged "
            "tables · status: how large and how far each table is · "
            "tables: their columns · view, alert: questions that a running lake keeps answering, "
            "see zenlake lake view --help."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="rebuild, decode, repair: the table; forget: the key expression.",
            show_default=False,
        ),
    ] = None,
    where: Where = LAKE,
    journals: Annotated[
        list[str] | None,
        typer.Option(
            "--journal",
            metavar="DIR",
            help=f"The journal to read, {JOURNAL} if not said; several feed one lake. "
            "repair: none, if it is gone.",
            show_default=False,
        ),
    ] = None,
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
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="Interval between two commits. If not given, the load decides: one second after "
            "a pause, ten in a steady flow.",
            show_default=False,
        ),
    ] = None,
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
    dry: Annotated[bool, typer.Option("--dry-run", help="vacuum, repair: only say what.")] = False,
    endpoints: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--connect",
            metavar="ENDPOINT",
            help="run: the router to answer on, e.g. tcp/127.0.0.1:7447; without one only programs "
            "on this machine are answered.",
            show_default=False,
        ),
    ] = None,
    spark_connect: Annotated[
        str | None,
        typer.Option(
            "--spark-connect",
            metavar="[HOST:]PORT",
            help="run: let Spark's clients in, at sc://127.0.0.1:PORT.",
            show_default=False,
        ),
    ] = None,
    iceberg: Annotated[
        bool,
        typer.Option(
            "--iceberg", help="run: publish tables of Iceberg too, as iceberg: true does."
        ),
    ] = False,
    ros: Annotated[
        bool, typer.Option("--ros", help="tables: those of topics of ROS 2 alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts as JSON.")] = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Turn a journal into open tables, and keep them in shape.

    Each sample is in each table once, whoever is killed when. The tables are Delta tables, which
    Spark, DuckDB, delta-rs, Trino and others read; `zenlake sql` asks them.
    """
    if action in (LakeAction.VIEW, LakeAction.ALERT):
        raise typer.BadParameter(f"write what to do right after: zenlake lake {action} create …")
    settings = configuration(config, where)
    if settings.path is not None and where == LAKE:
        where = settings.path
    journals = journals or [settings.journal or JOURNAL]
    if action is LakeAction.RUN:
        serving = None if once else Serving(tuple(endpoints or ()), spark_connect)
        settings = replace(settings, iceberg=settings.iceberg or iceberg)
        run_lake(where, journals, settings, serving, every, as_json, master, conf)
    elif action is LakeAction.STATUS:
        _status(where, journals, as_json)
    elif action is LakeAction.TABLES:
        _tables(where, ros, as_json)
    elif action is LakeAction.VACUUM:
        _vacuum(where, settings, older, dry, as_json)
    elif action is LakeAction.REPAIR:
        _repair(where, journals, name, dry, as_json)
    elif action is LakeAction.FORGET:
        _forget(where, journals, settings, name, as_json, master, conf)
    elif action in (LakeAction.REBUILD, LakeAction.DECODE):
        _rebuild(where, settings, name, as_json, master, conf)
    else:
        _keep(action, where, settings, keys, older, as_json, master, conf)


def _repair(where: str, journals: list[str], name: str | None, dry: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from zenlake.lake.maintain.repair import repair
    from zenlake.lake.model.location import LakeLocation

    place = LakeLocation(where)
    known = None if journals == ["none"] else journals
    names = [one for one in place.folders() if not one.startswith(".")]
    for one in [name] if name is not None else names:
        report = repair(place, one, journals=known, dry=dry)
        if as_json:
            typer.echo(json.dumps(asdict(report)))
            continue
        typer.echo(f"{one}: {'; '.join(report.found) or 'nothing is wrong'}")
        for done in report.done:
            typer.echo(f"  {'would be done' if dry else 'done'}: {done}")


def configuration(path: Path | None, where: str) -> LakeConfig:
    """The configuration in a file, or in `lake.json5` of the lake's own folder."""
    from zenlake.errors import ConfigError
    from zenlake.lake import LakeConfig, read_config

    file = path or Path(where) / "lake.json5"
    if path is None and not file.is_file():
        return LakeConfig()
    try:
        return read_config(file.read_text("utf-8"), str(file))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error


def _keep(
    action: LakeAction,
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
    from zenlake.lake.model.config import seconds_of

    rules = settings.retain
    if action is LakeAction.RETAIN:
        if older is not None:
            rules = (Retention(str(KeyExpr.autocanonize(keys)), seconds_of(older, "--older")),)
        if not rules:
            raise ConfigError("nothing says how long to retain; give --older 7d, or a rule")
    zenlake.lake.open(where)  # before Spark is started for nothing
    with sparking(master, conf) as spark, progress_bar(as_json) as bar:
        lake = zenlake.lake.open(where, spark, settings)
        if action is LakeAction.COMPACT:
            _report(lake.compact(progress=bar), "files fewer", as_json)
        else:
            _report(lake.retain(rules, progress=bar), "rows dropped", as_json)


def _vacuum(where: str, settings: LakeConfig, older: str | None, dry: bool, as_json: bool) -> None:
    import zenlake.lake
    from zenlake.lake.model.config import seconds_of

    lake = zenlake.lake.open(where, config=settings)
    age = None if older is None else seconds_of(older, "--older")
    gone = {name: len(files) for name, files in lake.vacuum(age, dry=dry).items()}
    _report(gone, "files would be deleted" if dry else "files deleted", as_json)


def _forget(
    where: str,
    journals: list[str],
    settings: LakeConfig,
    keys: str | None,
    as_json: bool,
    master: str,
    conf: list[str] | None,
) -> None:
    import zenlake.lake

    if keys is None:
        raise typer.BadParameter("say which keys: zenlake lake forget 'person/anna/**'")
    with sparking(master, conf) as spark:
        gone = zenlake.lake.open(where, spark, settings).forget(keys, *journals)
    if as_json:
        typer.echo(json.dumps(gone))
    for name, rows in () if as_json else gone.items():
        typer.echo(f"{name}: {rows:,} rows forgotten")


def _rebuild(
    where: str,
    settings: LakeConfig,
    name: str | None,
    as_json: bool,
    master: str,
    conf: list[str] | None,
) -> None:
    import zenlake.lake
    from zenlake.errors import ConfigError
    from zenlake.lake.decode.ros2_tables import Ros2Tables
    from zenlake.lake.model.location import LakeLocation

    topics = Ros2Tables(LakeLocation(where), settings.tables).found
    typed = [*(spec.name for spec in settings.tables), *topics]
    if name is None or name not in typed:
        asked = "say which table" if name is None else f"there is no typed table '{name}'"
        known = ", ".join(typed) if typed else "none; --config names the file that has them"
        raise ConfigError(f"{asked}; the configuration has {known}")
    zenlake.lake.open(where)  # before Spark is started for nothing
    with sparking(master, conf) as spark:
        done = zenlake.lake.open(where, spark, settings).rebuild(name)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    typer.echo(f"{name}: {done.rows:,} rows, {done.before:,} before")
    typer.echo(f"in quarantine: {done.refused:,}, {done.refused_before:,} before")


def _status(where: str, journals: list[str], as_json: bool) -> None:
    import zenlake.lake
    from zenlake.errors import ZError
    from zenlake.journal import Journal

    heard: list[Journal] = []
    for journal in journals:
        with suppress(ZError):
            heard.append(Journal.open(journal))
    status = zenlake.lake.open(where).status(*heard)
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
        typer.echo(f"last error  {when:%Y-%m-%d %H:%M:%S} {status.error}")
    for problem in status.problems:
        typer.echo(f"problem     {problem}")


def _tables(where: str, ros: bool, as_json: bool) -> None:
    import zenlake.lake
    from zenlake.lake.decode.ros2_tables import DESCRIBED

    tables = zenlake.lake.open(where).tables()
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
        typer.echo(f"{name}  ({said})" if said else name)
        is_topic = said.startswith(DESCRIBED)
        for column, kind in fields.items():
            if not is_topic or (column, kind) not in shared:
                typer.echo(f"  {column:<20} {kind}")
    if shared:
        typer.echo("every topic of ROS 2 also has")
        for column, kind in topics[0].items():
            if (column, kind) in shared:
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
