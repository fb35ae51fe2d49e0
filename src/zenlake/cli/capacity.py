"""`zenlake capacity`: what a fleet takes."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.pages import examples
from zenlake.cli.quantities import duration, size


@examples(
    "zenlake capacity --robots 100 --rate 50 --payload 200",
    "zenlake capacity --robots 2000 --rate 10 --payload 1kB --keep 30d",
)
def capacity(
    robots: Annotated[int, typer.Option(min=0, metavar="N", help="How many robots there are.")],
    rate: Annotated[
        float, typer.Option(min=0, metavar="N", help="Samples a second, of each robot.")
    ],
    payload: Annotated[str, typer.Option(metavar="SIZE", help="The size of a sample.")],
    subscribers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Programs that hear all of it.")
    ] = 1,
    keep: Annotated[str, typer.Option(metavar="TIME", help="What the journal keeps.")] = "7d",
    disk: Annotated[
        str, typer.Option(metavar="SIZE", help="What a disk takes a second, for hours.")
    ] = "100MB",
    as_json: Annotated[bool, typer.Option("--json", help="Print an object.")] = False,
) -> None:
    """Print how many routers, disks and cores a fleet takes.

    The figures behind it are of a small machine, and half of each core and disk is left free: see
    docs/how-to/capacity.md.
    """
    import json
    from dataclasses import asdict

    from zenlake.supervise.capacity import DAY, FleetLoad, needs

    octets = size(payload, "--payload")
    kept = duration(keep, "--keep")
    speed = size(disk, "--disk")
    assert octets is not None
    assert kept is not None
    assert speed is not None
    if not speed:
        raise typer.BadParameter("a disk that takes nothing keeps nothing", param_hint="--disk")
    needed = needs(FleetLoad(robots, rate, octets, subscribers, kept / DAY, float(speed)))
    if as_json:
        typer.echo(json.dumps(asdict(needed)))
        return
    lines = (
        ("comes", f"{needed.samples:,.0f} samples/s, {_bytes(needed.octets)}/s of payload"),
        ("routers", f"{needed.routers}, busy with {needed.router_cores:.2f} cores"),
        ("", f"{_bytes(needed.router_memory)} of memory in each for what is declared"),
        ("journal", f"{_disks(needed.journal_disks)}, {_bytes(needed.journal_room)} for {keep}"),
        ("Spark", f"{_cores(needed.cores)}, busy with {needed.spark_cores:.2f}"),
        ("lake", f"writes up to {_bytes(needed.lake_written)} a day, rewrites included"),
    )
    for name, need in lines:
        typer.echo(f"{name:10}{need}")


def _bytes(count: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= power:
            return f"{count / power:.3g} {unit}"
    return f"{count:.0f} B"


def _disks(count: int) -> str:
    return "1 disk" if count == 1 else f"{count} disks"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"
