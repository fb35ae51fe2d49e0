from __future__ import annotations

import json
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.journal.heard import Row, batch_of
from tests.journal.recording import recording, until_heard, until_rows
from tests.waiting import SECONDS, until
from zenlake.errors import JournalLocked, LocalError
from zenlake.ext import (
    AdvancedPublisher,
    CacheConfig,
    MissDetectionConfig,
    declare_advanced_publisher,
)
from zenlake.journal import Journal, service
from zenlake.journal.ledger import checkpoint
from zenlake.journal.options import Options, distinct
from zenlake.journal.recorder import Recorder
from zenlake.journal.verify import verify


def rows(path: Path) -> list[dict[str, object]]:
    return [row for batch in Journal.open(path).scan() for row in batch.to_pylist()]


def publisher(session: zenlake.Session, key: str, cache: int = 100) -> AdvancedPublisher:
    return declare_advanced_publisher(
        session,
        key,
        cache=CacheConfig(max_samples=cache),
        sample_miss_detection=MissDetectionConfig(),
    )


def probe(session: zenlake.Session, key: str) -> None:
    """Wait until what is published under a key is recorded."""
    with session.declare_publisher(key) as found:
        until_heard(found)


def test_what_is_published_becomes_durable_rows(tmp_path: Path) -> None:
    with recording(tmp_path, partitions=3) as (recorder, other):
        probe(other, "r/a")
        other.put("r/a", b"one", encoding="text/plain", attachment=b"beside")
        other.put("r/b", b"two")
        other.delete("r/a")
        until_rows(recorder, 3)
        assert recorder.stats()["rows"] == 3
    found = sorted(rows(tmp_path), key=lambda row: str(row["hlc"]), reverse=True)
    assert [(row["key"], row["value"], row["kind"]) for row in found] == [
        ("r/a", b"one", 0),
        ("r/b", b"two", 0),
        ("r/a", b"", 1),
    ]
    assert (found[0]["encoding_id"], found[0]["attachment"]) == (4, b"beside")
    assert all(row["stamped"] for row in found)


