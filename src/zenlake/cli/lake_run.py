"""`zenlake lake run`: fill the tables, and answer meanwhile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.anonymous import AllowAnonymous
from zenlake.cli.connection import note
from zenlake.cli.lake_options import (
    LAKE,
    AsJson,
    Conf,
    ConfigFile,
    Journals,
    Master,
    Where,
    choose_lake,
)
from zenlake.cli.own_spark import connect_conf, sparking
from zenlake.cli.pages import examples
from zenlake.cli.stop_signal import StopSignal, stopping

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.lake import LakeConfig
    from zenlake.lake.maintain.upkeep import Progress

__all__ = ["progress_bar", "run_lake"]


@examples(
    "zenlake lake run --journal flight --lake tables",
    "zenlake lake run --once",
    "zenlake lake run -e tcp/127.0.0.1:7447",
)
def run_lake(
    where: Where = LAKE,
    journals: Journals = None,
    config: ConfigFile = None,
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
    endpoints: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--connect",
            metavar="ENDPOINT",
            help="The router to answer on, e.g. tcp/127.0.0.1:7447; without one only programs "
            "on this machine are answered.",
            show_default=False,
        ),
    ] = None,
    session_config: Annotated[
        Path | None,
        typer.Option(
            "--session-config",
            metavar="FILE",
            help="How to connect to that router, if that takes more than an endpoint: a "
            "configuration of Zenoh, with a user and a password or certificates.",
            show_default=False,
        ),
    ] = None,
    spark_connect: Annotated[
        str | None,
        typer.Option(
            "--spark-connect",
            metavar="[HOST:]PORT",
            help="Let Spark's clients in, at sc://127.0.0.1:PORT.",
            show_default=False,
        ),
    ] = None,
    anonymous: AllowAnonymous = None,
    iceberg: Annotated[
        bool,
        typer.Option("--iceberg", help="Publish tables of Iceberg too, as iceberg: true does."),
    ] = False,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Fill the tables from a journal, and answer questions meanwhile.

    Several journals may feed one lake: give --journal for each.
    """
    chosen = choose_lake(where, config, journals)
    settings = replace(chosen.settings, iceberg=chosen.settings.iceberg or iceberg)
    from zenlake.lake.model.config import pipelines_of

    # Before Spark is started for nothing.
    connecting = connect_conf(spark_connect, anonymous)
    pipelines = pipelines_of(chosen.where, config, settings)
    serving = None if once else Serving(_session(endpoints, session_config), connecting, pipelines)
    fill_lake(chosen.where, chosen.journals, settings, serving, every, as_json, master, conf)


def _session(endpoints: list[str] | None, file: Path | None) -> Config | None:
    """How the lake connects to the bus, as the options say; None if it does not."""
    from zenlake.cli.connection import Connection, Mode

    if not endpoints and file is None:
        return None
    named = None if file is None else str(file)
    said = Connection(mode=Mode.CLIENT, connect=endpoints, file=named, no_multicast_scouting=True)
    return said.config()


@dataclass(frozen=True, slots=True)
class Serving:
    """How a running lake is reached beside its socket."""

    session: Config | None = None
    #: The settings of Spark with which its clients get in; empty: they do not.
    spark_connect: Sequence[str] = ()
    #: The folder with the files of a user's pipeline.
    pipelines: Path | None = None


