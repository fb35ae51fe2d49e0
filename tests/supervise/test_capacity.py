"""What a fleet takes: more of it never takes less, and figures of the machine are obeyed."""

from __future__ import annotations

from dataclasses import astuple, replace

from hypothesis import given
from hypothesis import strategies as st

from zenlake.supervise.capacity import DAY, FIGURES, FleetLoad, needs

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


def test_half_of_what_there_is_stays_free() -> None:
    fleet = FleetLoad(1000, 100.0, 500)
    found = needs(fleet)
    assert found.routers * FIGURES.free >= found.router_cores > (found.routers - 1) * FIGURES.free
    assert found.cores * FIGURES.free >= found.spark_cores > (found.cores - 1) * FIGURES.free
    written = found.samples * found.journal_row
    assert found.journal_disks * fleet.disk * FIGURES.free >= written
    assert found.journal_room == written * fleet.days * DAY


def test_sessions_alone_can_ask_for_another_router() -> None:
    assert needs(FleetLoad(5000, 0.001, 10)).routers == 6
    assert needs(FleetLoad(5000, 0.001, 10), replace(FIGURES, sessions=10_000)).routers == 1
