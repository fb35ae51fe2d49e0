"""A recorder that is killed without a word loses nothing that it acknowledged."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import listening, where
from tests.journal.crashing import Nursery, Publisher
from tests.waiting import until
from zenlake.journal import Journal, Watermark
from zenlake.journal.ledger import checkpoint
from zenlake.journal.verify import verify

KEYS = {"r/numbered", "r/plain"}


def durable(path: Path) -> Watermark | None:
    """The watermark as anybody finds it on the disk."""
    with suppress(OSError):
        page = json.loads((path / "watermark.json").read_text())["watermark"]
        return Watermark(tuple(page["offsets"]), page["sources"], page["synced"])
    return None


def rows_of(path: Path) -> list[tuple[int, str, int, int | None]]:
    """Offset, key, number published and sequence number of every row."""
    columns = ["offset", "key", "value", "source_sn"]
    return [
        (row["offset"], row["key"], int(row["value"]), row["source_sn"])
        for batch in Journal.open(path).scan(columns=columns)
        for row in batch.to_pylist()
    ]


def told_rows(reply: zenlake.Reply) -> int:
    """How many rows a recorder says it has heard."""
    assert reply.ok is not None
    rows: int = json.loads(reply.ok.payload.to_bytes())["rows"]
    return rows


@pytest.mark.parametrize(
    ("package", "rounds"),
    [
        pytest.param("zenlake", 3, id="ours"),
        pytest.param(
            "zenoh",
            20,
            id="theirs",
            marks=[pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(180)],
        ),
    ],
)
def test_what_was_acknowledged_is_there_once_whenever_it_is_killed(
    tmp_path: Path, package: str, rounds: int
) -> None:
    path, chance = tmp_path / "j", random.Random(rounds)
    acknowledged: list[Watermark] = []
    with (
        listening(mode='"router"') as router,
        Nursery() as nursery,
        Publisher(package, where(router), "r", tmp_path / "book") as publisher,
    ):
        command = ["record", "-k", "r/**", "--to", str(path), "--name", "j", "--fsync", "10ms"]
        command += ["-m", "client", "-e", where(router), "--no-multicast-scouting", "--no-heal"]

        def begin() -> int:
            """A recorder that has acknowledged something by now."""
            before = durable(path)
            start = 0 if before is None else before.offsets[0]
            process = nursery.start(*command, "-q")
            until(lambda: (now := durable(path)) is not None and now.offsets[0] > start + 50)
            return process

        for _ in range(rounds):
            process = begin()
            time.sleep(chance.random() * 0.1)
            seen = durable(path)
            assert os.WTERMSIG(nursery.kill(process)) == signal.SIGKILL
            assert seen is not None
            acknowledged.append(seen)
        # One that is ended as it should be leaves the ledger of all of it.
        process = begin()
        until(lambda: [r for r in router.get("@journal/j/stats") if told_rows(r)])
        assert nursery.kill(process, signal.SIGTERM) == 0
        book = publisher.stop()

    rows = rows_of(path)
    # Dense, and everything as published, once.
    assert [offset for offset, _, _, _ in rows] == list(range(len(rows)))
    assert {key for _, key, _, _ in rows} == KEYS
    assert max(Counter((key, number) for _, key, number, _ in rows).values()) == 1
    assert {number for _, _, number, _ in rows} <= set(book)
    for seen in acknowledged:
        # What was acknowledged before each kill is there: rows below the offset, and the number.
        assert len(rows) >= seen.offsets[0]
        last = max(sn for _, _, _, sn in rows[: seen.offsets[0]] if sn is not None)
        assert seen.sources[publisher.source] == last
    # The ledger, the journal and the publisher's own book agree to the row.
    heard = {number for _, key, number, _ in rows if key == "r/numbered"}
    page = checkpoint.recomputed(Journal.open(path)).page(publisher.source)
    assert page is not None
    sent = set(range(min(heard), max(heard) + 1))
    assert sent <= set(book)
    assert (page.expected, page.received) == (len(sent), len(heard))
    missing = {n for first, last in page.gaps for n in range(first, last + 1)}
    assert missing == sent - heard
    assert len(page.gaps) <= rounds
    verdict = verify(Journal.open(path))
    assert verdict.sound, verdict.problems
    assert (verdict.rows, verdict.ledger) == (len(rows), "agrees")
    assert verdict.totals["duplicates"] == 0
    assert verdict.totals["unprovable_rows"] == len(rows) - len(heard)
