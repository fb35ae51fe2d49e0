"""Eclipse's nodes as sources of a journal, and as those who ask it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.advanced import Advanced, AdvancedProcess
from tests.interop.lossy import LossyLine
from tests.interop.peer import Peer
from tests.interop.processes import OURS, THEIRS, connect, listen
from tests.journal.recording import until_rows
from tests.waiting import until
from zenlake.journal import Journal
from zenlake.journal.ingest.rows import timestamp_of
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.journal.verify import verify

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[AdvancedProcess]:
    """A process of theirs that lives as long as these tests."""
    with AdvancedProcess(THEIRS) as process:
        yield process


@pytest.fixture
def ours() -> Iterator[Peer]:
    """A node of ours that records."""
    peer = Peer(OURS)
    yield peer
    peer.close()


@pytest.fixture
def theirs(elsewhere: AdvancedProcess, request: pytest.FixtureRequest) -> Iterator[Advanced]:
    """A node of theirs."""
    peer = elsewhere.advanced(request.node.name)
    yield peer
    if peer.is_open():
        peer.close()


def recorder(peer: Peer, path: Path) -> Recorder:
    return Recorder(peer.session, Options(("r/**",), str(path), name="j", fsync="5ms"))


def test_their_client_asks_for_the_past_and_for_the_present(
    tmp_path: Path, ours: Peer, theirs: Advanced
) -> None:
    place = listen(ours, "router")
    with recorder(ours, tmp_path) as recording:
        connect(theirs, place, "client")
        theirs.publisher("pub", "r/a")
        theirs.until("pub")
        theirs.publish_many("pub", 10)
        theirs.put("r/b", "text", encoding="text/plain;x", attachment="beside")
        theirs.delete("r/gone")
        until_rows(recording, 12)
        past = theirs.get("r/**?_time=[now(-1h)..now()]")
        assert [one["payload"] for one in past if one["key"] == "r/a"] == [
            str(number) for number in range(10)
        ]
        assert [one["kind"] for one in past if one["key"] == "r/gone"] == ["DELETE"]
        assert all(one["timestamp"] for one in past)
        present = {one["key"]: one for one in theirs.get("r/**")}
        assert {key: one["payload"] for key, one in present.items()} == {"r/a": "9", "r/b": "text"}
        assert present["r/b"]["encoding"] == "text/plain;x"
        assert present["r/b"]["attachment"] == "beside"
        (told,) = theirs.get("@journal/j/watermark")
        assert json.loads(told["payload"])["offsets"] == [12]
        # In one question all replies have keys of their own, so that none takes another's place.
        parts = theirs.get("@journal/j/rows/**?partition=0;start=3;end=9")
        assert {one["key"] for one in parts} == {
            "@journal/j/rows/0/3",
            "@journal/j/rows/0/9/end",
        }


def test_a_row_has_the_time_that_their_subscriber_hears(
    tmp_path: Path, ours: Peer, theirs: Advanced, elsewhere: AdvancedProcess
) -> None:
    place = listen(ours, "router")
    with recorder(ours, tmp_path) as recording:
        beside = elsewhere.advanced("beside")
        connect(beside, place, "client")
        beside.subscribe("heard", "r/**")
        connect(theirs, place, "client", timestamping__enabled=False)
        theirs.publisher("pub", "r/a", congestion_control="BLOCK")
        theirs.until("pub")
        theirs.publish_many("pub", 2000)
        theirs.put("r/b", "x", timestamp=True)
        theirs.put("r/c", "x" * 100_000, congestion_control="BLOCK")
        until_rows(recording, 2002)
        heard = beside.take("heard", 2002)
        beside.close()
        # Its rows were made by a lane that also forwards, not sample by sample.
        lanes = [
            lane for one in ours.session.runtime.neighbours() for lane in one.pushes.lanes.lanes
        ]
        assert any(lane.names for lane in lanes)
    rows = [row for batch in Journal.open(tmp_path).scan() for row in batch.to_pylist()]
    told = [(row["key"], str(timestamp_of(row["hlc"], row["stamp_id"]))) for row in rows]
    assert sorted(told) == sorted((one["key"], one["timestamp"]) for one in heard)
    own = [row["hlc"] for row in rows if row["key"] == "r/a"]
    assert own == sorted(set(own))
    assert not any(row["stamped"] for row in rows)  # the router did, for everybody


def test_gaps_of_a_lossy_line_are_shown_and_then_healed(
    tmp_path: Path, ours: Peer, theirs: Advanced
) -> None:
    place = listen(ours, "peer", "udp")
    with LossyLine(place) as line, recorder(ours, tmp_path) as recording:
        connect(theirs, line.place, "client")
        zid, eid = theirs.advanced_publisher("pub", "r/a", cache=1000, numbered={})
        theirs.publisher("probe", "r/a")
        theirs.until("probe")
        theirs.say("pub", "first" * 40)
        until_rows(recording, 1)
        line.one_in = 3
        worst = 0
        for number in range(60):
            theirs.say("pub", f"{number}" * 100)
            worst = max(worst, recording.totals()["missing"])
        assert line.lost > 0
        line.one_in = 0
        theirs.say("pub", "last" * 40)
        until(lambda: recording.totals()["expected"] == 62)
        assert max(worst, recording.totals()["missing"] + recording.totals()["healed"]) > 0
        until(lambda: recording.totals()["missing"] == 0, str(recording.report()))
        until_rows(recording, 62)
        totals = recording.totals()
        assert totals["healed"] + totals["reordered"] > 0
        assert totals["received"] == 62
    rows = [row for batch in Journal.open(tmp_path).scan() for row in batch.to_pylist()]
    assert sorted(row["source_sn"] for row in rows) == list(range(62))
    assert sum(row["origin"] == 1 for row in rows) == totals["healed"]
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.sound, verdict.ledger, verdict.rows) == (True, "agrees", 62)
    assert Journal.open(tmp_path).watermark().sources == {f"{zid}:{eid}": 61}


@pytest.mark.parametrize("heartbeat", ["heartbeat", "sporadic_heartbeat"])
def test_what_is_lost_at_the_very_end_is_shown_and_then_healed(
    tmp_path: Path, ours: Peer, theirs: Advanced, heartbeat: str
) -> None:
    place = listen(ours, "peer", "udp")
    with LossyLine(place) as line, recorder(ours, tmp_path) as recording:
        connect(theirs, line.place, "client")
        zid, eid = theirs.advanced_publisher("pub", "r/a", cache=1000, numbered={heartbeat: 0.3})
        theirs.publisher("probe", "r/a")
        theirs.until("probe")
        theirs.say("pub", "first" * 40)
        until_rows(recording, 1)
        line.SMALL, line.one_in = 256, 1  # heartbeats pass
        # Samples may share a datagram, and answers that heal too early are lost as well: so what
        # was lost is known by what it said.
        words = [f"{number}" * 400 for number in range(7)]
        for said in words:
            theirs.say("pub", said)
        until(lambda: all(map(line.has_lost, words)), "not all seven were lost")
        line.one_in = 0
        # Nothing more is published; only the heartbeat tells of what is missing.
        shown: list[tuple[int, int]] = []

        def healed() -> bool:
            totals = recording.totals()
            shown.append((totals["expected"], totals["missing"]))
            return totals["expected"] == 8 and totals["missing"] == 0

        until(healed, str(recording.report()))
        assert any(expected == 8 and missing for expected, missing in shown)
        assert recording.totals()["healed"] == 7
        until(lambda: recording.watermark().sources == {f"{zid}:{eid}": 7})
    rows = [row for batch in Journal.open(tmp_path).scan() for row in batch.to_pylist()]
    assert [row["source_sn"] for row in rows] == list(range(8))
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.sound, verdict.ledger, verdict.rows) == (True, "agrees", 8)
    assert verdict.heartbeats >= 1
