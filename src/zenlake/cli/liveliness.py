"""`zenlake liveliness`: be alive, ask who is, and hear who comes and goes."""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, Key, Timeout

if TYPE_CHECKING:
    from zenlake.api.session import Session


class Action(StrEnum):
    """What to do about liveliness."""

    TOKEN = "token"
    GET = "get"
    SUB = "sub"


@networked
def liveliness(
    connection: Connection,
    action: Annotated[
        Action,
        typer.Argument(help="token: be alive; get: who is; sub: who comes and goes."),
    ],
    key: Key,
    history: Annotated[
        bool, typer.Option("--history", help="sub: begin with those who are alive already.")
    ] = False,
    count: Count = None,
    timeout: Timeout = 10.0,
) -> None:
    """Be alive under a key, ask who is, or hear who comes and goes.

    `get` ends with 3 if nobody is alive.
    """
    if history and action is not Action.SUB:
        raise typer.BadParameter(f"'{action}' has none; only 'sub' does", param_hint="--history")
    if count is not None and action is not Action.SUB:
        raise typer.BadParameter(f"'{action}' has no end to count to", param_hint="--iter")
    with connection.session() as session:
        if action is Action.GET:
            _get(session, connection, key, timeout)
        elif action is Action.SUB:
            _sub(session, connection, key, history, count)
        else:
            _token(session, connection, key)


def _token(session: Session, connection: Connection, key: str) -> None:
    from zenlake.cli.patience import looking_out

    with (
        looking_out(session, connection),
        until_interrupted(),
        session.liveliness().declare_token(key),
    ):
        note(f"alive as '{key}'; Ctrl-C ends it")
        threading.Event().wait()


def _get(session: Session, connection: Connection, key: str, timeout: float) -> None:
    from zenlake.cli.patience import Waiting, nobody
    from zenlake.cli.show import escaped, print_json, readable

    alive, errors = 0, 0
    with Waiting("waiting for answers") as waiting:
        for reply in session.liveliness().get(key, timeout=timeout):
            waiting.clear()
            sample, error = reply.ok, reply.err
            if sample is not None:
                alive += 1
                _tell(connection, str(sample.key_expr), True)
            elif error is not None:
                errors += 1
                said = readable(error.payload.to_bytes())
                if connection.as_json:
                    print_json({"alive": False, "error": said})
                else:
                    note(f"an error for an answer: {escaped(said)}")
    if alive:
        return
    if errors:
        raise typer.Exit(FAILED)
    note(f"nobody is alive as '{key}'" if session.info.transports() else nobody(session))
    raise typer.Exit(NOBODY)


def _sub(
    session: Session, connection: Connection, key: str, history: bool, count: int | None
) -> None:
    from zenlake.cli.patience import looking_out

    with (
        looking_out(session, connection),
        until_interrupted(),
        session.liveliness().declare_subscriber(key, history=history) as subscriber,
    ):
        note(f"watching who is alive as '{key}'; Ctrl-C ends it")
        for number, sample in enumerate(subscriber, 1):
            _tell(connection, str(sample.key_expr), sample.kind.name == "PUT")
            if number == count:
                break


def _tell(connection: Connection, key: str, alive: bool) -> None:
    from zenlake.cli.show import escaped, paint, print_json

    if connection.as_json:
        print_json({"key": key, "alive": alive})
        return
    word = paint("alive", "green") if alive else paint("gone", "red")
    typer.echo(f"{word} {paint(escaped(key), 'cyan')}")
