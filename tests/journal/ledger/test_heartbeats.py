from __future__ import annotations

import json
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zenlake
from tests.api.sessions import connected, listening
from tests.journal.heard import Row, batch_of, beat
from tests.journal.recording import recording, until_heard, until_rows
from tests.journal.written import write_rows
from tests.waiting import SECONDS, until
from zenlake.clock import Timestamp
from zenlake.ext import CacheConfig, MissDetectionConfig, declare_advanced_publisher
from zenlake.journal import Journal
from zenlake.journal.ledger import checkpoint
from zenlake.journal.ledger.heartbeats import Heartbeat, batches_of, pieces, samples_in
from zenlake.journal.ledger.inbox import Inbox
from zenlake.journal.ledger.ledger import Ledger
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.journal.schema import RETIRED
from zenlake.journal.verify import verify
from zenlake.journal.writing.sources import SourceNumbers
from zenlake.node.sample import Sample

PLACE = "a/@adv/pub/b0a/7/_"
STAMP = Timestamp(1000, b"\x01")


def said(place: str, payload: bytes) -> Sample:
    with listening() as session:
        found: list[Sample] = []
        with session.declare_subscriber("**/@adv/**", found.append):
            session.put(place, payload)
        return found[0]


# --------------------------------------------------------------------------------- reading


def test_a_heartbeat_names_its_source_and_what_it_publishes_on() -> None:
    assert Heartbeat.read(PLACE, 5) == (PLACE, "b0a:7", "a", 5, 0)


@pytest.mark.parametrize(
    "place",
    [
        "a/b",
        "@adv/pub/b0a/7/_",
        "a/@adv/sub/b0a/7/_",
        "a/@adv/pub/b0a/uhlc/_",
        "a/@adv/pub/b0a/7",
        "a/@adv/pub/nobody/7/_",
        "a/@adv/pub/b0a/4294967296/_",
        "a/**/@adv/pub/b0a/7/_",
    ],
)
def test_under_other_keys_nobody_tells_a_number(place: str) -> None:
    assert Heartbeat.read(place, 5) is None


@given(st.integers(-(1 << 40), 1 << 40))
def test_only_numbers_of_thirty_two_bits_are_believed(number: int) -> None:
    assert (Heartbeat.read(PLACE, number) is not None) == (0 <= number < 1 << 32)


# ------------------------------------------------------------------------------------ rows


def test_as_rows_they_lie_where_the_samples_of_their_key_lie() -> None:
    beats = [Heartbeat.read(f"k{n}/@adv/pub/b0a/{n}/_", n) for n in range(20)]
    told = set()
    for partition, batch in batches_of([b for b in beats if b], 3, 17, STAMP):
        for samples, found in pieces(batch):
            assert not samples.num_rows
            assert found is not None
            assert zlib.crc32(found.key.encode()) % 3 == partition
            told.add((found.key, found.number))
    assert told == {(f"k{n}", n) for n in range(20)}


def test_a_number_that_was_only_told_is_not_acknowledged() -> None:
    """The watermark has the numbers that are durable; a publisher forgets what it reads there."""
    numbers = SourceNumbers()
    numbers.take(batch_of([Row(sn=3), beat(9)]))
    assert numbers.snapshot() == {"b0a:7": 3}


def test_samples_are_given_in_pieces_without_gaps() -> None:
    batch = batch_of([beat(0), Row("a"), Row("b"), beat(1), beat(2), Row("c")])
    assert [piece.column("key").to_pylist() for piece in samples_in(batch)] == [["a", "b"], ["c"]]
    retired = batch_of([Row("a"), Row("b", origin=RETIRED), Row("c")])
    assert [piece.column("key").to_pylist() for piece in samples_in(retired)] == [["a"], ["c"]]
    # They came: for the ledger they are samples.
    assert [rows.num_rows for rows, _ in pieces(retired)] == [3]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_scan_gives_heartbeats_only_to_who_asks_for_them(tmp_path: Path, sealed: bool) -> None:
    rows = [Row("a", sn=0), beat(2), Row("b", sn=0, eid=1)]
    journal = write_rows(tmp_path, rows, segment_bytes=1 if sealed else 1 << 20)
    journal = write_rows(tmp_path, segment_bytes=1 if sealed else 1 << 20)
    assert journal.segments(0)[0].sealed == sealed
    for columns in (None, ["offset"], ["offset", "key", "origin"]):
        found = [b.column("offset").to_pylist() for b in journal.scan(columns=columns)]
        assert found == [[0, 2]]
        assert [b.schema.names for b in journal.scan(columns=columns)] == [
            columns or [*b.schema.names] for b in journal.scan(columns=columns)
        ]
    whole = [b.column("offset").to_pylist() for b in journal.scan(heartbeats=True)]
    assert whole == [[0, 1, 2]]
    only = journal.scan(keys="a/@adv/**", columns=["source_sn"], heartbeats=True)
    assert [b.to_pylist() for b in only] == [[{"source_sn": 2}]]
    assert list(journal.scan(keys="a/@adv/**")) == []


