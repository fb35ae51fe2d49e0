"""`zenlake lake view` and `zenlake lake alert`: questions that a running lake keeps answering."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from zenlake.cli.connection import note
from zenlake.cli.lake_options import LAKE, AsJson, Where, configuration
from zenlake.cli.own_spark import sparking
from zenlake.cli.pages import group, page
from zenlake.printable import json_text, printable

__all__ = ["alert", "view"]

view = group("Continuous queries, kept as tables, published as view/NAME/….")
alert = group("Conditions that are watched, raised and cleared as alert/NAME/….")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name; its table has it, too.")]
Sql = Annotated[str, typer.Argument(metavar='"SELECT …"', help="The question.")]
Late = Annotated[
    str,
    typer.Option("--late", metavar="TIME", help="How late data of a window may come."),
]
History = Annotated[
    bool,
    typer.Option("--history", help="Begin with all that the tables have, not with what comes."),
]


OPERATOR: Final = {"as": "operator"}
"""Whom these commands act for: whoever may open the lake's socket runs the lake."""


def _ask(where: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """What the lake that runs in this folder says; None if none does."""
    from zenlake.lake_client import ask

    asking = ask(where, {"do": "continuous", **OPERATOR, **request})
    if asking is None:
        return None
    with asking:
        return asking.fact()


def _create(where: str, request: dict[str, Any], as_json: bool) -> None:
    facts = _ask(where, request)
    if facts is None:
        import zenlake.lake
        from zenlake.lake.continuous.definitions import create_definition, definition_in

        one = definition_in({**OPERATOR, **request})
        known = zenlake.lake.open(where)
        known.ask(one.sql)  # before Spark is started for nothing
        note(f"no lake runs in {where}; a Spark is started to read the question")
        with sparking("local[*]", None) as spark:
            create_definition(zenlake.lake.open(where, spark, configuration(None, where)), one)
        facts = {**one.shown(), "state": "waits for `zenlake up` or `zenlake lake run`"}
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        typer.echo(f"{facts['name']}  {facts['state']}")


def _listed(where: str, kind: str) -> list[dict[str, Any]]:
    reply = _ask(where, {"action": "list", "kind": kind, "name": ""})
    if reply is not None:
        return list(reply["found"])
    from zenlake.lake.maintain.definition_store import ContinuousQueryStore
    from zenlake.lake.table.location import LakeLocation

    every = ContinuousQueryStore(LakeLocation(where)).all().values()
    return [{**one.shown(), "state": "no lake runs"} for one in every if one.kind == kind]


def _list(where: str, kind: str, as_json: bool) -> None:
    listed = _listed(where, kind)
    if not listed and not as_json:
        note(f'there is no {kind}; `zenlake lake {kind} create NAME "SELECT …"` makes one')
    for one in listed:
        if as_json:
            typer.echo(json.dumps(one))
            continue
        line = f"{one['name']}  {one['state']}"
        if "rows" in one:
            line += f"  {one['rows']:,} rows"
        if "raised" in one:
            line += f"  {one['raised']} raised, {one['pending']} pending"
        typer.echo(printable(f"{line}  {one['sql']}"))
        if one.get("why"):
            typer.echo(printable(f"  {one['why']}"))


def _show(where: str, kind: str, name: str, as_json: bool) -> None:
    from zenlake.lake.maintain.definition_store import ContinuousQueryStore
    from zenlake.lake.table.location import LakeLocation

    ContinuousQueryStore(LakeLocation(where)).find(name, "view" if kind == "view" else "alert")
    (one,) = [listed for listed in _listed(where, kind) if listed["name"] == name]
    if as_json:
        typer.echo(json.dumps(one))
        return
    for fact, value in one.items():
        if value not in ("", None):
            typer.echo(printable(f"{fact:10} {value}"))


def _drop(where: str, kind: str, name: str) -> None:
    if _ask(where, {"action": "drop", "kind": kind, "name": name}) is None:
        from zenlake.lake.continuous.definitions import drop_definition
        from zenlake.lake.table.location import LakeLocation

        drop_definition(LakeLocation(where), name, "view" if kind == "view" else "alert")
    typer.echo(f"{name}  dropped")


@page(
    view,
    "create",
    'zenlake lake view create busy \\\n    "SELECT key, count(*) AS n FROM samples GROUP BY key"',
    "zenlake lake view create means --late 30s \\\n"
    "    \"SELECT id, window(time, '1 minute') AS w, avg(percent) AS mean \\\n"
    "    FROM battery GROUP BY id, window(time, '1 minute')\"",
)
def create_view(
    name: Name,
    sql: Sql,
    where: Where = LAKE,
    late: Late = "10s",
    history: History = False,
    as_json: AsJson = False,
) -> None:
    """Make a view: a question that is answered as data comes.

    What it finds is published as view/NAME/… and kept as a table NAME, each result once.
    """
    request = {"action": "create", "kind": "view", "name": name, "sql": sql, "late": late}
    _create(where, {**request, "history": history}, as_json)


@page(view, "list", "zenlake lake view list")
def list_views(where: Where = LAKE, as_json: AsJson = False) -> None:
    """List the views, and how they are."""
    _list(where, "view", as_json)


@page(view, "show", "zenlake lake view show busy")
def show_view(name: Name, where: Where = LAKE, as_json: AsJson = False) -> None:
    """Show all that is known of a view."""
    _show(where, "view", name, as_json)


@page(view, "drop", "zenlake lake view drop busy")
def drop_view(name: Name, where: Where = LAKE) -> None:
    """End a view, and delete its table."""
    _drop(where, "view", name)


@page(
    alert,
    "create",
    "zenlake lake alert create low --for 10s \\\n"
    '    "SELECT id, percent FROM battery WHERE percent < 20"',
)
def create_alert(
    name: Name,
    sql: Sql,
    hold: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long the condition must hold.")
    ] = "0s",
    where: Where = LAKE,
    late: Late = "10s",
    history: History = False,
    as_json: AsJson = False,
) -> None:
    """Make an alert: a condition that is watched, by key or group.

    When the WHERE (or HAVING) of the question has been true for long enough it is raised, and
    cleared when it is not true any more. Both are published as alert/NAME/… and kept as a table.
    """
    request = {"action": "create", "kind": "alert", "name": name, "sql": sql, "late": late}
    _create(where, {**request, "for": hold, "history": history}, as_json)


