"""`zenlake pipeline`: PySpark and SQL of one's own, run over the tables of a lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import note
from zenlake.cli.lake_options import LAKE, AsJson, Conf, ConfigFile, Master, Where, choose_lake
from zenlake.cli.own_spark import sparking
from zenlake.cli.pages import group, page
from zenlake.printable import printable

if TYPE_CHECKING:
    from zenlake.lake.pipelines.runner import PipelineRunner, RunReport

__all__ = ["pipeline"]

pipeline = group("Run PySpark and SQL of your own over the tables of a lake.")

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]",
        help="The folder with the files; `pipelines` beside lake.json5, if not said.",
        show_default=False,
    ),
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Where to keep how far flows are; the lake's folder, if not said.",
        show_default=False,
    ),
]


@page(pipeline, "init", "zenlake pipeline init", "zenlake pipeline init my-pipeline")
def init_pipeline(folder: Folder = None, where: Where = LAKE, config: ConfigFile = None) -> None:
    """Make a folder with a pipeline to begin with, and a test of it."""
    from zenlake.lake.pipelines.template import write_template

    chosen = folder or _default_folder(where, config)
    for path in write_template(chosen):
        typer.echo(f"{path}")


@page(pipeline, "dry-run", "zenlake pipeline dry-run", "zenlake pipeline dry-run my-pipeline")
def dry_run(
    folder: Folder = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Let Spark analyse a pipeline; no row is read or written."""
    with _loaded(folder, where, config, None, master, conf) as runner:
        for name, table in runner.graph.tables.items():
            columns = {one.name: one.dataType.simpleString() for one in table.schema.fields}
            flows = [one for one in runner.graph.flows if one.flow.target == name]
            inputs = sorted({read for one in flows for read in one.inputs})
            kind = type(table.output).__name__
            if as_json:
                facts = {"table": name, "kind": kind, "columns": columns, "inputs": inputs}
                typer.echo(json.dumps(facts))
                continue
            typer.echo(
                printable(f"{name}  {_KINDS[kind]}, reads {', '.join(inputs) or 'no table'}")
            )
            for column, data_type in columns.items():
                typer.echo(printable(f"    {column}  {data_type}"))


