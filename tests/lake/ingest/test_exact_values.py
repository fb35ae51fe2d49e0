"""Every published value can be read back exactly: from its table, or from quarantine."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lake.exact import EPOCH, Nanoseconds, Sent, sent, sent_arrow, told, told_raw
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config
from zenlake.lake.model.decoder import Reason

STREAM = "application/vnd.apache.arrow.stream"
KEYS = {"said": "robot/1/said", "arrow": "robot/1/arrow"}
CONFIG = f"""{{tables: {{
    said: {{format: "robot/${{id}}/said"}},
    arrow: {{format: "robot/${{id}}/arrow", encoding: "{STREAM}"}},
}}, batch: {{task_rows: %d}}}}"""

Batches = list[list[tuple[str, Sent]]]
"""What comes between two steps of the lake: tables, and what was sent to them."""


def batches(random: Random, steps: int, each: int) -> Batches:
    made: Batches = []
    for _ in range(steps):
        some = [("said", sent(random)) for _ in range(random.randrange(1, each))]
        some += [("arrow", sent_arrow(random)) for _ in range(random.randrange(each // 2 + 1))]
        random.shuffle(some)
        made.append(some)
    return made


def kept(folder: Path, steps: Batches, task_rows: int) -> Counter[str]:
    """Let a lake take all of it, and prove each value; return how many rows each table has."""
    config = read_config(CONFIG % task_rows)
    everything: list[tuple[str, Sent]] = []
    for some in steps:
        samples = [
            Row(KEYS[table], one.payload, len(everything) + n, 0, one.encoding, one.schema)
            for n, (table, one) in enumerate(some)
        ]
        everything += some
        write(folder / "journal", samples, 1)
        pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), config)
        while pipeline.step().behind:
            pass
        assert pipeline.stopped.sentences() == ()
    by_table = {name: rows_of(folder / "lake", name) for name in (*KEYS, "quarantine")}
    # Whole: `samples` has the bytes of all, and each is in its table or in quarantine.
    whole = {row["offset"]: row["value"] for row in rows_of(folder / "lake", "samples")}
    assert whole == {n: one.payload for n, (_, one) in enumerate(everything)}
    refused = {row["offset"]: row for row in by_table["quarantine"]}
    assert len(refused) == len(by_table["quarantine"])
    rows_at: dict[int, list[dict[str, object]]] = {}
    for table in KEYS:
        for row in by_table[table]:
            assert everything[row["offset"]][0] == table
            rows_at.setdefault(row["offset"], []).append(row)
    for n, (table, one) in enumerate(everything):
        rows = rows_at.get(n, [])
        if n in refused:
            assert rows == []
            assert (refused[n]["value"], refused[n]["table"]) == (one.payload, table)
            assert refused[n]["reason"] in set(Reason)
            continue
        documents = one.meant if table == "arrow" else [one.meant]
        assert len(rows) == len(documents), (n, one, rows)
        for meant, row in zip(documents, rows, strict=True):
            if isinstance(meant, list):
                meant = {"value": meant}
            said = (
                told_raw(meant, row)
                if isinstance(meant, bytes)
                else told(meant, row, table == "arrow")
            )
            assert said == "", (n, said, one, row)
    return Counter({name: len(rows) for name, rows in by_table.items()})


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.randoms(), st.integers(1, 3), st.integers(1, 3))
def test_every_value_is_in_its_table_or_in_quarantine(
    tmp_path_factory: pytest.TempPathFactory, random: Random, steps: int, task_rows: int
) -> None:
    kept(tmp_path_factory.mktemp("exact"), batches(random, steps, 6), task_rows)


@pytest.mark.parametrize("seed", range(2))
def test_every_value_of_many_is_in_its_table_or_in_quarantine(tmp_path: Path, seed: int) -> None:
    found = kept(tmp_path, batches(Random(seed), 4, 200), 90)
    assert min(found.values()) > 10, "the test would show little"


@pytest.mark.nightly(day="lake/ingest/test_exact_values.py")
@pytest.mark.parametrize("seed", range(50))
def test_every_value_of_a_hundred_thousand_documents(tmp_path: Path, seed: int) -> None:
    random = Random(1000 + seed)
    steps = batches(random, 5, 400)
    while sum(map(len, steps)) < 2000:
        steps += batches(random, 1, 400)
    found = kept(tmp_path, steps, random.choice([30, 200, 500]))
    assert min(found.values()) > 10


@pytest.mark.parametrize(
    ("meant", "row"),
    [
        ({"x": 1.5}, {"x": None}),
        ({"x": math.nan}, {"x": None}),
        ({"x": -0.0}, {"x": 0.0}),
        ({"x": -0.0}, {"x": 0}),
        ({"x": (1 << 53) + 1}, {"x": float(1 << 53)}),
        ({"x": True}, {"x": 1}),
        ({"x": "1"}, {"x": 1}),
        ({"x": [1, None]}, {"x": [1]}),
        ({"x": ["a", b"\0"]}, {"x": '["a", "\\u0000"]'}),
        ({"p": {"x": 1}}, {"p_x": 2}),
        ({"key": 1}, {"key": 1}),
        ({}, {"x": 1}),
        ({"x": Nanoseconds(1_500)}, {"x": EPOCH + timedelta(microseconds=1), "x_ns": None}),
    ],
)
def test_the_oracle_sees_what_is_lost(meant: dict[str, Any], row: dict[str, Any]) -> None:
    assert told(meant, row) != ""
