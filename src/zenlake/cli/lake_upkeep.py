"""What keeps a lake in shape: compact, retain, vacuum, rebuild, forget, repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from zenlake.cli.shared_options import with_options

if TYPE_CHECKING:
    from zenlake.lake import Lake
    from zenlake.lake.maintain.upkeep import Progress

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


@dataclass(frozen=True, slots=True)
class LakeWork:
    """The options of a command that works on a lake with a Spark of its own."""

    where: Where = LAKE
    config: ConfigFile = None
    as_json: AsJson = False
    master: Master = "local[*]"
    conf: Conf = None

    def chosen(self, journals: list[str] | None = None) -> ChosenLake:
        """Return the lake that the options choose."""
        return choose_lake(self.where, self.config, journals)

    @contextmanager
    def opened(self, chosen: ChosenLake) -> Iterator[tuple[Lake, Progress | None]]:
        """Open the lake with a Spark of its own, and show how far the work is."""
        import zenlake.lake

        zenlake.lake.open(chosen.where)  # before Spark is started for nothing
        with sparking(self.master, self.conf) as spark, progress_bar(self.as_json) as bar:
            yield zenlake.lake.open(chosen.where, spark, chosen.settings), bar


def working_on_lake(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `LakeWork`."""
    return with_options(LakeWork, command)


@examples("zenlake lake compact")
@working_on_lake
def compact_lake(work: LakeWork) -> None:
    """Merge small files of the tables."""
    with work.opened(work.chosen()) as (lake, bar):
        _report(lake.compact(progress=bar), "files fewer", work.as_json)


@examples("zenlake lake retain", "zenlake lake retain --keys 'robot/*/camera' --older 7d")
@working_on_lake
def retain_rows(
    work: LakeWork,
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
) -> None:
    """Drop rows that are too old."""
    from zenlake.errors import ConfigError
    from zenlake.keys import KeyExpr
    from zenlake.lake import Retention
    from zenlake.lake.model.config import seconds_of

    chosen = work.chosen()
    rules = chosen.settings.retain
    if older is not None:
        rules = (Retention(str(KeyExpr.autocanonize(keys)), seconds_of(older, "--older")),)
    if not rules:
        raise ConfigError("nothing says how long to retain; give --older 7d, or a rule")
    with work.opened(chosen) as (lake, bar):
        _report(lake.retain(rules, progress=bar), "rows dropped", work.as_json)


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
@working_on_lake
def rebuild_table(work: LakeWork, name: TableName = None) -> None:
    """Make a typed table again from samples."""
    _rebuild(work, name)


@examples("zenlake lake decode robot1_part")
@working_on_lake
def decode_table(work: LakeWork, name: TableName = None) -> None:
    """Decode samples again, with a new definition or decoder.

    Another name of zenlake lake rebuild.
    """
    _rebuild(work, name)


def _rebuild(work: LakeWork, name: str | None) -> None:
    from zenlake.errors import ConfigError
    from zenlake.lake.maintain.rebuild import known_tables
    from zenlake.lake.table.location import LakeLocation

    chosen = work.chosen()
    typed = known_tables(LakeLocation(chosen.where), chosen.settings)
    if name is None or name not in typed:
        asked = "say which table" if name is None else f"there is no typed table '{name}'"
        known = ", ".join(typed) if typed else "none; --config names the file that has them"
        raise ConfigError(f"{asked}; there are {known}")
    with work.opened(chosen) as (lake, _):
        done = lake.rebuild(name)
    if work.as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    typer.echo(f"{name}: {done.rows:,} rows, {done.before:,} before")
    typer.echo(f"in quarantine: {done.refused:,}, {done.refused_before:,} before")


@examples("zenlake lake forget 'person/anna/**' --journal flight")
@working_on_lake
def forget_keys(
    work: LakeWork,
    keys: Annotated[str, typer.Argument(metavar="KEYEXPR", help="The keys.")],
    journals: Journals = None,
) -> None:
    """Take keys out of journal and tables for good."""
    chosen = work.chosen(journals)
    with work.opened(chosen) as (lake, _):
        gone = lake.forget(keys, *chosen.journals)
    _report(gone, "rows forgotten", work.as_json)


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
    from zenlake.lake.table.location import LakeLocation

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
