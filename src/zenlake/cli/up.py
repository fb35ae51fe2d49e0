"""`zenlake up`: a router, a recorder and a lake, with one command that runs for months."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli import quantities
from zenlake.cli.anonymous import AllowAnonymous
from zenlake.cli.ending import FAILED, INTERRUPTED, REFUSED, ended_well, note
from zenlake.cli.options import Fsync, Retain, RetainAge, RetainSize
from zenlake.cli.own_spark import connect_conf
from zenlake.cli.pages import examples
from zenlake.cli.up_http import http_place, serve_status
from zenlake.cli.up_ready import DATA, tell_router

if TYPE_CHECKING:
    from zenlake.supervise.output import Output
    from zenlake.supervise.plan import Plan

JOURNAL = "here"
HTTP = "127.0.0.1:7780"
PAGE_PORT = 8000
OTHERS = 0o007
"""The umask of `up` and its parts: other users of the machine may read no file of theirs."""

STARTER = """\
// Tables appear by themselves for the keys that come, beside those that are always there (samples,
// latest, gaps, quarantine); `zenlake lake suggest` says which, and why. What is named here wins.
// Each chunk in ${…} becomes a column, and so does each field of the payload. Change it, and start
// again.
{
  // The numbers of these tables by minute and hour: charts of long times read them.
  rollups: true,
  tables: {
    pose: {format: "robot/${id}/pose"},
    battery: {format: "robot/${id}/battery"},
    temperature: {format: "robot/${id}/temperature"},
    fault: {format: "robot/${id}/fault"},
  },
}
"""


@examples(
    "zenlake up",
    "zenlake up --data /srv/zenlake -k 'robot/**' -l tcp/0.0.0.0:7447",
    "zenlake up --retain-size 100GB --retain-age 30d --plain",
    "zenlake up --no-lake",
    "zenlake up --open",
)
def up(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The one folder that everything is in.")
    ] = DATA,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "-k", "--key", metavar="KEYEXPR", help="What to record; everything, if not said."
        ),
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "-l",
            "--listen",
            metavar="ENDPOINT",
            help="Where the router listens; tcp/127.0.0.1:7447, if not said.",
            show_default=False,
        ),
    ] = None,
    opened: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Listen on every interface, for those with a certificate or a password alone: "
            "see `zenlake certs` and `zenlake users`.",
        ),
    ] = False,
    connect: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--connect",
            metavar="ENDPOINT",
            help="Another router to connect to, e.g. tcp/10.0.0.7:7447. May be repeated.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-c",
            "--config",
            metavar="FILE",
            help="The router's configuration: .json5, .json or .yaml.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--cfg", metavar="KEY:VALUE", help="A key of the router's configuration."),
    ] = None,
    alone: Annotated[
        bool,
        typer.Option("--no-multicast-scouting", help="Let nobody find the router by multicast."),
    ] = False,
    retain_size: RetainSize = None,
    retain_age: RetainAge = None,
    retain: Retain = None,
    fsync: Fsync = "50ms",
    lake: Annotated[bool, typer.Option("--lake/--no-lake", help="With tables, by Spark.")] = True,
    iceberg: Annotated[
        bool, typer.Option("--iceberg", help="Publish the tables as those of Iceberg, too.")
    ] = False,
    master: Annotated[
        str,
        typer.Option("--master", metavar="URL", help="Which Spark; its own, if not said."),
    ] = "local[*]",
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
    ] = None,
    spark_connect: Annotated[
        str | None,
        typer.Option(
            "--spark-connect",
            metavar="[HOST:]PORT",
            help="Let Spark's clients in, at sc://127.0.0.1:PORT; 15002 is the usual one.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        str,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Where /metrics, /health, /ready and /status are served; none: nowhere.",
        ),
    ] = HTTP,
    anonymous: AllowAnonymous = None,
    rest: Annotated[
        str | None,
        typer.Option(
            "--rest-http-port",
            metavar="PORT",
            help="Where keys and the web page are served: a port of 127.0.0.1, or ADDRESS:PORT; "
            "8000 if not said, or any if that is taken; none: nowhere.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines, on a terminal too.")] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=1,
            help="Time between two lines with the status, where lines are printed.",
        ),
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Run router, recorder and lake on this machine.

    A part that fails is started again, and the router never stops for the lake. `zenlake status`
    asks how it is, from another terminal or a script. Only programs on this machine can connect,
    unless --open, -l or the configuration says otherwise. Ctrl-C stops everything (exit code 130),
    a SIGTERM too (0); when it is run again it goes on where it stopped.
    """
    from zenlake.supervise.compiling import Compilation
    from zenlake.supervise.output import Output, OutputFormat

    os.umask(os.umask(0o077) | OTHERS)  # for the parts, too
    compilation = Compilation.of_environment(time.time())
    with ended_well():
        age = quantities.duration(retain_age, "--retain-age")
        budget = quantities.size(retain_size, "--retain-size")
        rules = quantities.rules(retain, "--retain")
        place = http_place(http, anonymous)
        connect_conf(spark_connect, anonymous)  # refused before anything is started
        connecting = [] if spark_connect is None else ["--spark-connect", spark_connect]
        for port in anonymous or ():
            connecting += ["--allow-anonymous", port.value]
        with _folder(data) as pid_file, ExitStack() as held:
            journal = _journal(data, keys or ["**"], budget, age, fsync, rules)
            plan = _plan(data, journal, file, listen, connect, changes, alone, opened)
            plan = _with_page(plan, rest, file, changes)
            if lake:
                plan = _with_lake(plan, master, conf or [], connecting, iceberg)
            plan = held.enter_context(_introduced(plan))
            live = sys.stdout.isatty() and not (plain or as_json)
            output_format = (
                OutputFormat.JSON if as_json else OutputFormat.LIVE if live else OutputFormat.PLAIN
            )
            output = Output(output_format, interval, compilation)
            try:
                number = _run(plan, pid_file, output, place)
            finally:
                output.close()
        if not as_json:
            note(f"stopped; everything is kept in {data}")
            if compilation is not None and (process := compilation.process()):
                note(f"compiling goes on in the background; `kill {process}` stops it")
    if number == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


