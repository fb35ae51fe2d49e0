"""`zenlake lake table` and `zenlake lake suggest`: the typed tables of a lake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.lake_options import LAKE, AsJson, ConfigFile, Where, configuration
from zenlake.cli.own_spark import sparking
from zenlake.cli.pages import examples, group, page
from zenlake.printable import printable

if TYPE_CHECKING:
    from zenlake.lake.ingest.spark_tasks import Tasks

__all__ = ["suggest_tables", "table"]

table = group("Typed tables, made by themselves or by command.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The table.")]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="ENCODING",
        help="What the payloads are, whatever they say: application/json, application/cbor, …",
        show_default=False,
    ),
]
ColumnKinds = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=KIND",
        help="The kind of a column, e.g. percent=double; may be repeated.",
        show_default=False,
    ),
]
Comment = Annotated[
    str | None,
    typer.Option("--comment", metavar="TEXT", help="What the table is.", show_default=False),
]


def _perform(where: str, config: Path | None, request: dict[str, Any]) -> Any:
    """Ask the lake that runs in this folder; if none does, do it here with a Spark of its own."""
    from zenlake.lake_client import ask

    asking = ask(where, {"do": "table", **request})
    if asking is not None:
        with asking:
            return asking.fact()
    from zenlake.lake.decode.table_store import TableStore
    from zenlake.lake.maintain.table_changes import TableChanges
    from zenlake.lake.service.table_commands import perform
    from zenlake.lake.table.location import LakeLocation

    place = LakeLocation(where)
    changes = TableChanges(place, configuration(config, where), TableStore(place))
    with _tasks() as tasks:
        return perform(changes, request, tasks)


@contextmanager
def _tasks() -> Iterator[Callable[[], Tasks]]:
    """Give what starts a Spark when it is needed, and ends it then."""
    from contextlib import ExitStack

    from zenlake.lake.ingest.spark_tasks import tasks_on

    with ExitStack() as held:

        def started() -> Tasks:
            return tasks_on(held.enter_context(sparking("local[*]", None)))

        yield started


def _changed(done: Any, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(done))
        return
    held = f", {done['refused']:,} in quarantine" if done["refused"] else ""
    typer.echo(printable(f"{done['name']}  {done['format']}  {done['rows']:,} rows{held}"))


def _members(
    encoding: str | None, columns: list[str] | None, comment: str | None
) -> dict[str, Any]:
    from zenlake.errors import ConfigError

    given: dict[str, Any] = {}
    if encoding is not None:
        given["encoding"] = encoding
    if comment is not None:
        given["comment"] = comment
    kinds: dict[str, str] = {}
    for one in columns or ():
        name, equals, kind = one.partition("=")
        if not equals:
            raise ConfigError(f"--column {one}: write NAME=KIND, such as percent=double")
        kinds[name] = kind
    if kinds:
        given["columns"] = kinds
    return given


@page(table, "list", "zenlake lake table list")
def list_tables(where: Where = LAKE, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List the tables that commands may change, with the keys of each."""
    for one in _perform(where, config, {"action": "list"}):
        if as_json:
            typer.echo(json.dumps(one))
        else:
            by = "found by itself" if one["found"] else "made by command"
            typer.echo(printable(f"{one['name']}  {one['format']}  {by}"))


@page(
    table,
    "add",
    "zenlake lake table add temp 'home/${room}/temp' --column number=double",
)
def add_table(
    name: Name,
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="Its keys: robot/${id}/pose; each ${…} becomes a column."
        ),
    ],
    encoding: Encoding = None,
    columns: ColumnKinds = None,
    comment: Comment = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of the keys of a format, with all of history."""
    members = {"format": form, **_members(encoding, columns, comment)}
    _changed(_perform(where, config, {"action": "add", "name": name, "table": members}), as_json)


@page(table, "set", "zenlake lake table set battery --column percent=double")
def set_table(
    name: Name,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Its keys.", show_default=False),
    ] = None,
    encoding: Encoding = None,
    columns: ColumnKinds = None,
    comment: Comment = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Change how payloads of a table are read, and read all again."""
    from zenlake.errors import ConfigError

    members = _members(encoding, columns, comment) | ({} if form is None else {"format": form})
    if not members:
        raise ConfigError("say what shall change: --format, --encoding, --column or --comment")
    _changed(_perform(where, config, {"action": "set", "name": name, "table": members}), as_json)


@page(table, "rename", "zenlake lake table rename line_temp motor_temp")
def rename_table(
    name: Name,
    to: Annotated[str, typer.Argument(metavar="TO", help="Its name from now on.")],
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Give a table another name; it is made again from samples."""
    _changed(_perform(where, config, {"action": "rename", "name": name, "to": to}), as_json)


@page(table, "merge", "zenlake lake table merge temp home_temp")
def merge_tables(
    name: Name,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The table that is removed.")],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="The keys of both, if that does not follow from theirs.",
            show_default=False,
        ),
    ] = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a table have the keys of another one too, which is removed."""
    request = {"action": "merge", "name": name, "other": other, "format": form}
    _changed(_perform(where, config, request), as_json)


@page(table, "rm", "zenlake lake table rm home_temp")
def remove_table(name: Name, where: Where = LAKE, config: ConfigFile = None) -> None:
    """Remove a table with its rows; samples keeps all."""
    _perform(where, config, {"action": "rm", "name": name})
    typer.echo(f"{name}  removed; its keys make no new table: `zenlake lake table add` does")


@examples("zenlake lake suggest", "zenlake lake suggest --json")
def suggest_tables(where: Where = LAKE, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Say which tables the keys make, why, and which keys get none."""
    from dataclasses import asdict

    from zenlake.lake.maintain.suggest import keys_of, suggest
    from zenlake.lake.table.location import LakeLocation

    place = LakeLocation(where)
    found = suggest(place, configuration(config, where), keys_of(place))
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    for one in found.tables:
        what = "is a table" if one.made else "would be a table, if its payloads can be read"
        count = "1 key" if one.keys == 1 else f"{one.keys:,} keys"
        typer.echo(printable(f"{one.name}  {one.format}  {count}, {what}"))
        for why in one.why:
            typer.echo(printable(f"  {why}"))
    for refusal in found.without:
        shown = ", ".join(refusal.examples)
        typer.echo(printable(f"no table for {refusal.count:,}: {refusal.reason}; {shown}"))
