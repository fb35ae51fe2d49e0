"""What the lake writes, counted by the system: `python -m bench.lake amplification`, but short."""

from __future__ import annotations

from pathlib import Path

from bench.lake.amplification import amplification


def test_a_byte_of_payload_makes_the_lake_write_less_than_three(tmp_path: Path) -> None:
    told = amplification(tmp_path, 90, 20, 5.0, 0)
    assert told["rows"] > 10_000
    assert told["written for a byte of payload"] < 3
    assert told["commits of latest"] <= 4
    assert told["commits of gaps"] >= 5
