"""`zenlake hz` and `zenlake bw`: how often something is published, and how many bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, Every
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.cli.rate import Window

WatchedKey = Annotated[str, typer.Argument(metavar="KEYEXPR", help="The keys to measure.")]
WindowSize = Annotated[
    int,
    typer.Option(
        "-w",
        "--window",
        metavar="COUNT",
        min=2,
        help="Measure over the last COUNT samples of a key.",
    ),
]


@examples(
    "zenlake hz 'robot/*/pose'",
    "zenlake hz robot/1/pose -n 100 --json",
)
@networked
def hz(
    connection: Connection,
    key: WatchedKey,
    count: Count = None,
    window: WindowSize = 10_000,
    every: Every = 1.0,
) -> None:
    """Measure how often samples come, for each key.

    Prints the mean rate, and the shortest, longest and standard deviation of the time between
    two samples. Ends with 3 if -n was given and no key had two samples.
    """
    measure(connection, key, count, window, every, frequency)


@examples(
    "zenlake bw 'robot/**'",
    "zenlake bw robot/1/camera -n 100",
)
@networked
def bw(
    connection: Connection,
    key: WatchedKey,
    count: Count = None,
    window: WindowSize = 10_000,
    every: Every = 1.0,
) -> None:
    """Measure how many bytes of payload come, for each key.

    Prints bytes a second, and the mean, smallest and largest payload. Ends with 3 if -n was given
    and no key had two samples.
    """
    measure(connection, key, count, window, every, bandwidth)


def measure(
    connection: Connection,
    key: str,
    count: int | None,
    window: int,
    every: float,
    told: Callable[[Window], tuple[dict[str, float], str] | None],
) -> None:
    """Listen, and print what is `told` of the window every so often, as JSON or as a line."""
    from zenlake.cli.patience import looking_out
    from zenlake.cli.rate import Window
    from zenlake.cli.show import print_json

    def tell() -> bool:
        found = told(came)
        if found is None:
            note("nothing to tell yet")
            return False
        numbers, line = found
        if connection.as_json:
            print_json({**numbers, "window": came.remembered(), "samples": came.count})
        else:
            typer.echo(f"{line}  window: {came.remembered()}")
        return True

    came = Window(window, count)
    with (
        connection.session() as session,
        looking_out(session, connection),
        session.declare_subscriber(key, came.heard),
        until_interrupted(),
    ):
        note(f"listening to '{key}'; Ctrl-C ends it")
        while not came.full.wait(every):
            tell()
    if not tell():
        raise typer.Exit(NOBODY)


def frequency(came: Window) -> tuple[dict[str, float], str] | None:
    """How often samples came, for programs and for people; None if that is not known."""
    pauses = came.periods()
    if pauses is None or not pauses.mean:
        return None
    rate = 1 / pauses.mean
    numbers = {
        "hz": rate,
        "min_s": pauses.least,
        "max_s": pauses.most,
        "std_s": pauses.deviation,
    }
    return numbers, (
        f"average rate: {rate:.3f}  min: {pauses.least:.4f} s  max: {pauses.most:.4f} s  "
        f"std dev: {pauses.deviation:.5f} s"
    )


def bandwidth(came: Window) -> tuple[dict[str, float], str] | None:
    """How many bytes came, for programs and for people; None if that is not known."""
    from zenlake.cli.show import scaled

    sizes = came.sizes()
    if sizes is None or came.remembered() < 2:
        return None
    rate = came.bandwidth()
    numbers = {
        "bytes_per_s": rate,
        "mean": sizes.mean,
        "min": sizes.least,
        "max": sizes.most,
        "std": sizes.deviation,
    }
    return numbers, (
        f"{scaled(rate)}/s  mean: {scaled(sizes.mean)}  min: {scaled(sizes.least)}  "
        f"max: {scaled(sizes.most)}"
    )
