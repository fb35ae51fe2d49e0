"""`zenlake hz`: how often something is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import Count

if TYPE_CHECKING:
    from zenlake.cli.rate import Window

WatchedKey = Annotated[str, typer.Argument(metavar="KEYEXPR", help="What to listen to.")]
WindowSize = Annotated[
    int,
    typer.Option("-w", "--window", metavar="COUNT", min=2, help="How many samples count."),
]
Every = Annotated[
    float,
    typer.Option("-i", "--interval", metavar="SECONDS", min=0.05, help="How often it is told."),
]


@networked
def hz(
    connection: Connection,
    key: WatchedKey,
    count: Count = None,
    window: WindowSize = 10_000,
    every: Every = 1.0,
) -> None:
    """Tell how often samples come: the mean rate, and the least, most and spread of the pauses.

    Ends with 3 if it was told to stop and fewer than two came.
    """
    from zenlake.cli.patience import looking_out
    from zenlake.cli.rate import Window

    came = Window(window, count)
    with (
        connection.session() as session,
        looking_out(session, connection),
        session.declare_subscriber(key, came.heard),
        until_interrupted(),
    ):
        note(f"listening to '{key}'; Ctrl-C ends it")
        while not came.full.wait(every):
            tell(connection, came)
    if not tell(connection, came):
        raise typer.Exit(NOBODY)


def tell(connection: Connection, came: Window) -> bool:
    """Tell what is known so far; False if that is nothing."""
    from zenlake.cli.show import print_json

    spread = came.periods()
    if spread is None or not spread.mean:
        note("nothing to tell yet")
        return False
    rate = 1 / spread.mean
    if connection.as_json:
        print_json(
            {
                "hz": rate,
                "min_s": spread.least,
                "max_s": spread.most,
                "std_s": spread.deviation,
                "window": came.remembered(),
                "samples": came.count,
            }
        )
    else:
        typer.echo(
            f"average rate: {rate:.3f}  min: {spread.least:.4f} s  max: {spread.most:.4f} s  "
            f"std dev: {spread.deviation:.5f} s  window: {came.remembered()}"
        )
    return True
