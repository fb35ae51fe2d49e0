"""What a fleet takes: robots × rate × payload → routers, disks of the journal, cores of Spark.

    >>> from zenlake.supervise.capacity import FleetLoad, needs
    >>> needs(FleetLoad(robots=100, rate=50, payload=200)).routers
    1

The figures are of one machine, and say so; `bench.capacity` compares what is foretold with what
`zenlake up` really takes, at points that a machine can run. Machines differ by a factor of two or
three, so half of every core is left free.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

__all__ = ["FIGURES", "Figures", "FleetLoad", "Needs", "needs"]

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a sample costs, on two cores of a cloud machine (`python -m bench.capacity`)."""

    router_steady: float = 0.14
    """Cores that a router which records takes as soon as something comes: reads and flushes."""
    router_row: float = 3.5e-6
    """Seconds of the processor for a sample that is recorded."""
    router_byte: float = 10e-9
    """The same for a byte of payload."""
    subscriber_row: float = 4e-6
    """Seconds of the processor of a router for a sample that it passes on, to each subscriber."""
    subscriber_byte: float = 1e-9
    """The same for a byte."""
    spark_steady: float = 0.4
    """Cores that the lake takes as soon as something comes: a commit every ten seconds."""
    spark_row: float = 4e-6
    """Seconds of the processor for a sample that becomes a row of `samples`."""
    spark_byte: float = 15e-9
    """The same for a byte."""
    journal_row: float = 100.0
    """Bytes in the journal for a sample, beside its payload."""
    amplification: float = 3.0
    """Bytes that the lake writes for a byte of payload, rewrites and logs included."""
    client_memory: float = 6e3
    """Bytes in every router for a client of any router, with one subscriber of its own."""
    sessions: int = 1000
    """Sessions of a router, as `transport/unicast/max_sessions` has it by default."""
    free: float = 0.5
    """The share of a core, and of a disk's speed, that is left for bad days."""


FIGURES: Final = Figures()


@dataclass(frozen=True, slots=True)
class FleetLoad:
    """What comes."""

    robots: int
    rate: float
    """Samples a second, of each robot."""
    payload: int
    """Bytes of a sample."""
    subscribers: int = 1
    """Programs that hear every sample while it comes, beside the journal."""
    days: float = 7.0
    """How long the journal keeps what came."""
    disk: float = 100e6
    """Bytes a second that a disk takes, evenly and for hours."""

    @property
    def samples(self) -> float:
        """Samples a second, of all."""
        return self.robots * self.rate


@dataclass(frozen=True, slots=True)
class Needs:
    """What that takes."""

    samples: float
    """A second."""
    octets: float
    """Of payload, a second."""
    router_cores: float
    """Cores that routers are busy with; each uses one, more or less."""
    routers: int
    router_memory: float
    """Bytes in each router for what all clients declare."""
    journal_row: float
    """Bytes of a row."""
    journal_disks: int
    """By speed; their room is `journal_room`."""
    journal_room: float
    """Bytes that are kept."""
    spark_cores: float
    """Cores that the lake is busy with."""
    cores: int
    """To have for the lake."""
    lake_written: float
    """Bytes that the lake writes a day."""


def needs(fleet: FleetLoad, figures: Figures = FIGURES) -> Needs:
    """What a fleet takes."""
    samples = fleet.samples
    octets = samples * fleet.payload
    router_cores = spark = 0.0
    if samples:
        recording = figures.router_row + figures.router_byte * fleet.payload
        passing = figures.subscriber_row + figures.subscriber_byte * fleet.payload
        router_cores = figures.router_steady
        router_cores += samples * (recording + passing * fleet.subscribers)
        spark = figures.spark_steady
        spark += samples * (figures.spark_row + figures.spark_byte * fleet.payload)
    row = figures.journal_row + fleet.payload
    by_work = ceil(router_cores / figures.free)
    by_sessions = ceil((fleet.robots + fleet.subscribers) / figures.sessions)
    return Needs(
        samples=samples,
        octets=octets,
        router_cores=router_cores,
        routers=max(1, by_work, by_sessions),
        router_memory=fleet.robots * figures.client_memory,
        journal_row=row,
        journal_disks=max(1, ceil(samples * row / (fleet.disk * figures.free))),
        journal_room=samples * row * fleet.days * DAY,
        spark_cores=spark,
        cores=max(1, ceil(spark / figures.free)),
        lake_written=octets * figures.amplification * DAY,
    )
