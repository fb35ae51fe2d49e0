"""`zenlake liveliness`: be alive, ask who is, and hear who comes and goes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, Key, Timeout
from zenlake.cli.pages import group, page

if TYPE_CHECKING:
    from zenlake.api.session import Session


liveliness = group("Be alive under a key, ask who is, watch who comes and goes.")


@page(liveliness, "token", "zenlake liveliness token -k group1/member1")
@networked
def token(connection: Connection, key: Key) -> None:
    """Declare a liveliness token, until Ctrl-C.

    Others see the key as alive for as long as this runs.
    """
    from zenlake.cli.patience import looking_out

    with (
        connection.session() as session,
        looking_out(session, connection),
        until_interrupted(),
        session.liveliness().declare_token(key),
    ):
        note(f"alive as '{key}'; Ctrl-C ends it")
        threading.Event().wait()


@page(liveliness, "get", "zenlake liveliness get -k 'group1/**'")
@networked
def get(connection: Connection, key: Key, timeout: Timeout = 10.0) -> None:
    """Print the liveliness tokens that match a key expression.

    Ends with 3 if there is none.
    """
    with connection.session() as session:
        _get(session, connection, key, timeout)


@page(liveliness, "sub", "zenlake liveliness sub -k 'robot/*/alive' --history")
@networked
def sub(
    connection: Connection,
    key: Key,
    history: Annotated[
        bool, typer.Option("--history", help="Begin with the tokens that are there already.")
    ] = False,
    count: Count = None,
) -> None:
    """Print liveliness tokens as they appear and vanish."""
    from zenlake.cli.patience import looking_out

    with (
        connection.session() as session,
        looking_out(session, connection),
        until_interrupted(),
        session.liveliness().declare_subscriber(key, history=history) as subscriber,
    ):
        note(f"watching who is alive as '{key}'; Ctrl-C ends it")
        for number, sample in enumerate(subscriber, 1):
            _tell(connection, str(sample.key_expr), sample.kind.name == "PUT")
            if number == count:
                break


def _get(session: Session, connection: Connection, key: str, timeout: float) -> None:
    from zenlake.cli.patience import WaitNotice, nobody
    from zenlake.cli.show import print_json, readable
    from zenlake.printable import printable

    alive, errors = 0, 0
    with WaitNotice("waiting for replies") as waiting:
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
                    note(f"an error for a reply: {printable(said)}")
    if alive:
        return
    if errors:
        raise typer.Exit(FAILED)
    note(f"nobody is alive as '{key}'" if session.info.transports() else nobody(session))
    raise typer.Exit(NOBODY)


def _tell(connection: Connection, key: str, alive: bool) -> None:
    from zenlake.cli.show import paint, print_json
    from zenlake.printable import printable

    if connection.as_json:
        print_json({"key": key, "alive": alive})
        return
    word = paint("alive", "green") if alive else paint("gone", "red")
    typer.echo(f"{word} {paint(printable(key), 'cyan')}")
