"""The samples of a lake at any instant, beside a memory that has seen them all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.journals import Here, table_of, write
from tests.lake.rowsof import START, Row
from zenlake.keys import ResolvedRange, intersects
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.history.samples import History
from zenlake.lake.maintain.upkeep import compact
from zenlake.lake.query.catalog import Catalog

KEYS = ("a/1", "a/2", "b/1")
EXPRS = ("**", "a/*", "a/1", "b/**")
NANOS = 1_000_000_000

rows = st.lists(
    st.tuples(st.one_of(st.sampled_from(KEYS), st.sampled_from(("a/*", "**"))), st.booleans()),
    min_size=1,
    max_size=12,
)


def model(told: list[Row], expr: str, until: float) -> dict[str, bytes]:
    """The newest value of each key, as somebody would remember who heard everything in order."""
    held: dict[str, bytes] = {}
    for row in sorted(told, key=lambda row: row.at):
        if row.at > until:
            break
        if row.kind == 0:
            held[row.key] = row.value
        else:
            held = {key: value for key, value in held.items() if not intersects(row.key, key)}
    return {key: value for key, value in held.items() if intersects(expr, key)}


@settings(max_examples=8, deadline=None)
@given(rows, st.randoms(use_true_random=False), st.integers(0, 12), st.booleans())
def test_any_instant_is_as_a_memory_has_it(
    told: list[tuple[str, bool]], chance: object, committed: int, merge: bool
) -> None:
    heard = [
        # A put has no wildcards here: what those mean is tried in tests/newest.
        Row(key, b"%d" % n, at=float(n), kind=int(delete or "*" in key))
        for n, (key, delete) in enumerate(told)
    ]
    chance.shuffle(order := list(heard))  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        journal, lake = Path(folder) / "journal", Path(folder) / "lake"
        # Some of them are in the table, in two files; the others only in the journal.
        write(journal, order[: committed // 2])
        pipeline = Pipeline(str(lake), str(journal), Here(), LakeConfig())
        pipeline.step()
        write(journal, order[committed // 2 : committed])
        pipeline.step()
        write(journal, order[committed:])
        history = History(Catalog(pipeline.place), [pipeline.journal])
        if merge:
            compact(table_of(lake, "samples"), Here(), LakeConfig(), full=True)
        snapshot = history.look()
        for number, expr in enumerate(EXPRS):
            # Each expression at other instants, and all of them together at every one.
            for until in (-0.5, *range(number, len(heard), len(EXPRS))):
                instant = round((START + until) * NANOS)
                found = history.as_of(snapshot, expr, instant).to_pylist()
                assert {row["key"]: row["value"] for row in found} == model(heard, expr, until)
                assert len({row["key"] for row in found}) == len(found)
            low, high = round(START + 2) * NANOS, round(START + 7) * NANOS
            parts = history.samples(snapshot, expr, ResolvedRange(low, high))
            values = sorted(value for part in parts for value in part["value"].to_pylist())
            assert values == sorted(
                row.value for row in heard if 2 <= row.at <= 7 and intersects(expr, row.key)
            )
        _, newest = history.newest("**")
        found = dict(zip(newest["key"].to_pylist(), newest["value"].to_pylist(), strict=True))
        assert found == model(heard, "**", 1e9)
