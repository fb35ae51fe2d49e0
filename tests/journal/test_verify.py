from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.heard import Row, batch_of, beat
from tests.journal.written import write_rows
from zenlake.journal import Journal
from zenlake.journal.ledger import checkpoint
from zenlake.journal.ledger.heartbeats import pieces
from zenlake.journal.ledger.ledger import Ledger
from zenlake.journal.schema import HEALED
from zenlake.journal.verify import _consistent, verify


def numbered(count: int, start: int = 0, key: str = "a") -> list[Row]:
    return [Row(key, sn=n, hlc=n) for n in range(start, start + count)]


def keep_ledger(journal: Journal) -> None:
    checkpoint.write(journal.path, json.dumps(checkpoint.recomputed(journal).state()))


def test_a_sound_journal_and_its_ledger_agree_to_the_row(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(50), numbered(20, 60), segment_bytes=1)
    keep_ledger(journal)
    verdict = verify(journal)
    assert verdict.sound, verdict.problems
    assert (verdict.rows, verdict.ledger) == (70, "agrees")
    assert verdict.totals["missing"] == 10
    assert verdict.blocks >= 1


def test_a_ledger_that_is_behind_is_caught_up_before_it_is_judged(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(5))
    keep_ledger(journal)
    journal = write_rows(tmp_path, numbered(5, 5))
    assert verify(journal).ledger == "agrees"


def test_a_ledger_that_tells_another_story_is_a_problem(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(5))
    keep_ledger(journal)
    page = tmp_path / checkpoint.LEDGER
    page.write_text(page.read_text().replace('"duplicates": 0', '"duplicates": 3'))
    verdict = verify(journal)
    assert not verdict.sound
    assert verdict.ledger == "differs"


def test_a_ledger_that_is_ahead_of_the_journal_is_made_anew(tmp_path: Path) -> None:
    journal = write_rows(tmp_path / "one", numbered(9))
    keep_ledger(journal)
    other = write_rows(tmp_path / "two", numbered(5))
    (tmp_path / "two" / checkpoint.LEDGER).write_text(
        (tmp_path / "one" / checkpoint.LEDGER).read_text()
    )
    ledger = checkpoint.caught_up(other, checkpoint.stored(other.path))
    assert ledger.totals()["rows"] == 5


def test_a_ledger_that_is_no_json_is_made_anew(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(5))
    (tmp_path / checkpoint.LEDGER).write_text('{"format": 1, "offs')
    assert checkpoint.stored(tmp_path) is None
    assert checkpoint.caught_up(journal, None).totals()["received"] == 5


def test_a_flipped_bit_in_a_sealed_segment_is_found(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(50), segment_bytes=1)
    journal = write_rows(tmp_path, numbered(1, 50), segment_bytes=1)
    (sealed,) = [s for s in journal.segments(0) if s.sealed][:1]
    place = tmp_path / sealed.path
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    verdict = verify(Journal.open(tmp_path))
    assert not verdict.sound
    assert "damaged" in verdict.problems[0]


def test_what_retention_took_is_not_held_against_the_ledger(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, numbered(50), numbered(50, 50), segment_bytes=1)
    keep_ledger(journal)
    journal = write_rows(
        tmp_path, numbered(50, 100), numbered(1, 150), segment_bytes=1, retain_bytes=1
    )
    assert journal.earliest() > (0,)
    verdict = verify(journal)
    assert verdict.sound, verdict.problems
    assert verdict.ledger == "agrees on what is still kept"


def cut(path: Path, before: list[Row], after: list[Row]) -> Journal:
    """A journal of which retention took `before`, with the ledger of all."""
    ledger = Ledger()
    for rows in (before, after):
        ledger.enter(0, batch_of(rows))
    write_rows(path, [replace(row, value=b"x" * 10_000) for row in before], segment_bytes=1)
    journal = write_rows(path, after, segment_bytes=1, retain_bytes=50_000)
    assert journal.earliest() == (len(before),)
    checkpoint.write(path, json.dumps(ledger.state()))
    return journal


LATE = [Row("a", sn=5, hlc=5, origin=HEALED), *numbered(10, 20)]


def test_a_cut_just_before_a_healed_sample_is_not_held_against_the_ledger(tmp_path: Path) -> None:
    journal = cut(tmp_path, [*numbered(5), *numbered(14, 6)], LATE)
    verdict = verify(journal)
    assert verdict.sound, verdict.problems
    assert verdict.ledger == "agrees on what is still kept"


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('"rows": 30', '"rows": 10'),
        ('"next": 30', '"next": 29'),
        # A number that is there, and is said to be missing.
        ('"gaps": [], ', '"gaps": [[22, 23]], '),
        # One that nobody has.
        ('"first": 0', '"first": 6'),
    ],
)
def test_after_a_cut_a_ledger_that_contradicts_the_rows_is_a_problem(
    tmp_path: Path, said: str, instead: str
) -> None:
    cut(tmp_path, [*numbered(5), *numbered(14, 6)], LATE)
    page = tmp_path / checkpoint.LEDGER
    text = page.read_text()
    assert said in text
    page.write_text(text.replace(said, instead))
    assert not verify(Journal.open(tmp_path)).sound


def test_a_partition_that_was_not_cut_is_compared_to_the_row() -> None:
    def ledger(*parts: list[Row]) -> Ledger:
        found = Ledger()
        for partition, rows in enumerate(parts):
            found.enter(partition, batch_of(rows))
        return found

    kept = ledger(numbered(9), [*numbered(5), *numbered(3, 6)])
    assert _consistent(kept, ledger(numbered(4, 5), [*numbered(5), *numbered(3, 6)]), {0: 5, 1: 0})
    assert not _consistent(kept, ledger(numbered(4, 5), numbered(8)), {0: 5, 1: 0})
    assert not _consistent(kept, ledger(numbered(4, 5), numbered(8)), {0: 5, 1: 1})


unnumbered = st.builds(Row, st.sampled_from("ab"))
samples = st.builds(
    lambda sn, hlc, stamped, origin: Row("a", sn=sn, hlc=hlc, stamped=stamped, origin=origin),
    st.integers(0, 30) | st.integers(0, 300),
    st.integers(0, 300),
    st.booleans(),
    st.sampled_from([0, 0, 0, HEALED]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(samples | unnumbered | st.builds(beat, st.integers(0, 300))), st.data())
def test_the_ledger_of_all_rows_always_extends_that_of_the_last(
    rows: list[Row], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rows)))
    kept, anew = Ledger(), Ledger()
    anew.begin(0, at)
    for number, row in enumerate(rows):
        if row.origin == beat(0).origin and not kept_news(kept, row):
            continue  # a recorder would not have written it
        for ledger in (kept, anew)[: 1 + (number >= at)]:
            ledger.enter(0, batch_of([row]))
    assert _consistent(kept, anew, {0: max(at, 1)})


def kept_news(ledger: Ledger, row: Row) -> bool:
    (_, found), *_ = pieces(batch_of([row]))
    assert found is not None
    return ledger.is_news(0, found)
