"""`zenlake check-config`: is this a configuration, and what will it do?"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Annotated

import typer

from zenlake.cli.named_files import missing
from zenlake.cli.pages import examples
from zenlake.config import Config, ConfigWarning, InvalidConfig, Problem
from zenlake.config.model_connect import EndpointGroup
from zenlake.config.plugins import required_plugins
from zenlake.errors import ConfigError
from zenlake.values.locator import EndPoint


@examples(
    "zenlake check-config router.json5",
    "zenlake check-config - --json < router.json5",
)
def check_config(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .json5, .json or .yaml file; - reads stdin.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a configuration file.

    Prints what it asks for, or everything that is wrong with it: keys, types, values, and files
    that it names and that cannot be read. Ends with 1 if something is wrong.
    """
    try:
        with warnings.catch_warnings():
            # What has no effect yet is part of the answer, and need not be said twice.
            warnings.simplefilter("ignore", ConfigWarning)
            config = _read(file)
    except InvalidConfig as error:
        _refuse(list(error.problems), error.source or file, as_json, error.left_out)
        raise typer.Exit(1) from None
    except ConfigError as error:
        _refuse([Problem("", str(error))], "", as_json)
        raise typer.Exit(1) from None
    problems = [*missing(config.resolved), *required_plugins(config.resolved.plugins)]
    if problems:
        _refuse(problems, file, as_json)
        raise typer.Exit(1)
    _approve(config, file, as_json)


def _read(file: str) -> Config:
    if file == "-":
        return Config.from_bytes(sys.stdin.buffer.read(), "<stdin>")
    return Config.from_file(file)


def _approve(config: Config, file: str, as_json: bool) -> None:
    settings = config.resolved
    listen = [str(endpoint) for endpoint in settings.listen.endpoints]
    idle = config.not_honoured()
    connect = [_shown(endpoint) for endpoint in settings.connect.endpoints]
    if as_json:
        facts = {
            "ok": True,
            "file": file,
            "mode": settings.mode,
            "listen": listen,
            "connect": connect,
            "not_honoured": list(idle),
            "warnings": [
                {"path": problem.path, "message": problem.message} for problem in config.unapplied()
            ],
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(f"{file}: OK")
    typer.echo(f"mode      {settings.mode}")
    typer.echo(f"listen    {', '.join(listen) or 'nowhere'}")
    typer.echo(f"connect   {', '.join(connect) or 'to nobody in particular'}")
    for line, path in enumerate(idle):
        typer.echo(f"{'' if line else 'idle':<10}{path} (accepted, not honoured yet)")
    for problem in config.unapplied():
        typer.echo(f"warning   {problem.sentence()}")


def _shown(endpoint: EndPoint | EndpointGroup) -> str:
    if isinstance(endpoint, EndPoint):
        return str(endpoint)
    return f"{endpoint.strategy}({', '.join(str(locator) for locator in endpoint.locators)})"


def _refuse(problems: list[Problem], source: str, as_json: bool, left_out: int = 0) -> None:
    if as_json:
        listed = [
            {
                "path": problem.path,
                "message": problem.message,
                "line": problem.line,
                "column": problem.column,
            }
            for problem in problems
        ]
        typer.echo(
            json.dumps({"ok": False, "file": source, "errors": listed, "more": left_out}, indent=2)
        )
        return
    for problem in problems:
        typer.echo(problem.sentence(source), err=True)
    if left_out:
        typer.echo(f"and {left_out} more", err=True)
