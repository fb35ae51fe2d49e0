"""What keeps a lake in shape: compact, retain, vacuum, rebuild, forget, repair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.lake_options import (
    JOURNAL,
    LAKE,
    AsJson,
    ChosenLake,
    Conf,
    ConfigFile,
    Journals,
    Master,
    Where,
    choose_lake,
)
from zenlake.cli.lake_run import progress_bar
from zenlake.cli.own_spark import sparking
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.lake import Lake

__all__ = [
    "compact_lake",
    "decode_table",
    "forget_keys",
    "rebuild_table",
    "repair_lake",
    "retain_rows",
    "vacuum_lake",
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
TableName = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="The typed table.", show_default=False),
]


@contextmanager
def _sparked(chosen: ChosenLake, master: str, conf: list[str] | None) -> Iterator[Lake]:
    """Open the lake with a Spark of its own."""
    import zenlake.lake

    zenlake.lake.open(chosen.where)  # before Spark is started for nothing
    with sparking(master, conf) as spark:
        yield zenlake.lake.open(chosen.where, spark, chosen.settings)


@examples("zenlake lake compact")
def compact_lake(
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Merge small files of the tables."""
    chosen = choose_lake(where, config)
    with _sparked(chosen, master, conf) as lake, progress_bar(as_json) as bar:
        _report(lake.compact(progress=bar), "files fewer", as_json)


@examples("zenlake lake retain", "zenlake lake retain --keys 'robot/*/camera' --older 7d")
def retain_rows(
    keys: Annotated[
        str,
        typer.Option("--keys", metavar="KEYEXPR", help="With --older: of these keys."),
    ] = "**",
    older: Annotated[
        str | None,
        typer.Option(
            "--older",
            metavar="TIME",
            help="What was received longer ago; if not said, the rules of the configuration.",
            show_default=False,
        ),
    ] = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Drop rows that are too old."""
    from zenlake.errors import ConfigError
    from zenlake.keys import KeyExpr
    from zenlake.lake import Retention
    from zenlake.lake.model.config import seconds_of

    chosen = choose_lake(where, config)
    rules = chosen.settings.retain
    if older is not None:
        rules = (Retention(str(KeyExpr.autocanonize(keys)), seconds_of(older, "--older")),)
    if not rules:
        raise ConfigError("nothing says how long to retain; give --older 7d, or a rule")
    with _sparked(chosen, master, conf) as lake, progress_bar(as_json) as bar:
        _report(lake.retain(rules, progress=bar), "rows dropped", as_json)


@examples("zenlake lake vacuum --dry-run", "zenlake lake vacuum --older 1h")
def vacuum_lake(
    older: Annotated[
        str | None,
        typer.Option(
            "--older",
            metavar="TIME",
            help="Files of at least this age; if not said, what the configuration says.",
            show_default=False,
        ),
    ] = None,
    dry: DryRun = False,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete files that no table needs."""
    import zenlake.lake
    from zenlake.lake.model.config import seconds_of

    chosen = choose_lake(where, config)
    lake = zenlake.lake.open(chosen.where, config=chosen.settings)
    age = None if older is None else seconds_of(older, "--older")
    gone = {name: len(files) for name, files in lake.vacuum(age, dry=dry).items()}
    _report(gone, "files would be deleted" if dry else "files deleted", as_json)


@examples("zenlake lake rebuild battery")
def rebuild_table(
    name: TableName = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Make a typed table again from samples."""
    from zenlake.errors import ConfigError
    from zenlake.lake.decode.ros2_tables import Ros2Tables
    from zenlake.lake.model.location import LakeLocation

    chosen = choose_lake(where, config)
    topics = Ros2Tables(LakeLocation(chosen.where), chosen.settings.tables).found
    typed = [*(spec.name for spec in chosen.settings.tables), *topics]
    if name is None or name not in typed:
        asked = "say which table" if name is None else f"there is no typed table '{name}'"
        known = ", ".join(typed) if typed else "none; --config names the file that has them"
        raise ConfigError(f"{asked}; the configuration has {known}")
    with _sparked(chosen, master, conf) as lake:
        done = lake.rebuild(name)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    typer.echo(f"{name}: {done.rows:,} rows, {done.before:,} before")
    typer.echo(f"in quarantine: {done.refused:,}, {done.refused_before:,} before")


@examples("zenlake lake decode robot1_part")
def decode_table(
    name: TableName = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Decode samples again, with a new definition or decoder.

    Another name of zenlake lake rebuild.
    """
    rebuild_table(name, where, config, as_json, master, conf)


@examples("zenlake lake forget 'person/anna/**' --journal flight")
def forget_keys(
    keys: Annotated[str, typer.Argument(metavar="KEYEXPR", help="The keys.")],
    where: Where = LAKE,
    journals: Journals = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Take keys out of journal and tables for good."""
    chosen = choose_lake(where, config, journals)
    with _sparked(chosen, master, conf) as lake:
        gone = lake.forget(keys, *chosen.journals)
    _report(gone, "rows forgotten", as_json)


@examples("zenlake lake repair --dry-run", "zenlake lake repair samples --journal none")
def repair_lake(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="The table; else all.", show_default=False),
    ] = None,
    dry: DryRun = False,
    where: Where = LAKE,
    journals: Annotated[
        list[str] | None,
        typer.Option(
            "--journal",
            metavar="DIR",
            help=f"The journal that feeds the lake, {JOURNAL} if not said; may be given often. "
            "none, if it is gone.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say and do what can be done for damaged tables."""
    from zenlake.lake.maintain.repair import repair
    from zenlake.lake.model.location import LakeLocation

    chosen = choose_lake(where, config, journals)
    place = LakeLocation(chosen.where)
    known = None if chosen.journals == ["none"] else chosen.journals
    names = [one for one in place.folders() if not one.startswith(".")]
    for one in [name] if name is not None else names:
        report = repair(place, one, journals=known, dry=dry)
        if as_json:
            typer.echo(json.dumps(asdict(report)))
            continue
        typer.echo(f"{one}: {'; '.join(report.found) or 'nothing is wrong'}")
        for done in report.done:
            typer.echo(f"  {'would be done' if dry else 'done'}: {done}")


def _report(counts: dict[str, int], what: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(counts))
        return
    for name, count in counts.items():
        typer.echo(f"{name}: {count:,} {what}")
