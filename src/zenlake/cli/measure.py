"""`zenlake hz` and `zenlake bw`: how often something is published, and how many bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, Every
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.cli.rate import Window, Windows

HZ = ("HZ", "MIN", "MAX", "STD DEV", "SAMPLES")
BW = ("BYTES/S", "MEAN", "MIN", "MAX", "SAMPLES")

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
    window: WindowSize = 1_000,
    every: Every = 1.0,
) -> None:
    """Measure how often samples come, for each key.

    Prints the mean rate, and the shortest, the longest and the standard deviation of the time
    between two samples. Ends with 3 if -n was given and no key had two samples.
    """
    measure(connection, key, count, window, every, HZ, frequency)


@examples(
    "zenlake bw 'robot/**'",
    "zenlake bw robot/1/camera -n 100",
)
@networked
def bw(
    connection: Connection,
    key: WatchedKey,
    count: Count = None,
    window: WindowSize = 1_000,
    every: Every = 1.0,
) -> None:
    """Measure how many bytes of payload come, for each key.

    Prints bytes a second, and the mean, smallest and largest payload. Ends with 3 if -n was given
    and no key had two samples.
    """
    measure(connection, key, count, window, every, BW, bandwidth)


def measure(
    connection: Connection,
    key: str,
    count: int | None,
    window: int,
    every: float,
    heads: Sequence[str],
    measured: Callable[[Window], tuple[dict[str, float], Sequence[str]] | None],
) -> None:
    """Listen, and print now and then what is `measured` of each key: JSON, or lines under heads."""
    from zenlake.cli.patience import looking_out
    from zenlake.cli.rate import Windows

    came = Windows(window, count)
    with (
        connection.session() as session,
        looking_out(session, connection),
        session.declare_subscriber(key, came.heard),
        until_interrupted(),
    ):
        note(f"measuring '{key}'; Ctrl-C ends it")
        while not came.full.wait(every):
            if not _report(connection, came, heads, measured):
                note("no key has had two samples yet")
    if not _report(connection, came, heads, measured):
        note("no key had two samples")
        raise typer.Exit(NOBODY)


def _report(
    connection: Connection,
    came: Windows,
    heads: Sequence[str],
    measured: Callable[[Window], tuple[dict[str, float], Sequence[str]] | None],
) -> bool:
    """Print a line for each key; whether there was any."""
    from zenlake.cli.show import print_json

    rows: list[tuple[str, Sequence[str]]] = []
    for key, window in came.by_key():
        measurement = measured(window)
        if measurement is None:
            continue
        numbers, cells = measurement
        rows.append((key, (*cells, str(window.count))))
        if connection.as_json:
            facts = {"window": window.remembered(), "samples": window.count}
            print_json({"key": key, **numbers, **facts})
    if rows and not connection.as_json:
        for line in table(heads, rows, shutil.get_terminal_size((80, 24)).columns):
            typer.echo(line)
    return bool(rows)


def table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int) -> list[str]:
    """A line for each key under a line of heads, each at most `width` wide."""
    from zenlake.cli.show import elided
    from zenlake.printable import printable

    sizes = [
        max(len(head), 8, *[len(cells[number]) for _, cells in rows])
        for number, head in enumerate(heads)
    ]
    room = max(12, width - sum(sizes) - 2 * len(sizes))
    names = [elided(printable(key), room) for key, _ in rows]
    wide = max(len("KEY"), *[len(name) for name in names])

    def line(name: str, cells: Sequence[str]) -> str:
        numbers = [f"{cell:>{size}}" for cell, size in zip(cells, sizes, strict=True)]
        return "  ".join([f"{name:<{wide}}", *numbers])

    lines = [line(name, cells) for name, (_, cells) in zip(names, rows, strict=True)]
    return [line("KEY", heads), *lines]


def frequency(came: Window) -> tuple[dict[str, float], Sequence[str]] | None:
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
    spread = (pauses.least, pauses.most, pauses.deviation)
    return numbers, (f"{rate:.3f}", *[f"{seconds * 1000:.2f} ms" for seconds in spread])


def bandwidth(came: Window) -> tuple[dict[str, float], Sequence[str]] | None:
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
    return numbers, [scaled(size) for size in (rate, sizes.mean, sizes.least, sizes.most)]
