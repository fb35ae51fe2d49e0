from __future__ import annotations

import json
from pathlib import Path

from tests.journal.heard import Row
from tests.journal.written import write_rows
from zenlake.journal import Journal, checkpoint
from zenlake.journal.verify import verify


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