@page(
    pipeline,
    "run",
    "zenlake pipeline run",
    "zenlake pipeline run my-pipeline --full-refresh energy",
)
def run_pipeline(
    folder: Folder = None,
    where: Where = LAKE,
    config: ConfigFile = None,
    full: Annotated[
        list[str] | None,
        typer.Option(
            "--full-refresh",
            metavar="TABLE",
            help="Empty this table and compute it from all rows again; may be given often.",
            show_default=False,
        ),
    ] = None,
    full_all: Annotated[
        bool, typer.Option("--full-refresh-all", help="Compute all tables from all rows again.")
    ] = False,
    state: State = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Process all rows that the lake has, once, on a Spark of its own.

    `zenlake up` and `zenlake lake run` run the folder `pipelines` beside lake.json5 all the time.
    """
    from zenlake.errors import ZError

    with _loaded(folder, where, config, state, master, conf) as runner:
        report = runner.run_once(list(runner.graph.tables) if full_all else full or [])
        for line in runner.notes:
            note(line)
        published = runner.published.names()
        if published:
            note(
                f"nothing was published of {', '.join(published)}: this run is not on the bus. The "
                "lake does it when it runs (zenlake up)"
            )
        _print_report(report, as_json)
        if report.failed:
            raise ZError(f"{len(report.failed)} of the flows failed")


def _print_report(report: RunReport, as_json: bool) -> None:
    lines: dict[str, tuple[str, str]] = {}
    for name, rows in report.rows.items():
        lines[name] = ("done", f"{rows:,} rows read")
    for name in report.unchanged:
        lines[name] = ("unchanged", "its inputs have not changed")
    for name, why in report.failed.items():
        lines[name] = ("failed", why)
    for name in report.computed:
        lines.setdefault(name, ("done", "computed"))
    for name, (state, words) in lines.items():
        if as_json:
            facts: dict[str, Any] = {"flow": name, "state": state, "words": words}
            facts |= {"rows": report.rows.get(name)}
            facts["expectations"] = [asdict(one) for one in report.expectations.get(name, ())]
            typer.echo(json.dumps(facts))
        else:
            typer.echo(printable(f"{name}  {state}  {words}"))
            for one in report.expectations.get(name, ()):
                _print_expectation(asdict(one))


def _print_expectation(one: dict[str, Any]) -> None:
    words = f"  {one['name']} ({one['violation']})  {one['passed']:,} rows passed"
    typer.echo(printable(f"{words}, {one['failed']:,} failed"))


@page(pipeline, "list", "zenlake pipeline list")
def list_flows(where: Where = LAKE, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List the flows and materialized views, and how they are."""
    found = _facts(choose_lake(where, config).where)
    if not found and not as_json:
        note("no pipeline ever ran in this lake; `zenlake pipeline init` makes one")
    for one in found:
        if as_json:
            typer.echo(json.dumps(one))
            continue
        line = f"{one['pipeline']}.{one['name']}  {one['state']}"
        if "rows" in one:
            line += f"  {one['rows']:,} rows in {one['batches']:,} batches"
        typer.echo(printable(line))
        if one.get("why"):
            typer.echo(printable(f"  {one['why']}"))
        for expectation in one.get("expectations", ()):
            _print_expectation(expectation)


@page(pipeline, "describe", "zenlake pipeline describe energy")
def describe_flow(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A flow, or a table of a pipeline.")],
    where: Where = LAKE,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a flow, or of the flows of a table."""
    from zenlake.errors import LocalError

    every = _facts(choose_lake(where, config).where)
    found = [one for one in every if name in (one["name"], one.get("target"))]
    if not found:
        names = ", ".join(one["name"] for one in every) or "none"
        raise LocalError(f"no pipeline has '{name}'; there are {names}")
    for one in found:
        if as_json:
            typer.echo(json.dumps(one))
            continue
        for fact, value in one.items():
            if fact != "expectations" and value not in ("", None, {}, []):
                shown = json.dumps(value) if isinstance(value, dict | list) else value
                typer.echo(printable(f"{fact:25} {shown}"))
        for expectation in one.get("expectations", ()):
            _print_expectation(expectation)


@page(pipeline, "reset", "zenlake pipeline reset energy")
def reset_tables(
    names: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Tables of the pipeline.")],
    where: Where = LAKE,
    config: ConfigFile = None,
) -> None:
    """Empty tables, and have them computed from all rows again.

    A running lake begins at once; else the next run does.
    """
    from zenlake.lake_client import ask

    chosen = choose_lake(where, config).where
    asking = ask(chosen, {"do": "pipeline", "action": "reset", "names": names})
    if asking is not None:
        with asking:
            asking.fact()
    else:
        _reset_at_rest(chosen, names)
    for name in names:
        typer.echo(printable(f"{name}  reset"))


def _reset_at_rest(lake: str, names: list[str]) -> None:
    from zenlake.errors import LocalError
    from zenlake.lake.pipelines.state import known_pipelines, pipelines_folder

    known = known_pipelines(pipelines_folder(lake))
    for name in names:
        having = [
            (one, flow)
            for one in known.values()
            for flow, element in one.known().items()
            if element.target == name
        ]
        if not having:
            every = sorted(
                {one.target for state in known.values() for one in state.known().values()}
            )
            raise LocalError(f"no pipeline fills '{name}'; they fill {', '.join(every) or 'none'}")
        for one, flow in having:
            with one.locked():
                one.begin_refresh(flow)


def _facts(lake: str) -> list[dict[str, Any]]:
    from zenlake.lake.pipelines.state import known_pipelines, pipelines_folder
    from zenlake.lake_client import ask

    asking = ask(lake, {"do": "pipeline", "action": "list"})
    if asking is not None:
        with asking:
            answer = asking.fact()
        if answer["problem"]:
            note(answer["problem"])
        return list(answer["found"])
    return [
        {"pipeline": name, "name": flow, "target": one.target, "state": "no lake runs"}
        for name, state in known_pipelines(pipelines_folder(lake)).items()
        for flow, one in state.known().items()
    ]


_KINDS = {"StreamingTable": "streaming table", "MaterializedView": "materialized view"}


def _default_folder(where: str, config: Path | None) -> Path:
    from zenlake.lake.model.config import pipelines_of

    chosen = choose_lake(where, config)
    return pipelines_of(chosen.where, config, chosen.settings)


@contextmanager
def _loaded(
    folder: Path | None,
    where: str,
    config: Path | None,
    state: Path | None,
    master: str,
    conf: list[str] | None,
) -> Iterator[PipelineRunner]:
    """A pipeline that Spark has analysed, and that nobody else runs."""
    from zenlake.lake.pipelines.project import open_project
    from zenlake.lake.pipelines.runner import PipelineRunner
    from zenlake.lake.pipelines.state import PipelineState, pipelines_folder
    from zenlake.lake.pipelines.tables import PipelineTables
    from zenlake.lake.table.location import LakeLocation

    chosen = choose_lake(where, config)
    project = open_project(folder or _default_folder(where, config))
    kept = PipelineState((state or pipelines_folder(chosen.where)) / project.name)
    with kept.locked(), sparking(master, conf) as spark:
        tables = PipelineTables(LakeLocation(chosen.where), spark)
        runner = PipelineRunner(project, tables, kept, note)
        runner.load()
        yield runner
