"""`zenlake sub`: hear what is published."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, Key
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample


@examples(
    "zenlake sub -k 'demo/**'",
    "zenlake sub -k 'robot/*/pose' -n 10 --json",
    "zenlake sub -k '**' --stats",
)
@networked
def sub(
    connection: Connection,
    key: Key = "demo/example/**",
    count: Count = None,
    stats: Annotated[
        bool,
        typer.Option("--stats", help="Count instead of printing: a line each second, and a total."),
    ] = False,
) -> None:
    """Print what is published: key, payload, encoding, time."""
    from zenlake.cli.patience import looking_out

    with connection.session() as session, looking_out(session, connection), until_interrupted():
        if stats:
            _count(session, connection, key, count)
        else:
            _print(session, connection, key, count)


def _print(session: Session, connection: Connection, key: str, count: int | None) -> None:
    from zenlake.cli.show import print_json, sample_facts, sample_line

    with session.declare_subscriber(key) as subscriber:
        note(f"subscribed to '{key}'; Ctrl-C ends it")
        for number, sample in enumerate(subscriber, 1):
            if connection.as_json:
                print_json(sample_facts(sample))
            else:
                typer.echo(sample_line(sample))
            if number == count:
                break


class SampleTally:
    """How much has come, and the bytes of it; stops counting at the last that was asked for."""

    def __init__(self, most: int | None) -> None:
        """`most`: after how many `full` is set."""
        self.full = threading.Event()
        self.samples = 0
        self.size = 0
        self.first = 0.0
        self.last = 0.0
        self._most = most

    def add(self, sample: Sample) -> None:
        """One more."""
        if self.full.is_set():
            return
        self.last = time.monotonic()
        if not self.samples:
            self.first = self.last
        self.samples += 1
        self.size += sample.size()
        if self.samples == self._most:
            self.full.set()


def _count(session: Session, connection: Connection, key: str, count: int | None) -> None:
    tally = SampleTally(count)
    samples, size = 0, 0
    with session.declare_subscriber(key, tally.add) as subscriber:
        note(f"counting what comes on '{key}'; Ctrl-C ends it")
        before = time.monotonic()
        try:
            while not tally.full.wait(1.0):
                now = time.monotonic()
                _tell_rate(connection, tally.samples - samples, tally.size - size, now - before)
                samples, size, before = tally.samples, tally.size, now
        finally:
            dropped = {why: many for why, many in subscriber.stats.dropped.items() if many}
            _tell_total(connection, tally, dropped)


def _tell_rate(connection: Connection, samples: int, size: int, seconds: float) -> None:
    from zenlake.cli.show import print_json

    if connection.as_json:
        print_json({"samples_per_s": samples / seconds, "bytes_per_s": size / seconds})
        return
    typer.echo(f"{samples / seconds:>10.0f} samples/s  {size / seconds / 1e6:>10.3f} MB/s")


def _tell_total(connection: Connection, tally: SampleTally, dropped: dict[str, int]) -> None:
    from zenlake.cli.show import print_json

    seconds = tally.last - tally.first
    if connection.as_json:
        print_json(
            {
                "samples": tally.samples,
                "bytes": tally.size,
                "seconds": seconds,
                "dropped": dropped,
            }
        )
        return
    lost = ", ".join([f"{many} {why}" for why, many in dropped.items()]) or "none"
    typer.echo(f"{tally.samples} samples, {tally.size} B in {seconds:.3f} s; dropped: {lost}")
