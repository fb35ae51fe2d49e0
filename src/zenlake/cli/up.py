"""`zenlake up`: a router, a recorder and a lake, with one command."""

from __future__ import annotations

import json
import os
import shlex
import threading
from pathlib import Path
from typing import Annotated

import typer

from zenlake.cli.children import Child, ChildFailed
from zenlake.cli.connection import ended_well, note, until_interrupted
from zenlake.cli.pages import examples
from zenlake.cli.patience import Waiting

DATA = Path("zenlake-data")
JOURNAL = "here"
LOOK = 0.2

ROUTER_UP, LAKE_UP = 30.0, 180.0
"""How long each may take to be up, in seconds: Spark is slow on a small machine."""

STARTER = """\
// What the lake makes of the samples beside the tables that are always there (samples, latest,
// gaps, quarantine). Each chunk in ${…} becomes a column, and so does each field of the payload.
// Change it, and start again.
{
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
    "zenlake up --no-lake",
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
            help="Where the router listens; tcp/[::]:7447, if not said.",
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
    lake: Annotated[bool, typer.Option("--lake/--no-lake", help="With tables, by Spark.")] = True,
    master: Annotated[
        str,
        typer.Option("--master", metavar="URL", help="Which Spark; its own, if not said."),
    ] = "local[*]",
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Run router, recorder and lake on this machine.

    Stops all of it on Ctrl-C, and goes on where it stopped when it is run again.
    """
    with ended_well():
        options = [word for place in listen or () for word in ("-l", place)]
        options += [word for change in changes or () for word in ("--cfg", change)]
        options += ["--no-multicast-scouting"] if alone else []
        household = _Household(data, keys or ["**"], options, as_json)
        with household, until_interrupted():
            household.start_router()
            if lake:
                household.start_lake(master, conf or [])
            household.tell()
            household.watch()


class _Household:
    """The programs, and the folder they share."""

    def __init__(self, data: Path, keys: list[str], options: list[str], as_json: bool) -> None:
        """`options`: what the router is told on its command line."""
        self._data = data
        self._keys = keys
        self._options = options
        self._as_json = as_json
        self._children: list[Child] = []
        self._places: list[str] = []
        self.lake: Path | None = None

    def __enter__(self) -> None:
        self._data.mkdir(parents=True, exist_ok=True)

    def __exit__(self, *_: object) -> None:
        """Stop everything: the last that was started first, so that nothing is cut off."""
        for child in reversed(self._children):
            with Waiting(f"{child.name} stops"):
                if not child.stop(30.0):
                    note(f"{child.name} had to be killed; see {child.log}")
        if self._children and not self._as_json:
            note(f"stopped; everything is kept in {self._data}")

    def _start(self, name: str, arguments: list[str], patience: float) -> dict[str, object]:
        child = Child(name, arguments, self._data / "log" / f"{name.split()[-1]}.log")
        self._children.append(child)
        with Waiting(f"{name} starts"):
            return child.first(patience)

    def start_router(self) -> None:
        journal = {
            "name": JOURNAL,
            "dir": str(self._data / "journal"),
            "key_exprs": self._keys,
        }
        arguments = ["router", "--json", "--cfg", f"journals:{json.dumps([journal])}"]
        fact = self._start("the router", arguments + self._options, ROUTER_UP)
        places = fact.get("locators")
        self._places = [str(place) for place in places] if isinstance(places, list) else []

    def start_lake(self, master: str, conf: list[str]) -> None:
        self.lake = self._data / "lake"
        starter = self.lake / "lake.json5"
        if not starter.exists():
            self.lake.mkdir(parents=True, exist_ok=True)
            starter.write_text(STARTER, "utf-8")
        arguments = ["lake", "run", "--json", "--lake", str(self.lake)]
        arguments += ["--journal", str(self._data / "journal"), "--master", master]
        for setting in conf:
            arguments += ["--conf", setting]
        self._start("the lake", arguments, LAKE_UP)

    def tell(self) -> None:
        """What to try, to be copied."""
        lines = [
            "put -k demo/hello -p 'hello from zenlake'",
            "get -s 'demo/**'",
            "get -s 'demo/**?_time=[now(-1m)..]'",
            "sub -k 'demo/**'",
        ]
        if self.lake is not None:
            query = "SELECT key, time, cast(value AS string) FROM samples ORDER BY time DESC"
            place = "" if self._data == DATA else f" --lake {shlex.quote(str(self.lake))}"
            lines.append(f'sql "{query} LIMIT 5"{place}')
        command = os.environ.get("ZENLAKE_COMMAND", "zenlake")
        lines = [f"{command} {self._aimed(line)}" for line in lines]
        if self._as_json:
            fact = {"locators": self._places, "data": str(self._data), "try": lines}
            typer.echo(json.dumps(fact))
            return
        typer.echo("Up. Programs on this machine find the router by themselves; others connect to")
        typer.echo(f"  {'  '.join(self._places)}")
        typer.echo(f"All it hears is kept in {self._data}. In another terminal, try:")
        for line in lines:
            typer.echo(f"  {line}")
        typer.echo("Ctrl-C stops everything.")

    def _aimed(self, line: str) -> str:
        """A line that reaches this router, also where nobody finds it by multicast."""
        if not self._options or line.startswith("sql"):
            return line
        return f"{line} -e {shlex.quote(self._places[0])}"

    def watch(self) -> None:
        """Wait until somebody interrupts, or one of the programs ends."""
        pause = threading.Event()
        while all(child.running() for child in self._children):
            pause.wait(LOOK)
        for child in self._children:
            if not child.running():
                raise child.failure()
        raise ChildFailed("a program ended")  # not reached: one of them did