@page(alert, "list", "zenlake lake alert list")
def list_alerts(where: Where = LAKE, as_json: AsJson = False) -> None:
    """List the alerts, and how many are raised."""
    _list(where, "alert", as_json)


@page(alert, "show", "zenlake lake alert show low")
def show_alert(name: Name, where: Where = LAKE, as_json: AsJson = False) -> None:
    """Show all that is known of an alert."""
    _show(where, "alert", name, as_json)


@page(alert, "drop", "zenlake lake alert drop low")
def drop_alert(name: Name, where: Where = LAKE) -> None:
    """End an alert, and delete its table."""
    _drop(where, "alert", name)


@page(alert, "test", "zenlake lake alert test low --from 'now(-1d)'")
def try_alert(
    name: Name,
    since: Annotated[
        str, typer.Option("--from", metavar="INSTANT", help="2026-01-31T12:00:00Z, or now(-1d).")
    ] = "now(-1h)",
    until: Annotated[str, typer.Option("--to", metavar="INSTANT", help="As --from.")] = "now()",
    where: Where = LAKE,
    as_json: AsJson = False,
) -> None:
    """Run an alert over history.

    Prints when it would have been raised and cleared.
    """
    request = {"action": "test", "kind": "alert", "name": name, "from": since, "to": until}
    reply = _ask(where, request)
    if reply is None:
        import zenlake.lake
        from zenlake.lake.continuous.requests import tried
        from zenlake.lake.maintain.definition_store import ContinuousQueryStore
        from zenlake.lake.query.executor import SqlExecutor
        from zenlake.lake.table.location import LakeLocation

        one = ContinuousQueryStore(LakeLocation(where)).find(name, "alert")
        note(f"no lake runs in {where}; a Spark is started for this question")
        with sparking("local[*]", None) as spark:
            executor = SqlExecutor(zenlake.lake.open(where, spark))
            try:
                reply = {"changes": tried(executor.run, one, request)}
            finally:
                executor.close()
    for change in reply["changes"]:
        if as_json:
            typer.echo(json.dumps(change))
        else:
            row = json_text(change["row"])
            typer.echo(f"{change['time']}  {change['state']:7}  {printable(change['key'])}  {row}")
    if not as_json:
        times = sum(change["state"] == "raised" for change in reply["changes"])
        word = {0: "never", 1: "once", 2: "twice"}.get(times, f"{times} times")
        note(f"{name} would have been raised {word}")
