"""The `zenlake` command: finds the file of the sub-command that was asked for.

Only that file is imported, so that no command pays for the rooms of another. `zenlake --help`
reads them all, and each keeps its imports light for it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from zenlake import __version__
from zenlake.errors import ZError

COMMANDS = (
    "up",
    "router",
    "pub",
    "sub",
    "put",
    "get",
    "delete",
    "queryable",
    "liveliness",
    "scout",
    "info",
    "ping",
    "pong",
    "record",
    "journal",
    "ledger",
    "wire",
    "check-config",
    "acl",
    "ls",
    "tree",
    "top",
    "hz",
    "bw",
    "why",
    "doctor",
    "demo",
    "lake",
    "sql",
)
"""The sub-commands in the order of the help page; `check-config` is `check_config.check_config`."""

SHARED = {"hz": "measure", "bw": "measure"}
"""The files of sub-commands that share one."""


def application(asked: Sequence[str] = ()) -> typer.Typer:
    """The command line, holding the sub-command that `asked` starts with, or else all of them."""
    app = typer.Typer(
        name="zenlake",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_zenlake)
    for name in asked[:1] if asked and asked[0] in COMMANDS else COMMANDS:
        found = _function(name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def main() -> None:
    """Run the command line; what zenlake refuses is told in one line, without a traceback."""
    try:
        application(sys.argv[1:])(prog_name="zenlake")
    except ZError as error:
        typer.echo(f"zenlake: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _function(name: str) -> Callable[..., None] | typer.Typer:
    word = name.replace("-", "_")
    found: Callable[..., None] | typer.Typer
    found = getattr(importlib.import_module(f"zenlake.cli.{SHARED.get(name, word)}"), word)
    return found


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _zenlake(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and stop.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """A complete Zenoh stack in Python."""
