"""The `zenlake` command: finds the file of the sub-command that was asked for.

Only that file is imported, so that no command pays for the rooms of another. `zenlake --help`
reads them all, and each keeps its imports light for it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from zenlake import __version__
from zenlake.cli.lean import leave_out_pandas
from zenlake.cli.pages import Program, add

COMMANDS = (
    "up",
    "status",
    "users",
    "certs",
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
    "storage",
    "record",
    "replay",
    "diff",
    "journal",
    "ledger",
    "wire",
    "xrce",
    "check-config",
    "acl",
    "ls",
    "tree",
    "top",
    "hz",
    "bw",
    "why",
    "doctor",
    "capacity",
    "demo",
    "lake",
    "pipeline",
    "sql",
    "mcp",
)
"""The sub-commands in the order of the help page; `check-config` is `check_config.check_config`."""

SHARED = {"hz": "measure", "bw": "measure"}
"""The files of sub-commands that share one."""


class Zenlake(Program):
    """The program; its help page lists the commands in the order of `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return [name for name in COMMANDS if name in self.commands]


def application(asked: Sequence[str] = ()) -> typer.Typer:
    """The command line, holding the sub-commands that it takes to answer `asked`.

    That is the one that `asked` starts with, none for `--version`, or else all of them.
    """
    app = typer.Typer(
        name="zenlake",
        cls=Zenlake,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_zenlake)
    for name in _wanted(asked):
        command = _function(name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            add(app, name, command)
    return app


def main() -> None:
    """Run the command line; `Program` tells in one line what ends it."""
    asked = _asked()
    leave_out_pandas(asked)
    if len(asked) > 1 and asked[0] in ("--install-completion", "--show-completion"):
        # Only so does typer take the name of a shell; else it looks for one among the processes
        # that it runs below, and in a container or a provisioning tool there may be none.
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    application(asked)(prog_name="zenlake")


def _asked() -> Sequence[str]:
    """The words of the command line, also of one that a shell wants completed."""
    words = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS")
    if "_ZENLAKE_COMPLETE" not in os.environ or words is None:
        return sys.argv[1:]
    # The last word may be half a name; what comes before it is whole.
    return words.split()[1:-1]


def _wanted(asked: Sequence[str]) -> Sequence[str]:
    if asked and asked[0] in COMMANDS:
        return asked[:1]
    return () if asked and asked[0] == "--version" else COMMANDS


def _function(name: str) -> Callable[..., None] | typer.Typer:
    word = name.replace("-", "_")
    command: Callable[..., None] | typer.Typer
    command = getattr(importlib.import_module(f"zenlake.cli.{SHARED.get(name, word)}"), word)
    return command


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
    """A complete Zenoh stack in Python: publish, ask, route, record, and keep it as tables."""