# ------------------------------------------------------------------------------------- fold


def test_the_ledger_hears_a_heartbeat_between_the_rows_around_it() -> None:
    ledger = Ledger()
    opened = ledger.enter(0, batch_of([Row(sn=0), beat(3), Row(sn=1), Row("b", zid=None)]))
    assert [(one.key, one.first, one.last) for one in opened] == [("a", 1, 3)]
    page = ledger.page("b0a:7")
    assert page is not None
    assert (page.expected, page.received, page.gaps, page.last) == (4, 2, ((2, 3),), 3)
    assert page.reordered == 0
    assert ledger.unprovable() == {"b": 1}
    assert (ledger.totals()["rows"], ledger.totals()["heartbeats"]) == (3, 1)
    assert ledger.offsets == {0: 4}


def test_a_row_that_says_it_is_a_heartbeat_and_is_not_changes_nothing() -> None:
    ledger = Ledger()
    strange = Row("b", sn=9, zid=None, eid=None, origin=3)
    ledger.enter(0, batch_of([Row(sn=0), strange, Row(PLACE, origin=3)]))
    assert ledger.totals()["missing"] == 0
    assert ledger.totals()["heartbeats"] == 2


def test_a_ledger_that_was_kept_before_heartbeats_were_heard_is_taken_up() -> None:
    ledger = Ledger()
    ledger.enter(0, batch_of([Row(sn=0), Row(sn=2)]))
    state = json.loads(json.dumps(ledger.state()))
    del state["heartbeats"]
    for name in ("claimed", "told", "based"):
        del state["accounts"]["0"]["b0a:7"][name]
    assert Ledger.from_state(state).agrees(ledger)


any_row = st.builds(
    lambda number, told, key: beat(number, key) if told else Row(key, sn=number),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from(["a", "b"]),
)


@given(st.lists(any_row, min_size=1, max_size=30), st.data())
def test_with_heartbeats_too_a_ledger_taken_up_equals_one_made_anew(
    rows: list[Row], data: st.DataObject
) -> None:
    anew = Ledger()
    anew.enter(0, batch_of(rows))
    kept, at = Ledger(), 0
    while at < len(rows):
        size = data.draw(st.integers(1, len(rows) - at))
        kept.enter(0, batch_of(rows[at : at + size]))
        kept = Ledger.from_state(json.loads(json.dumps(kept.state())))
        at += size
    assert kept.agrees(anew)
    totals = kept.totals()
    assert totals["rows"] + totals["heartbeats"] == len(rows) == kept.offsets[0]
    assert totals["expected"] == totals["received"] + totals["missing"]


def test_a_source_in_two_partitions_has_lost_what_is_missing_in_both() -> None:
    ledger = Ledger()
    ledger.enter(0, batch_of([Row("a", sn=0), beat(5)]))
    ledger.enter(1, batch_of([Row("b", sn=1), Row("b", sn=3)]))
    page = ledger.page("b0a:7")
    assert page is not None
    assert (page.expected, page.received, page.gaps) == (6, 3, ((2, 2), (4, 5)))


def test_verify_makes_the_same_ledger_from_the_journal_alone(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, [Row(sn=0), beat(4)], [Row(sn=2)], segment_bytes=1)
    checkpoint.write(journal.path, json.dumps(checkpoint.recomputed(journal).state()))
    verdict = verify(journal)
    assert verdict.sound, verdict.problems
    assert (verdict.rows, verdict.heartbeats, verdict.ledger) == (2, 1, "agrees")
    assert verdict.totals["missing"] == 3


def test_a_heartbeat_that_retention_took_is_not_held_against_the_ledger(tmp_path: Path) -> None:
    journal = write_rows(tmp_path, [Row(sn=0), beat(4)], [Row(sn=1)], segment_bytes=1)
    checkpoint.write(journal.path, json.dumps(checkpoint.recomputed(journal).state()))
    last = journal.segments(0)[-1]
    size = last.bytes + 1
    journal = write_rows(tmp_path, segment_bytes=1, retain_bytes=size)
    assert journal.earliest() == (2,)
    verdict = verify(journal)
    assert verdict.sound, verdict.problems
    assert verdict.ledger == "agrees on what is still kept"


# ------------------------------------------------------------------------------------ inbox


def test_a_newer_word_takes_the_place_of_an_older_one() -> None:
    inbox = Inbox()
    for number in (1, 2):
        inbox.push(said(PLACE, number.to_bytes(4, "little")))
    assert [found.number for found in inbox.take()] == [2]
    inbox.close()
    assert inbox.take() == []


def test_what_is_no_heartbeat_or_finds_no_room_is_counted() -> None:
    inbox = Inbox(most=1)
    inbox.push(said(PLACE, b"\x01\x00\x00\x00"))
    inbox.push(said(PLACE, b"\x02\x00\x00\x00"))
    for place, payload in (
        (PLACE, b"\x01"),
        ("b/@adv/pub/b0a/7/_", bytes(4)),
        ("x/@adv/y", bytes(4)),
    ):
        inbox.push(said(place, payload))
    assert (inbox.heard, inbox.refused) == (5, 3)
    assert [found.number for found in inbox.take()] == [2]


