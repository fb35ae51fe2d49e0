"""`zenlake status`: how a running `zenlake up` is, from another terminal or a script."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.ending import FAILED, NOBODY, ended_well, note
from zenlake.cli.pages import examples
from zenlake.cli.patience import WaitNotice

if TYPE_CHECKING:
    from zenlake.supervise.status import Status

DATA = Path("zenlake-data")
STARTING = 4
REPORTED = 2.0
"""Seconds after which the router has told of all that it had recorded before."""
LOOK = 0.25


@examples(
    "zenlake status",
    "zenlake status --data /srv/zenlake --json",
    "zenlake status --wait 120 --data fleet",
    "zenlake status -e 127.0.0.1:7780",
)
def status(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The folder that it runs in.")
    ] = DATA,
    where: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--http",
            metavar="HOST:PORT",
            help="Ask at this address instead of looking into the folder.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="Wait so long until everything is up and the tables have what was recorded.",
        ),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell how a running `zenlake up` is.

    Parts and their restarts, rows, lake, disk and forecast, and what went wrong last. Ends with
    0 if all is well, 1 if something is not (the reasons are printed), 3 if nobody runs there, 4
    while it starts for the first time.
    """
    from zenlake.printable import printable
    from zenlake.supervise.screen import screen
    from zenlake.supervise.status import Health

    with ended_well():
        current = _awaited(data, where, wait)
        if current is None:
            at = where or str(data)
            note(f"no `zenlake up` runs at {at}; start one, or say where: --data DIR, -e HOST:PORT")
            raise typer.Exit(NOBODY)
        if as_json:
            typer.echo(current.to_json())
        else:
            from rich.console import Console

            width = Console().width if sys.stdout.isatty() else 200
            typer.echo("\n".join(screen(current, width)))
        for reason in current.reasons:
            note(printable(reason))
        if current.health is Health.UNWELL:
            raise typer.Exit(FAILED)
        if current.health is Health.STARTING:
            raise typer.Exit(STARTING)


def _awaited(data: Path, where: str | None, wait: float) -> Status | None:
    """The status; after waiting, if that is wanted, until it is well and the lake not behind."""
    from zenlake.supervise.status import Health

    began = time.monotonic()
    durable: int | None = None
    with WaitNotice("waiting until everything is up"):
        while True:
            current = _asked(data, where)
            waited = time.monotonic() - began
            if current is None or current.health is not Health.WELL:
                well = False
            else:
                if durable is None and waited >= REPORTED:
                    durable = current.journal.durable
                well = durable is not None and _reached(current, durable)
            if well or waited >= wait:
                return current
            time.sleep(LOOK)


def _reached(current: Status, durable: int) -> bool:
    """Whether the tables have this many rows of the journal."""
    return current.lake is None or current.journal.durable - current.lake.behind >= durable


def _asked(data: Path, where: str | None) -> Status | None:
    """The status of the running service, over HTTP or as it wrote it last; None: none runs."""
    from zenlake.errors import DecodeError
    from zenlake.supervise.pid_file import page_of, running
    from zenlake.supervise.status import Status
    from zenlake.supervise.status_server import fetch

    page = None
    place = where or ""
    if where is None:
        if not running(data):
            return None
        page = page_of(data)
        place = "" if page is None else str(page.get("http", ""))
    host, _, port = place.removeprefix("http://").rstrip("/").rpartition(":")
    if port.isdecimal():
        try:
            code, text = fetch(host.strip("[]") or "127.0.0.1", int(port), "/status")
            if code == 200:
                current = Status.from_json(text)
                if where is not None or page is None or current.pid == page.get("pid"):
                    return current
        except (OSError, ValueError, DecodeError):
            pass  # it has just ended, or hangs: what it wrote last says more
    elif where is not None:
        raise typer.BadParameter(f"'{where}' is no HOST:PORT", param_hint="-e")
    if page is None:
        return None
    import json

    return Status.from_json(json.dumps(page))
