"""What a fleet takes: more of it never takes less, and figures of the machine are obeyed."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.supervise.capacity import FIGURES, Figures, FleetLoad, needs

fleets = st.builds(
    FleetLoad,
    robots=st.integers(0, 100_000),
    rate=st.floats(0, 1000),
    payload=st.integers(0, 1 << 20),
    subscribers=st.integers(0, 50),
    days=st.floats(0, 365),
)


@given(fleets, st.sampled_from(["robots", "rate", "payload", "subscribers", "days"]))
def test_more_of_anything_never_takes_less(fleet: FleetLoad, what: str) -> None:
    more = replace(fleet, **{what: getattr(fleet, what) * 2 + 1})
    pairs = zip(astuple(needs(fleet)), astuple(needs(more)), strict=True)
    assert all(before <= after for before, after in pairs)


def test_nobody_takes_one_router_one_disk_and_one_core() -> None:
    nobody = needs(FleetLoad(0, 0.0, 0, subscribers=0))
    assert (nobody.routers, nobody.journal_disks, nobody.cores) == (1, 1, 1)
    assert nobody.router_cores == nobody.spark_cores == nobody.journal_room == 0.0


def test_a_fleet_is_reckoned_as_by_hand() -> None:
    figures = Figures(
        *(0.14, 3.5e-6, 10e-9, 4e-6, 1e-9, 0.4, 4e-6, 15e-9),
        journal_row=100.0, amplification=3.0, client_memory=6e3, sessions=1000, free=0.5,
    )  # fmt: skip
    found = needs(FleetLoad(1000, 100.0, 500, subscribers=2, days=7.0, disk=100e6), figures)
    # 100,000 samples a second; each takes a router 8.5 us, and 4.5 us for each subscriber.
    assert (found.samples, found.octets) == (100_000, 50_000_000)
    assert found.router_cores == pytest.approx(0.14 + 1.75)
    assert (found.routers, found.router_memory) == (4, 6_000_000)
    # Rows of 600 bytes: 60 MB a second, of which a disk is to take half of 100.
    assert (found.journal_row, found.journal_disks) == (600, 2)
    assert found.journal_room == pytest.approx(36_288e9)
    # 11.5 us of Spark for each sample.
    assert found.spark_cores == pytest.approx(0.4 + 1.15)
    assert found.cores == 4
    assert found.lake_written == pytest.approx(12_960e9)


def test_half_of_what_there_is_stays_free() -> None:
    fleet = FleetLoad(1000, 100.0, 500)
    found = needs(fleet)
    assert found.routers * FIGURES.free >= found.router_cores > (found.routers - 1) * FIGURES.free
    assert found.cores * FIGURES.free >= found.spark_cores > (found.cores - 1) * FIGURES.free
    written = found.samples * found.journal_row
    assert found.journal_disks * fleet.disk * FIGURES.free >= written


def test_sessions_alone_can_ask_for_another_router() -> None:
    assert needs(FleetLoad(5000, 0.001, 10)).routers == 6
    assert needs(FleetLoad(5000, 0.001, 10), replace(FIGURES, sessions=10_000)).routers == 1
