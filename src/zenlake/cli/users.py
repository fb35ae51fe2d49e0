"""`zenlake users`: who may connect to `zenlake up --open`, with a password."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from zenlake.cli.ending import ended_well
from zenlake.cli.pages import add, examples, group

users = group("Add and remove users of a router.")

DATA = Path("zenlake-data")
SHORTEST = 8
Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of `zenlake up`.")]


@examples("zenlake users add anna", "zenlake users add robot-7 --generate")
def add_user(
    name: Annotated[str, typer.Argument(help="The user.")],
    data: Data = DATA,
    generate: Annotated[
        bool, typer.Option("--generate", help="Choose a password and print it.")
    ] = False,
) -> None:
    """Add a user, or give one another password.

    The password is asked for, or read from the standard input.
    """
    from zenlake.errors import LocalError

    with ended_well():
        if not name or ":" in name or not name.isprintable() or name != name.strip():
            raise LocalError(f"'{name}' cannot be a user: it has a colon, a space or nothing in it")
        if generate:
            password = secrets.token_urlsafe(18)
        elif sys.stdin.isatty():
            password = typer.prompt("password", hide_input=True, confirmation_prompt=True)
        else:
            password = sys.stdin.readline().rstrip("\n")
        if len(password) < SHORTEST:
            raise LocalError(f"a password has at least {SHORTEST} characters; --generate makes one")
        known = _read(data)
        known[name] = password
        _write(data, known)
        typer.echo(password if generate else f"{name} may connect", err=not generate)


@examples("zenlake users remove anna")
def remove(name: Annotated[str, typer.Argument(help="The user.")], data: Data = DATA) -> None:
    """Remove a user.

    Sessions that are open stay until they end; the router reads the users when it starts.
    """
    from zenlake.errors import LocalError

    with ended_well():
        known = _read(data)
        if name not in known:
            raise LocalError(f"there is no user '{name}'; there are {', '.join(known) or 'none'}")
        del known[name]
        _write(data, known)


@examples("zenlake users list")
def list_users(data: Data = DATA) -> None:
    """Name the users."""
    with ended_well():
        for name in sorted(_read(data)):
            typer.echo(name)


def file_of(data: Path) -> Path:
    """Where the users of a data folder are."""
    return data / "users"


def _read(data: Path) -> dict[str, str]:
    path = file_of(data)
    if not path.exists():
        return {}
    passwords: dict[str, str] = {}
    for line in path.read_text().splitlines():
        user, colon, password = line.partition(":")
        if colon:
            passwords[user] = password
    return passwords


def _write(data: Path, known: dict[str, str]) -> None:
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = file_of(data)
    fresh = path.with_name(f".users.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w") as file:
        file.write("".join(f"{user}:{password}\n" for user, password in known.items()))
    fresh.replace(path)


add(users, "add", add_user)
add(users, "remove", remove)
add(users, "list", list_users)
