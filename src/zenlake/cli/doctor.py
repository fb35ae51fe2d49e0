"""`zenlake doctor`: whether this machine and its network are fit, and if not, what to do."""

from __future__ import annotations

import shutil
import socket
import sys
import textwrap
import time
from collections.abc import Iterator

import typer

from zenlake.cli import machine
from zenlake.cli.connection import FAILED, Connection, networked
from zenlake.cli.machine import Finding
from zenlake.cli.named_files import certificates
from zenlake.cli.neighbourhood import free_port, multicast, routers, scouted
from zenlake.cli.pages import examples
from zenlake.printable import printable

#: Where what was found begins in a line.
INDENT = 18


@examples(
    "zenlake doctor",
    "zenlake doctor -c router.json5",
    "zenlake doctor -e tcp/10.0.0.7:7447 --json",
)
@networked
def doctor(connection: Connection) -> None:
    """Check this machine and its network.

    Prints a line for each check: ok, warn or fail, with what to do about it. Ends with 1 if
    something fails.
    """
    from zenlake.cli.show import paint, print_json

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    failed = False
    for finding in examine(connection):
        failed = failed or finding.word == "fail"
        if connection.as_json:
            print_json(
                {
                    "result": finding.word,
                    "what": finding.what,
                    "found": finding.found,
                    "remedy": finding.remedy,
                }
            )
            continue
        word = paint(f"{finding.word:<4}", colours[finding.word])
        first, *rest = _wrapped(finding.found)
        typer.echo(f"{word}  {finding.what:<12}{printable(first)}")
        remedy = _wrapped(finding.remedy) if finding.remedy else []
        rest += [f"{'  ' if number else '→ '}{line}" for number, line in enumerate(remedy)]
        for line in rest:
            typer.echo(f"{'':<{INDENT}}{printable(line)}")
    if failed:
        raise typer.Exit(FAILED)


def _wrapped(text: str) -> list[str]:
    """Text in lines that fit a terminal; in a file, one line."""
    if not sys.stdout.isatty():
        return [text]
    room = shutil.get_terminal_size((80, 24)).columns - INDENT - 2
    return textwrap.wrap(text, max(20, room), break_on_hyphens=False) or [""]


def examine(connection: Connection) -> Iterator[Finding]:
    """All looks, one after the other."""
    config = connection.config()
    yield machine.python()
    yield machine.build()
    yield machine.event_loop()
    yield machine.java()
    yield machine.pandas()
    yield machine.disk("zenlake-data")
    yield machine.files()
    yield machine.own_clock(time.time())
    yield from certificates(config.resolved, time.time())
    for port, kind in ((7447, socket.SOCK_STREAM), (7446, socket.SOCK_DGRAM)):
        yield free_port(port, kind)
    if config.resolved.scouting.multicast.enabled:
        yield multicast(config)
        yield from scouted(config, connection.wait)
    yield from routers(connection)
