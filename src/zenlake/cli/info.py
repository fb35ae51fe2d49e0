"""`zenlake info`: which zenlake this is, and what it runs on."""

from __future__ import annotations

import json
import platform
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Annotated

import typer

import zenlake


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which zenlake this is: version, compiled or interpreted, Python, platform."""
    modules = extensions()
    if as_json:
        facts = {
            "version": zenlake.__version__,
            "compiled": zenlake.compiled,
            "modules": modules,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": platform.platform(),
            "path": str(_home()),
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(f"zenlake   {zenlake.__version__} ({'compiled' if modules else 'interpreted'})")
    typer.echo(f"python    {platform.python_implementation()} {platform.python_version()}")
    typer.echo(f"platform  {platform.platform()}")
    typer.echo(f"path      {_home()}")
    for line, module in enumerate(modules):
        typer.echo(f"{'' if line else 'compiled':<10}{module}")


def extensions() -> list[str]:
    """The modules of this package that run as extensions, by name; empty when interpreted."""
    home = _home()
    return sorted(
        ".".join(path.relative_to(home.parent).parts)[: -len(suffix)]
        for suffix in EXTENSION_SUFFIXES
        for path in home.rglob(f"*{suffix}")
        # `.so` ends every other suffix too: a name with a dot left in it belongs to those.
        if "." not in path.name.removesuffix(suffix)
    )


def _home() -> Path:
    return Path(zenlake.__file__).parent