def test_who_waits_for_heartbeats_is_woken_by_one_and_by_the_end() -> None:
    inbox = Inbox()
    found: list[int] = []

    def hear() -> None:
        while beats := inbox.take():
            found.extend(beat.number for beat in beats)

    thread = threading.Thread(target=hear)
    thread.start()
    inbox.push(said(PLACE, b"\x03\x00\x00\x00"))
    until(lambda: found == [3])
    inbox.close()
    thread.join(SECONDS)
    assert not thread.is_alive()


# ---------------------------------------------------------------------------------- recorder


def beating(session: zenlake.Session, key: str) -> zenlake.ext.AdvancedPublisher:
    return declare_advanced_publisher(
        session,
        key,
        cache=CacheConfig(max_samples=100),
        sample_miss_detection=MissDetectionConfig(sporadic_heartbeat=0.02),
    )


def test_what_was_sent_last_while_nobody_recorded_is_noticed_and_healed(tmp_path: Path) -> None:
    options = Options(("r/**",), str(tmp_path), name="j", fsync="5ms")
    with listening() as session, connected(session) as other:
        with Recorder(session, options) as recorder:
            publisher = beating(other, "r/n")
            until_heard(other.declare_publisher("r/n"))
            publisher.put("0")
            until_rows(recorder, 1)
        for number in range(1, 4):
            publisher.put(str(number))
        source = f"{publisher.id.zid}:{publisher.id.eid}"
        with Recorder(session, options) as recorder:
            # Sporadic: it says so once; nobody may have listened. Saying it again is harmless.
            place = f"r/n/@adv/pub/{publisher.id.zid}/{publisher.id.eid}/_"
            teller = other.declare_publisher(place)
            until_heard(teller)
            teller.put((3).to_bytes(4, "little"))
            until(lambda: recorder.totals()["expected"] == 4)
            until(lambda: recorder.totals()["missing"] == 0, str(recorder.report()))
            until(lambda: recorder.watermark().sources == {source: 3})
            assert recorder.totals()["healed"] == 3
            (latest,) = [reply.ok for reply in other.get("r/n")]
            assert latest is not None
            assert latest.payload.to_bytes() == b"3"
    rows = [row for batch in Journal.open(tmp_path).scan() for row in batch.to_pylist()]
    assert [row["value"] for row in rows] == [b"0", b"1", b"2", b"3"]
    assert [row["value"] for row in sorted(rows, key=lambda row: row["hlc"])] == [
        b"0",
        b"1",
        b"2",
        b"3",
    ]
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.sound, verdict.ledger, verdict.rows) == (True, "agrees", 4)


def test_heartbeats_of_a_stream_that_lost_nothing_are_not_written(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        publisher = declare_advanced_publisher(
            other, "r/n", sample_miss_detection=MissDetectionConfig(heartbeat=0.01)
        )
        until_heard(other.declare_publisher("r/n"))
        publisher.put("0")
        until_rows(recorder, 1)
        for number in range(50):
            publisher.put(str(number))
        until_rows(recorder, 51)
        heard = recorder.stats()["heartbeats"]["heard"]  # type: ignore[index]
        until(lambda: recorder.stats()["heartbeats"]["heard"] > heard + 3)  # type: ignore[index]
        assert sum(recorder.watermark().offsets) == 51
        assert recorder.totals()["heartbeats"] == 0
        assert recorder.totals()["missing"] == 0


def test_a_heartbeat_that_overtakes_its_sample_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenlake.journal.recorder.GRACE", 1.0)
    with recording(tmp_path) as (recorder, other):
        source = f"{other.zid()}:{other.id.eid}"
        teller = other.declare_publisher(f"r/n/@adv/pub/{other.zid()}/{other.id.eid}/_")
        until_heard(teller)
        until_heard(other.declare_publisher("r/n"))
        other.put("r/n", "0", source_info=zenlake.SourceInfo(other.id, 0))
        until_rows(recorder, 1)
        teller.put((1).to_bytes(4, "little"))
        other.put("r/n", "1", source_info=zenlake.SourceInfo(other.id, 1))
        until_rows(recorder, 2)
        teller.put((3).to_bytes(4, "little"))
        until(lambda: recorder.totals()["missing"] == 2)
        assert recorder.totals()["heartbeats"] == 1
        assert recorder.watermark().sources == {source: 1}


def test_heartbeats_of_other_keys_are_not_heard(tmp_path: Path) -> None:
    with recording(tmp_path, "r/a/**") as (recorder, other):
        teller = other.declare_publisher("r/a/@adv/pub/b0a/7/_")
        until_heard(teller)
        other.put("r/b/@adv/pub/b0a/7/_", bytes(4))
        teller.put(bytes(4))
        until(lambda: recorder.totals()["sources"] == 1)
        assert recorder.stats()["heartbeats"] == {"heard": 1, "refused": 0}
