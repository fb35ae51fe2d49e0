"""`zenlake ping`: the time of a round trip."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note
from zenlake.cli.pages import examples

PING = "test/ping"
PONG = "test/pong"


@examples(
    "zenlake ping -e tcp/localhost:7447",
    "zenlake ping 1024 -n 1000 --json",
)
@networked
def ping(
    connection: Connection,
    size: Annotated[
        int,
        typer.Argument(
            metavar="PAYLOAD_SIZE", min=0, max=1 << 30, help="The size of the payload, in bytes."
        ),
    ] = 64,
    samples: Annotated[
        int,
        typer.Option(
            "-n", "--samples", "--iter", metavar="COUNT", min=1, help="Round trips to measure."
        ),
    ] = 100,
    warmup: Annotated[
        float,
        typer.Option(
            "-w", "--warmup", metavar="SECONDS", min=0, help="Time before measuring begins."
        ),
    ] = 1.0,
    interval: Annotated[
        float,
        typer.Option(
            "-i", "--interval", metavar="SECONDS", min=0, help="The interval between two."
        ),
    ] = 0.0,
    timeout: Annotated[
        float,
        typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="The timeout for an echo."),
    ] = 5.0,
    express: Annotated[
        bool, typer.Option("--express/--no-express", help="Send at once: no batching.")
    ] = True,
) -> None:
    """Measure round trips to a `zenlake pong`.

    Any program that sends test/ping back as test/pong will do, such as Eclipse's z_pong. Ends
    with 3 if there is none, with 1 if an echo does not come before the timeout.
    """
    from zenlake.cli.patience import WaitNotice, matched
    from zenlake.engine.handlers import Callback
    from zenlake.values import CongestionControl

    back = threading.Semaphore(0)
    data = (bytes(range(10)) * (size // 10 + 1))[:size]
    trips: list[int] = []
    with connection.session() as session:
        # On the thread that hears: one that had to be woken would be measured too.
        session.declare_subscriber(PONG, Callback(lambda _: back.release(), indirect=False))
        publisher = session.declare_publisher(
            PING, congestion_control=CongestionControl.BLOCK, express=express
        )
        if not matched(publisher, session, connection):
            raise typer.Exit(NOBODY)
        with WaitNotice("measuring"):
            start = time.perf_counter_ns()
            end = start + int(warmup * 1e9)
            while len(trips) < samples:
                before = time.perf_counter_ns()
                publisher.put(data)
                if not back.acquire(timeout=timeout):
                    note(f"no echo within {timeout:g} s: {len(trips)} of {samples} came back")
                    raise typer.Exit(FAILED)
                after = time.perf_counter_ns()
                if before >= end:
                    trips.append(after - before)
                    if interval:
                        threading.Event().wait(interval)
    _tell(trips, size, connection.as_json)


def percentile(ordered: Sequence[int], percent: float) -> int:
    """The smallest value that at least `percent` of `ordered` do not exceed."""
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def _tell(trips: list[int], size: int, as_json: bool) -> None:
    from zenlake.cli.show import print_json

    trips.sort()
    points = {"min": trips[0]} | {
        f"p{percent}": percentile(trips, percent) for percent in (50, 90, 99)
    }
    points["max"] = trips[-1]
    if as_json:
        facts: dict[str, object] = {"size": size, "samples": len(trips)}
        print_json(facts | {f"{name}_us": value / 1000 for name, value in points.items()})
        return
    typer.echo(f"{len(trips)} round trips of {size} B, in µs")
    typer.echo("  ".join([f"{name} {value / 1000:.1f}" for name, value in points.items()]))