def fill_lake(
    where: str,
    journals: Sequence[str],
    settings: LakeConfig,
    serving: Serving | None,
    every: str | None,
    as_json: bool,
    master: str,
    conf: list[str] | None,
) -> None:
    """Fill the tables, and answer meanwhile; without `serving`, once and without answers."""
    from zenlake.errors import LocalError, ZError
    from zenlake.journal import Journal
    from zenlake.lake import Pipeline
    from zenlake.lake.ingest.cluster_probe import probe
    from zenlake.lake.ingest.failure_reason import reason_of
    from zenlake.lake.ingest.spark_tasks import tasks_on
    from zenlake.lake.ingest.step import Step
    from zenlake.lake.model.config import seconds_of
    from zenlake.lake.query.lost_cores import REAPED, in_one_java
    from zenlake.lake.service.bus_link import BusLink
    from zenlake.lake.service.loop import LoopReport, opened, run
    from zenlake.lake.service.start import SPARK, listen_only, serve_lake
    from zenlake.lake.table.location import LakeLocation, absolute

    once = serving is None
    bus = None if serving is None else serving.session
    if master.startswith("sc://"):
        if serving is not None:
            note("a Spark behind Spark Connect fills the lake and answers no questions of others")
        serving = None
    if serving is not None:
        reaped = () if in_one_java(master) else REAPED
        conf = [*SPARK, *reaped, *serving.spark_connect, *(conf or ())]
    pause = None if every is None else seconds_of(every, "--every")
    where, journals = absolute(where), [absolute(one) for one in journals]
    for one in journals if once else ():
        Journal.open(one)  # before Spark is started for nothing
    stop = StopSignal()
    with sparking(master, conf) as spark, stopping(stop):
        if not all(_wait_for_journal(one, stop) for one in journals):
            return
        ids = [Journal.open(one).id for one in journals]
        if len(set(ids)) < len(ids):
            raise LocalError(f"two of {', '.join(journals)} are the same journal; name each once")
        tasks = tasks_on(spark)
        for one in () if in_one_java(master) else journals:
            probe(tasks, LakeLocation(where), Journal.open(one))
        tasks.warm()

        def made() -> list[Pipeline]:
            first = Pipeline(where, journals[0], tasks, settings)
            return [first, *(Pipeline(where, one, tasks, settings, first) for one in journals[1:])]

        try:
            pipelines = made() if once else opened(made, stop, _complain)
            if pipelines is None:
                return
            pipeline, *others = pipelines
            if as_json:
                typer.echo(json.dumps({"ready": True}))
            else:
                flows = "the journal {} flows" if len(journals) == 1 else "the journals {} flow"
                note(f"{flows.format(', '.join(journals))} into the lake {where}; Ctrl-C ends it")
            with progress_bar(as_json) as bar, ExitStack() as held:
                service = None
                problems: Callable[[], tuple[str, ...]] = tuple
                link = None if bus is None else held.enter_context(BusLink(bus))
                session = None if link is None else link.session
                if serving is None and session is not None:
                    listening = listen_only(tasks, pipeline, session, _complain)
                    problems = held.enter_context(listening)
                if serving is not None:
                    service = held.enter_context(
                        serve_lake(
                            spark, pipeline, session, _complain,
                            connect=bool(serving.spark_connect), others=others,
                            pipelines=serving.pipelines,
                        )
                    )  # fmt: skip
                    problems = service.problems

                def tell(done: LoopReport, step: Step) -> None:
                    if service is not None:
                        service.committed()
                    if as_json:
                        facts = {"rows": step.rows, "behind": step.behind, "lost": step.lost}
                        facts |= {"quarantined": step.quarantined}
                        typer.echo(json.dumps(facts | {"seconds": round(step.seconds, 3)}))
                    elif bar is not None:
                        bar(f"{done.rows:,} rows", done.rows, done.rows + step.behind)

                done = run(
                    pipeline, tasks, stop=stop, once=once, every=pause, tell=tell,
                    complain=_complain, problems=problems, others=others,
                    restarts=int if service is None else service.restarts,
                    stopped=dict if service is None else service.stopped_queries,
                    flows=tuple if service is None else service.flows,
                    bus=None if link is None else link.state,
                )  # fmt: skip
        except (ZError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ZError(f"the lake {where} cannot be filled: {reason_of(error)}") from error
    if not as_json:
        summary = f"{done.rows:,} rows read in {done.steps} steps"
        if done.quarantined:
            summary += f", {done.quarantined:,} in quarantine"
        if done.lost:
            summary += f"; {done.lost:,} rows had left the journal before they were read"
        note(summary)


def _wait_for_journal(journal: str, stop: StopSignal) -> bool:
    """Wait until there is a journal; False if `stop` came first."""
    from zenlake.errors import JournalError
    from zenlake.journal import Journal

    noted = False
    while not stop.is_set():
        try:
            Journal.open(journal)
        except JournalError:
            if not noted:
                noted = True
                note(f"waiting for a journal in {journal}; start `zenlake record --to {journal}`")
            stop.wait(0.2)
        else:
            return True
    return False


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
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
        task = shown.add_task("", total=1, visible=False)  # until there is any

        def tell(what: str, done: int, total: int) -> None:
            shown.update(task, description=what, completed=done, total=max(1, total), visible=True)

        yield tell


def _complain(line: str) -> None:
    """A line for people, with the time at which it was true."""
    note(f"{datetime.now():%Y-%m-%d %H:%M:%S} {line}")