# -------------------------------------------------------------------------------------- the plan


def _journal(
    data: Path,
    keys: list[str],
    budget: int | None,
    age: float | None,
    fsync: str,
    rules: Sequence[tuple[str, float]] = (),
) -> dict[str, Any]:
    """What the router is told about the journal."""
    from zenlake.supervise.disk import Disk, default_budget
    from zenlake.supervise.resource_monitor import folder_size

    folder = data.resolve() / "journal"
    if budget is None:
        room = shutil.disk_usage(data)
        budget = default_budget(Disk(room.total, room.free, folder_size(folder)))
    settings: dict[str, Any] = {
        "name": JOURNAL,
        "dir": str(folder),
        "key_exprs": keys,
        "fsync": fsync,
        "retain_bytes": budget,
        "hold_bytes": max(1, budget // 2),
        # Whole segments are let go, so a small budget needs small ones.
        "segment_bytes": max(1 << 16, min(128 << 20, budget // 16)),
    }
    if rules:
        settings["retain"] = [{"keys": keys, "age": age} for keys, age in rules]
    if age is not None:
        settings["retain_age"] = age
    if age is not None or rules:
        least = min([time for _, time in rules] + ([] if age is None else [age]))
        settings["segment_age"] = max(1.0, min(3600.0, least / 16))
    return settings


def _plan(
    data: Path,
    journal: dict[str, Any],
    file: Path | None,
    listen: list[str] | None,
    connect: list[str] | None,
    changes: list[str] | None,
    alone: bool,
    opened: bool = False,
) -> Plan:
    from zenlake.cli.connection import Connection
    from zenlake.cli.opening import LOOPBACK, OpenedRouter
    from zenlake.config import Config
    from zenlake.config.openness import Guards, asks_who_connects, refuse_more_open
    from zenlake.supervise.plan import Plan

    named = None if file is None else str(file)
    changes = changes or []
    before: list[str] = []
    quiet = False
    if opened:
        opening = OpenedRouter.of(data.resolve(), listen, Connection(file=named).config(quiet=True))
        before, listen = opening.changes, opening.listen
    said = Connection(file=named, changes=before).config(quiet=True)
    made = Connection(file=named, changes=[*before, *changes], listen=listen).config()
    guards = None
    if named or opened:
        guards = Guards(said, made, named or "--open")
        refuse_more_open(said, made, guards.source)
    elsewhere = any(one.startswith("listen/") for one in changes)
    elsewhere |= made.get_json("listen/endpoints") != Config().get_json("listen/endpoints")
    if not listen and not elsewhere:
        listen = [LOOPBACK]
        quiet = not (named or connect or changes or alone)
    # Other journals are recorded beside the one that is always there.
    journals = [journal, *json.loads(made.get_json("journals") or "[]")]
    options = [] if file is None else ["-c", str(file.resolve())]
    changes = [*before, *changes, f"journals:{json.dumps(journals)}"]
    for word, places in (("-l", listen), ("-e", connect), ("--cfg", changes)):
        options += [one for place in places or () for one in (word, place)]
    options += ["--no-multicast-scouting"] if alone else []
    return Plan(
        data=data.resolve(),
        shown=str(data),
        router=options,
        found_by_scouting=quiet,
        guarded=asks_who_connects(made),
        guards=guards,
        budget=journal["retain_bytes"],
        retain_age=journal.get("retain_age"),
    )


def _configured_rest(file: Path | None, changes: list[str] | None) -> dict[str, Any] | None:
    """Return what the router's own configuration says of `plugins/rest`; None if nothing."""
    from zenlake.cli.connection import Connection

    said = Connection(file=None if file is None else str(file), changes=changes)
    plugins = json.loads(said.config(quiet=True).get_json("plugins"))
    rest: dict[str, Any] | None = plugins.get("rest")
    return rest


def _with_page(plan: Plan, place: str | None, file: Path | None, changes: list[str] | None) -> Plan:
    """Serve HTTP and the page in the router; what its configuration says of them stays."""
    from dataclasses import replace
    from importlib.util import find_spec

    from zenlake.config.plugins import REQUIRED
    from zenlake.supervise.pid_file import PAGE

    if place == "none":
        return replace(plan, page=["--rest-http-port", "none"])
    configured = _configured_rest(file, changes)
    settings: dict[str, Any] = {
        "status_file": str(plan.data / PAGE),
        "lake": str(plan.data / "lake"),
    }
    settings |= {name: value for name, value in (configured or {}).items() if value is not None}
    if place is not None:
        settings |= {"http_port": place, REQUIRED: True}
    elif configured is None:
        if find_spec("starlette") is None or find_spec("uvicorn") is None:
            return plan  # installed without the extra `web`
        settings["http_port"] = f"127.0.0.1:{PAGE_PORT if _is_free(PAGE_PORT) else 0}"
    if plan.guards is not None:
        plan.guards.refuse_change("plugins/rest", json.dumps(settings))
    return replace(plan, page=["--cfg", f"plugins/rest:{json.dumps(settings)}"])


def _is_free(port: int) -> bool:
    import socket

    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def _with_lake(
    plan: Plan, master: str, conf: list[str], connecting: list[str], iceberg: bool
) -> Plan:
    from dataclasses import replace

    folder = plan.data / "lake"

    def prepare() -> None:
        starter = folder / "lake.json5"
        if not starter.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            starter.write_text(STARTER, "utf-8")

    arguments = ["lake", "run", "--json", "--lake", str(folder)]
    arguments += ["--journal", str(plan.data / "journal"), "--master", master]
    for setting in conf:
        arguments += ["--conf", setting]
    arguments += connecting
    if iceberg:
        arguments.append("--iceberg")
    return replace(plan, lake=arguments, prepare_lake=prepare)


@contextmanager
def _introduced(plan: Plan) -> Iterator[Plan]:
    """The plan with what its parts know each other by, which is taken away at the end."""
    from dataclasses import replace

    from zenlake.supervise.parts_folder import PartsFolder

    try:
        parts = PartsFolder(plan.data)
    except OSError as error:
        raise _unwritable(plan.data, error) from error
    try:
        lake = plan.lake
        if lake is not None:
            lake = [*lake, "--session-config", str(parts.lake)]
        yield replace(plan, router=[*plan.router, "--parts", str(parts.parts)], lake=lake)
    finally:
        parts.close()


@contextmanager
def _folder(data: Path) -> Iterator[Any]:
    """The data folder, made and taken; what stands against it is told in words."""
    from zenlake.supervise.pid_file import PidFile

    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        pid_file = PidFile(data)
    except OSError as error:
        raise _unwritable(data, error) from error
    try:
        yield pid_file
    finally:
        pid_file.release()


def _unwritable(data: Path, error: OSError) -> Exception:
    from zenlake.errors import ZError

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ZError(f"the disk of {data} is full: make room there, or choose another with --data")
    return ZError(
        f"cannot write to {data}: {error.strerror}; let this user write there, or choose another "
        "folder with --data"
    )


# --------------------------------------------------------------------------------------- running


def _run(plan: Plan, pid_file: Any, output: Output, place: tuple[str, int] | None) -> int:
    """Run until a signal; gives its number."""
    from zenlake.supervise.supervisor import NotStarted, Supervisor

    began = time.monotonic()

    def ready(part: str) -> None:
        if part == "router" and not announced:
            announced.append(part)
            tell_router(plan, supervisor, output, time.monotonic() - began)
        elif not part:
            seconds = time.monotonic() - began
            output.write(
                f"Up after {seconds:.1f} s: everything runs. Ctrl-C stops it.",
                {"ready": "all", "seconds": round(seconds, 1)},
            )

    announced: list[str] = []
    supervisor = Supervisor(plan, pid_file, output.write_line, output.show_status, ready)
    server = None if place is None else serve_status(supervisor, output, *place)
    try:
        return supervisor.run()
    except NotStarted as error:
        note(str(error))
        raise typer.Exit(REFUSED if error.refused else FAILED) from None
    finally:
        if server is not None:
            server.close()
