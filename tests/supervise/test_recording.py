"""A recorder that fails is opened again, and the session that it listens on goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import zenlake
from tests.cli.programs import run_alone
from tests.waiting import until
from zenlake.api.session import Session
from zenlake.config.model_services import JournalService
from zenlake.engine.services import service_metrics, service_troubles
from zenlake.errors import ZError
from zenlake.journal.ledger.outages import MOST, OUTAGES, add_outage, known_outages
from zenlake.keys import KeyExpr
from zenlake.node.inspection.metrics import JOURNAL_STUCK
from zenlake.supervise.recording import Recording

ALONE = '{scouting: {multicast: {enabled: false}}, listen: {endpoints: []}, mode: "peer"}'


@pytest.fixture
def session() -> Iterator[Session]:
    with zenlake.open(zenlake.Config.from_json5(ALONE)) as session:
        yield session


def service(folder: Path) -> JournalService:
    return JournalService(
        name=KeyExpr("here"), dir=str(folder), key_exprs=(KeyExpr("**"),), segment_bytes=1
    )


def durable(recording: Recording) -> int:
    (fact,) = recording.report()
    return int(fact.get("durable", -1))


def test_a_recorder_whose_folder_was_taken_away_is_opened_again(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "journal"
    with Recording(session, (service(folder),)) as recording:
        session.put("robot/7", "1")
        until(lambda: durable(recording) == 1)
        # At once: a file that the writer makes meanwhile would keep the folder.
        folder.rename(tmp_path / "away")

        def noticed() -> bool:
            session.put("robot/7", "2")  # which operation fails is the writer's affair
            return int(recording.report()[0]["restarts"]) > 0

        until(noticed)
        until(lambda: recording.report()[0]["state"] == "up")
        (told,) = [line for line in caplog.messages if "is recorded again" in line]
        assert re.search(r"samples from about 2\S+ to 2\S+ are not in it", told)
        before = durable(recording)
        session.put("robot/7", "3")
        until(lambda: durable(recording) > before)
        assert (folder / "journal.json").is_file()
        # What nobody can prove is named: in the journal, its stats, its ledger, and the status.
        noted = known_outages(folder)
        ((began, ended),) = [(one["from"], one["to"]) for one in noted["last"]]
        assert f"samples from about {began[:-1]}" in told
        assert began < ended
        (recorder,) = recording.recorders
        assert recorder.stats()["outages"] == noted
        for document in ("stats", "ledger"):
            (reply,) = session.get(f"@journal/here/{document}", timeout=10)
            assert reply.ok is not None
            assert json.loads(reply.ok.payload.to_bytes())["outages"] == noted
        assert recording.report()[0]["outages"] == noted
    _, lines = run_alone("ledger", str(folder))
    assert f"not recorded from {began} to {ended}: the recorder was away" in lines


def test_outages_are_counted_and_the_last_ones_kept(tmp_path: Path) -> None:
    at = datetime(2026, 1, 31, tzinfo=UTC)
    assert known_outages(tmp_path) == {"count": 0, "seconds": 0.0, "last": []}
    for n in range(MOST + 5):
        add_outage(tmp_path, at + timedelta(hours=n), at + timedelta(hours=n, seconds=1.5))
    found = known_outages(tmp_path)
    assert (found["count"], found["seconds"], len(found["last"])) == (105, 157.5, MOST)
    assert found["last"][0] == {
        "from": "2026-01-31T05:00:00.000Z", "to": "2026-01-31T05:00:01.500Z"
    }  # fmt: skip
    (tmp_path / OUTAGES).write_text("[broken")
    assert known_outages(tmp_path)["count"] == 0


def test_a_node_says_of_its_journals_which_are_not_written(
    session: Session, tmp_path: Path
) -> None:
    folder = tmp_path / "taken"
    folder.write_text("a file where the folder should be")
    root = "@/node/peer"
    runtime = session.runtime

    def stuck() -> dict[str, float]:
        return {
            labels["journal"]: value
            for metric, labels, value in service_metrics(runtime)
            if metric is JOURNAL_STUCK
        }

    with Recording(session, (service(folder),), patient=True) as recording:
        (trouble,) = service_troubles(runtime)
        assert trouble.startswith("journal 'here' is not recorded: ")
        ((key, fact),) = recording.documents(root, f"{root}/**")
        assert key == f"{root}/status/journals/here"
        assert isinstance(fact, dict)
        assert fact["state"] != "up"
        assert stuck() == {"here": 1}
        folder.unlink()
        until(lambda: not service_troubles(runtime))
        assert stuck() == {"here": 0}
    assert service_troubles(runtime) == []
    assert stuck() == {}


def test_who_is_patient_records_once_the_folder_can_be_written(
    session: Session, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    folder.write_text("in the way")
    with pytest.raises((ZError, OSError)), Recording(session, (service(folder),)):
        pass
    with Recording(session, (service(folder),), patient=True) as recording:
        (fact,) = recording.report()
        assert fact["state"] == "resting"
        assert str(folder) in fact["reason"]
        assert recording.recorders == []
        folder.unlink()
        until(lambda: recording.report()[0]["state"] == "up")
        session.put("robot/7", "1")
        until(lambda: durable(recording) == 1)