def test_a_schema_that_is_no_text_comes_back_as_it_was(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        probe(other, "r/a")
        other.put("r/a", b"one", encoding=zenlake.Encoding.from_wire(4000, b"\xff" * 255))
        until_rows(recorder, 1)
        for selector in ("r/a", "r/*"):
            (reply,) = other.get(selector, timeout=SECONDS)
            assert reply.ok is not None
            assert (reply.ok.encoding.id, reply.ok.encoding.schema) == (
                4000,
                b"\xff" * 255,
            )
    (row,) = rows(tmp_path)
    assert (row["encoding_id"], row["encoding_schema"]) == (
        4000,
        "\N{REPLACEMENT CHARACTER}FF" * 255,
    )


def test_a_key_that_two_expressions_mean_is_recorded_once(tmp_path: Path) -> None:
    with recording(tmp_path, "r/*", "*/a", "r/b") as (recorder, other):
        for key in ("r/a", "r/b", "s/a"):
            probe(other, key)
            other.put(key, b"x")
        until_rows(recorder, 3)
        assert [str(reply.ok.key_expr) for reply in other.get("r/a") if reply.ok] == ["r/a"]
    assert sorted(str(row["key"]) for row in rows(tmp_path)) == ["r/a", "r/b", "s/a"]


def test_expressions_that_others_include_are_left_out() -> None:
    assert distinct(("a/b", "a/**", "a/*", "c", "c")) == ["a/**", "c"]
    with pytest.raises(LocalError, match="nothing to record"):
        distinct(())


def test_a_recorder_goes_on_where_another_ended(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        numbered = publisher(other, "r/n")
        probe(other, "r/n")
        for _ in range(5):
            numbered.put(b"x")
        other.put("r/old", b"old")
        other.put("r/gone", b"gone")
        other.delete("r/gone")
        until_rows(recorder, 8)
    assert checkpoint.stored(tmp_path) is not None
    with recording(tmp_path) as (recorder, other):
        probe(other, "r/new")
        other.put("r/new", b"new")
        until_rows(recorder, 9)
        found = {str(reply.ok.key_expr) for reply in other.get("r/**") if reply.ok}
        assert found == {"r/n", "r/old", "r/new"}
        assert recorder.report()["totals"]["received"] == 5  # type: ignore[index]
    assert [row["offset"] for row in rows(tmp_path)] == list(range(9))
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.sound, verdict.ledger) == (True, "agrees")


def test_what_was_missed_while_nobody_recorded_is_healed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    options = Options(("r/**",), str(path), name="j", fsync="5ms")
    with listening() as session, connected(session) as other:
        numbered = publisher(other, "r/n")
        with Recorder(session, options) as recorder:
            probe(other, "r/n")
            for number in range(3):
                numbered.put(str(number))
            until_rows(recorder, 3)
        for number in range(3, 8):
            numbered.put(str(number))
        with Recorder(session, options) as recorder:
            probe(other, "r/n")
            numbered.put("8")
            until(lambda: recorder.totals()["expected"] == 9)
            until(lambda: recorder.totals()["missing"] == 0, f"{recorder.report()}")
            until_rows(recorder, 9)
            assert recorder.totals()["healed"] == 5
            # It came last, but it is not the newest.
            (latest,) = [reply.ok for reply in other.get("r/n")]
            assert latest is not None
            assert latest.payload.to_bytes() == b"8"
    found = rows(path)
    by_time = sorted(found, key=lambda row: row["hlc"])  # type: ignore[arg-type,return-value]
    assert [row["value"] for row in by_time] == [str(n).encode() for n in range(9)]
    assert sorted(row["value"] for row in found) == [str(n).encode() for n in range(9)]  # type: ignore[type-var]
    assert {row["value"]: row["origin"] for row in found}[b"4"] == 1
    assert verify(Journal.open(path)).ledger == "agrees"


def test_what_no_publisher_has_any_more_stays_missing(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        probe(other, "r/n")
        for number in (0, 1, 4):
            other.put("r/n", b"x", source_info=zenlake.SourceInfo(other.id, number))
        until_rows(recorder, 3)
        assert recorder.totals()["missing"] == 2
        until(lambda: recorder.stats()["healing"]["questions"] >= 1)  # type: ignore[index]
        assert recorder.totals()["missing"] == 2


def test_two_recorders_cannot_write_one_journal(tmp_path: Path) -> None:
    with recording(tmp_path), pytest.raises(JournalLocked), recording(tmp_path):
        pass


@pytest.mark.parametrize("name", ["a*", "**", "a//b", "/a", "what?"])
def test_a_name_that_nobody_could_ask_for_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LocalError, match="cannot be called"), recording(tmp_path, name=name):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_journal_keeps_its_name(tmp_path: Path) -> None:
    with recording(tmp_path, name="one"):
        pass
    with pytest.raises(LocalError, match="is called 'one'"), recording(tmp_path, name="two"):
        pass
    with recording(tmp_path, name=None) as (recorder, _):
        assert recorder.name == "one"


def test_a_journal_that_cannot_be_written_ends_the_recording_and_says_why(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        probe(other, "r/a")
        recorder._writer.close()  # as a writer does that has given up
        other.put("r/a", b"x")
        until(lambda: recorder.failure is not None)
        assert "closed" in str(recorder.failure)
        assert list(other.get("r/**")) == []
    assert rows(tmp_path) == []


def test_a_node_records_every_journal_of_its_configuration(tmp_path: Path) -> None:
    entries = [
        {"name": name, "dir": str(tmp_path / name), "key_exprs": [f"{name}/**"], "heal": False}
        for name in ("r", "s")
    ]
    with listening(journals=json.dumps(entries)) as session, connected(session) as other:
        settings = session.runtime.settings
        with service.recording(session, settings) as recorders:
            assert [recorder.name for recorder in recorders] == ["r", "s"]
            for recorder in recorders:
                probe(other, f"{recorder.name}/a")
                other.put(f"{recorder.name}/a", b"x")
                until_rows(recorder, 1)
    assert [row["key"] for row in rows(tmp_path / "s")] == ["s/a"]


def test_the_past_is_answered_until_a_lake_does(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        probe(other, "r/a")
        for number in range(3):
            other.put("r/a", str(number))
        other.delete("r/a")
        until_rows(recorder, 4)

        def past() -> list[bytes]:
            replies = other.get("r/**?_time=[now(-1h)..]")
            return [reply.ok.payload.to_bytes() for reply in replies if reply.ok]

        assert past() == [b"0", b"1", b"2", b""]
        assert list(other.get("r/a")) == []
        assert list(other.get("r/**?_time=[now(-1h)..now(-1m)]")) == []
        with other.liveliness().declare_token("@lake/j"):
            assert recorder._answers is not None
            until(lambda: recorder._answers.lake)  # type: ignore[union-attr]
            assert past() == []
        until(lambda: past() != [])


def test_the_past_comes_in_the_order_of_time_with_its_sources_and_within_a_limit(
    tmp_path: Path,
) -> None:
    with recording(tmp_path, partitions=2) as (recorder, other):
        probe(other, "r/a")
        early, late = other.new_timestamp(), other.new_timestamp()
        other.put("r/a", "late", timestamp=late)
        other.put("r/b", "early", timestamp=early)
        with publisher(other, "r/c") as numbered:
            numbered.put("numbered")
            until_rows(recorder, 3)

        def past(more: str = "") -> list[zenlake.Sample]:
            found = other.get(f"r/**?_time=[now(-1h)..]{more}", timeout=SECONDS)
            return [reply.ok for reply in found if reply.ok]

        samples = past()
        assert [one.payload.to_string() for one in samples] == ["early", "late", "numbered"]
        assert [one.source_info is not None for one in samples] == [False, False, True]
        source = samples[2].source_info
        assert source is not None
        assert source.source_sn == 0
        for latest in ("r/c", "r/**"):
            found = {str(r.ok.key_expr): r.ok for r in other.get(latest, timeout=20) if r.ok}
            assert found["r/c"].source_info == source
            assert found["r/c"].timestamp == samples[2].timestamp
        assert [one.payload.to_string() for one in past(";_limit=2")] == ["early", "late"]
        assert past(";_limit=0") == []
        (first,) = other.get("r/**?_limit=1", timeout=SECONDS)
        assert first.ok is not None
        assert first.ok.payload.to_string() == "early"
        (refused,) = other.get("r/**?_limit=many", timeout=SECONDS)
        assert refused.err is not None


def test_a_recorder_may_be_told_to_answer_nothing(tmp_path: Path) -> None:
    with recording(tmp_path, answer=False) as (recorder, other):
        probe(other, "r/a")
        other.put("r/a", b"x")
        until_rows(recorder, 1)
        assert list(other.get("r/**", timeout=SECONDS)) == []


def test_a_range_of_time_that_does_not_parse_is_answered_with_an_error(tmp_path: Path) -> None:
    with recording(tmp_path) as (_, other):
        probe(other, "r/a")
        (reply,) = other.get("r/a?_time=yesterday")
        assert reply.err is not None
        assert b"brackets" in reply.err.payload.to_bytes()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("_tim=[now(-1h)..]", b"'_time'"),
        ("_filter=a<1", b"a lake"),
        ("_sql=SELECT 1", b"@lake/sql"),
    ],
)
def test_a_recorder_refuses_a_parameter_that_it_does_not_obey(
    tmp_path: Path, parameters: str, words: bytes
) -> None:
    with recording(tmp_path) as (_, other):
        probe(other, "r/a")
        (reply,) = other.get(f"r/a?{parameters}")
        assert reply.err is not None
        assert words in reply.err.payload.to_bytes()
        assert list(other.get("r/a?tim=1;_anyke;_max=1")) == []


def test_the_watermark_is_told_as_it_moves(tmp_path: Path) -> None:
    with (
        recording(tmp_path) as (recorder, other),
        other.declare_subscriber("@journal/j/watermark") as told,
    ):
        probe(other, "r/a")
        other.put("r/a", b"x")
        until_rows(recorder, 1)
        assert b'"offsets": [1]' in told.recv().payload.to_bytes()


def test_a_node_with_an_admin_space_shows_its_ledgers_there(tmp_path: Path) -> None:
    options = Options(("r/**",), str(tmp_path), name="j", fsync="5ms")
    with (
        listening(adminspace__enabled="true") as session,
        Recorder(session, options),
        connected(session) as other,
    ):
        root = f"@/{session.zid()}/peer/journal/j"
        until(lambda: list(other.get(f"{root}/ledger")))
        found = {str(reply.ok.key_expr) for reply in other.get("@/*/*/journal/**") if reply.ok}
        assert f"{root}/ledger" in found
        assert not any("/journal/" in str(r.ok.key_expr) for r in other.get("@/**") if r.ok)


def test_rows_that_the_disk_refused_are_taken_back_out_of_the_ledger(tmp_path: Path) -> None:
    with recording(tmp_path) as (recorder, other):
        numbered = publisher(other, "r/n")
        probe(other, "r/n")
        for _ in range(3):
            numbered.put(b"x")
        until_rows(recorder, 3)
        # As after a full disk: rows were entered that the writer then dropped and counted.
        recorder._ledger.enter(0, batch_of([Row("r/lost", sn=0), Row("r/lost", sn=1)]))
        recorder._writer.stats.dropped_rows += 2
        assert recorder.totals()["rows"] == 5
        recorder._put_aside()
        totals = recorder.totals()
        assert (totals["rows"], totals["drops"]) == (3, 2)
        assert recorder.report()["drops"] == {"disk full": 2}
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.sound, verdict.ledger) == (True, "agrees")
    kept = checkpoint.stored(tmp_path)
    assert kept is not None
    assert kept.drops == {"disk full": 2}


def test_a_ledger_put_aside_while_recording_is_never_ahead_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenlake.journal.recorder.PUT_ASIDE_EVERY", 0.05)
    with recording(tmp_path) as (recorder, other):
        numbered = publisher(other, "r/n")
        probe(other, "r/n")
        for number in range(200):
            numbered.put(str(number))
        until_rows(recorder, 200)
        until(lambda: checkpoint.stored(tmp_path) is not None)
        ledger = checkpoint.stored(tmp_path)
        assert ledger is not None
        assert ledger.offsets[0] <= recorder.watermark().offsets[0]
        caught = checkpoint.caught_up(Journal.open(tmp_path), ledger)
        assert caught.agrees(checkpoint.recomputed(Journal.open(tmp_path)))
