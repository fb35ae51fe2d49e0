"""The values that the lake itself answers with, now and as of any moment, beside the one oracle."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake.journals import Here, write
from tests.lake.rowsof import START, Row
from tests.newest.oracle import Said, answers
from zenlake.journal import Journal
from zenlake.keys import intersects
from zenlake.lake import Pipeline
from zenlake.lake.history.samples import History
from zenlake.lake.query.catalog import Catalog

KEYS = ["a/1", "a/b/2", "b", "a/@v", "a/x1y"]
WIDE = ["a/*", "a/**", "**", "*/x$*y"]
ASKED = ["**", "a/1", "a/*"]


def rows(chance: random.Random, count: int) -> list[Row]:
    """Puts and deletions of keys and of many; no clock tells a time twice."""
    return [
        Row(
            chance.choice(WIDE if chance.random() < 0.3 else KEYS),
            b"%d" % chance.randrange(1000),
            at=chance.randrange(1_000_000) / 1024,
            kind=chance.choices([0, 1], [5, 1])[0],
            # Lately: what was heard long ago is no longer remembered.
            heard=time.time() - START,
            id=chance.choice([b"\x01", b"\x02"]),
        )
        for _ in range(count)
    ]


def truth(told: list[Row], expr: str, until: float = float("inf")) -> dict[str, bytes]:
    said = [
        Said(
            row.key,
            int((START + row.at) * (1 << 32)),
            row.id,
            None if row.kind else row.value.decode(),
        )
        for row in told
        if row.at <= until
    ]
    return {
        key: value.encode() for key, (_, _, value) in answers(said).items() if intersects(expr, key)
    }


@pytest.mark.parametrize("seed", range(2))
def test_the_lake_answers_as_the_oracle_does_now_and_at_any_moment(
    seed: int, tmp_path: Path
) -> None:
    """Of what the tables have, of what only one of two journals has, and of both."""
    chance = random.Random(seed)
    told: list[Row] = []
    lake, journals = tmp_path / "lake", [tmp_path / "here", tmp_path / "there"]
    for folded in (True, False):
        for stepped in (True, False):
            for journal in journals:
                more = rows(chance, 8)
                told += more
                write(journal, more, 1)
                if stepped:
                    pipeline = Pipeline(str(lake), str(journal), Here())
                    pipeline.step()
                    if folded:
                        pipeline.finish()
            history = History(Catalog(pipeline.place), [Journal.open(one) for one in journals])
            for expr in ASKED:
                snapshot, found = history.newest(expr)
                assert shown(found) == truth(told, expr), expr
                everything = pa.concat_tables(history.samples(snapshot, expr, None))
                assert everything.num_rows == sum(intersects(expr, one.key) for one in told)
                for moment in (300.0, 900.0):
                    instant = int((START + moment) * 1e9)
                    then = history.as_of(snapshot, expr, instant)
                    assert shown(then) == truth(told, expr, moment), (expr, moment)
                    assert then.num_rows == len(shown(then))


def shown(found: object) -> dict[str, bytes]:
    return {row["key"]: row["value"] for row in found.to_pylist()}  # type: ignore[attr-defined]
