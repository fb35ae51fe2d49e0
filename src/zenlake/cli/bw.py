"""`zenlake bw`: how many bytes are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.hz import Every, WatchedKey, WindowSize
from zenlake.cli.options import Count

if TYPE_CHECKING:
    from zenlake.cli.rate import Window


@networked
def bw(
    connection: Connection,
    key: WatchedKey,
    count: Count = None,
    window: WindowSize = 10_000,
    every: Every = 1.0,
) -> None:
    """Tell how many bytes of payload come in a second, and how large samples are.

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

    sizes = came.sizes()
    if sizes is None or came.remembered() < 2:
        note("nothing to tell yet")
        return False
    rate = came.bandwidth()
    if connection.as_json:
        print_json(
            {
                "bytes_per_s": rate,
                "mean": sizes.mean,
                "min": sizes.least,
                "max": sizes.most,
                "std": sizes.deviation,
                "window": came.remembered(),
                "samples": came.count,
            }
        )
    else:
        typer.echo(
            f"{scaled(rate)}/s  mean: {scaled(sizes.mean)}  min: {scaled(sizes.least)}  "
            f"max: {scaled(sizes.most)}  window: {came.remembered()}"
        )
    return True


def scaled(size: float) -> str:
    """A number of bytes that people can read."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
