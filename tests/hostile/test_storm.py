"""A short storm: attacks of `make storm`, small, against a real router that two others use."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.storm.__main__ import measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MIB = 1 << 20


@pytest.mark.parametrize("attack", ["aggregates", "interests", "chunks", "routers"])
def test_the_others_lose_nothing_and_the_router_keeps_its_memory(
    attack: str, tmp_path: Path
) -> None:
    measured = measure(attack, "zenlake", 0.1, tmp_path)
    assert measured["lost"] == 0, measured
    assert measured["during"] is not None, measured
    assert measured["said"] != "the router died"
    assert measured["memory"] < 200 * MIB, measured
