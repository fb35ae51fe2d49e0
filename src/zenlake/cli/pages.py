"""Help pages: plain text at 80 columns, options in sections, examples that can be copied.

Nothing is markup, so that `[now(-1h)..]` and `robot/*` reach the reader as they are written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from zenlake.cli.ending import REFUSED, ended_well
from zenlake.printable import printable_lines

__all__ = ["Program", "add", "examples", "group", "page"]

#: The range of a number, as the library adds it: a reader needs none to see what a count is.
RANGE = re.compile(r"; [-\d.<=]*x[-\d.<>=]+(?=\])|  \[[-\d.<=]*x[-\d.<>=]+\]")
Command = TypeVar("Command", bound=Callable[..., Any])


def examples(*lines: str) -> Callable[[Command], Command]:
    """Give a command lines that its help page ends with."""

    def mark(command: Command) -> Command:
        command.__examples__ = lines  # type: ignore[attr-defined]
        return command

    return mark


def _epilog(lines: Sequence[str]) -> str | None:
    """The end of a help page that shows examples, each on a line of its own."""
    if not lines:
        return None
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def group(help: str) -> typer.Typer:
    """A command that has sub-commands; each is added with `page`."""
    return typer.Typer(no_args_is_help=True, help=help, rich_markup_mode=None, cls=CommandGroup)


def page(app: typer.Typer, name: str, *lines: str) -> Callable[[Command], Command]:
    """Make a function a sub-command of this name, with examples for its help page."""
    return app.command(name, cls=CommandPage, epilog=_epilog(lines))


def add(app: typer.Typer, name: str, command: Callable[..., Any]) -> None:
    """Make a function a command, with the examples that it was marked with."""
    page(app, name, *getattr(command, "__examples__", ()))(command)


class _Sections:
    """How options are listed: those of one panel beside each other, arguments first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                name = param.metavar or param.name.upper()
                sections["Arguments"].append((name, RANGE.sub("", record[1])))
                continue
            panel = getattr(param, "rich_help_panel", None) or "Options"
            sections.setdefault(panel, []).append((record[0], RANGE.sub("", record[1])))
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows, col_max=28)


class CommandPage(_Sections, TyperCommand):
    """The help page of a command."""


class CommandGroup(_Sections, TyperGroup):
    """The help page of a command that has sub-commands."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _Sections.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


class Program(CommandGroup):
    """The program itself: whatever ends it is told in one line, with a code of `ending`."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run it, and end the process unless `standalone_mode` is off."""
        alone = extra.pop("standalone_mode", True)
        extra["standalone_mode"] = False
        if not alone:
            return super().main(*args, **extra)
        try:
            with ended_well():
                code = super().main(*args, **extra)
        except typer.Exit as ended:
            code = ended.exit_code
        except Exception as error:
            # A ClickException, by whatever name the library of this version gives it.
            if not hasattr(error, "format_message"):
                raise
            code = _refused(error)
        sys.exit(code if isinstance(code, int) else 0)


def _refused(error: Any) -> int:
    """Say in one line what is wrong with a command line."""
    context = getattr(error, "ctx", None)
    message = error.format_message()
    if context is None:
        typer.echo(f"zenlake: {printable_lines(message)}", err=True)
    elif message == context.get_help():  # nothing was asked for
        typer.echo(message, err=True)
    else:
        path = context.command_path
        typer.echo(f"{path}: {printable_lines(message.rstrip('.'))}; see {path} --help", err=True)
    return REFUSED
