from __future__ import annotations

import json
import time
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import JournalLocked, LocalError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.ledger import checkpoint
from zenlake.journal.options import RetainRule
from zenlake.journal.serving import recall
from zenlake.journal.serving.latest import COLUMNS as LATEST_COLUMNS
from zenlake.journal.serving.latest import Latest
from zenlake.journal.verify import verify
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.continuous.result_table import ResultTable
from zenlake.lake.ingest.gaps import LEDGER
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.maintain.status_file import write_status
from zenlake.lake.model.status import LakeStatus
from zenlake.lake.table.data_files import read_notes
from zenlake.lake.table.location import LakeLocation

JSON = 5
MARK = "anna-was-here"
CONFIG = read_config('{tables: {seen: {format: "person/${who}/seen"}}, history: "7d"}')


def heard(journal: Path, n: int) -> None:
    told = f'{{"note": "{MARK}", "n": {n}}}'.encode()
    write(
        journal,
        [
            Row("person/anna/seen", told, n, encoding=JSON),
            Row("person/anna/seen", f"{MARK} is no JSON".encode(), n, encoding=JSON),
            Row("person/anna/gone", MARK.encode(), n),
            Row("person/bert/seen", b'{"note": "bert-stays", "n": 1}', n, encoding=JSON),
        ],
    )


def found_in(folder: Path, mark: str) -> list[str]:
    """The files that have a text somewhere, whether as they are or unpacked."""
    held = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        bare = path.read_bytes()
        if path.suffix == ".parquet":
            rows = pq.ParquetFile(path).read()
            notes = read_notes(LakeLocation(path.parent), path.name)
            bare += repr(rows.to_pylist()).encode() + b"".join(notes.values())
            bare += zlib.decompress(notes[LEDGER]) if LEDGER in notes else b""
        elif path.suffix == ".avro":
            bare += repr(avro(path)).encode()
        if mark.encode() in bare:
            held.append(str(path.relative_to(folder)))
    return held


def test_keys_are_gone_from_tables_old_versions_journal_and_quarantine(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    for n in range(3):
        heard(journal, n)
        pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
        pipeline.step()
        pipeline.finish()
    open(lake, config=CONFIG).compact(tasks=Here())
    heard(journal, 3)  # the lake has not read this yet
    assert len(found_in(lake, MARK)) > 5
    assert found_in(journal, MARK)
    before = {name: len(rows_of(lake, name)) for name in ("samples", "seen", "quarantine")}
    stayed = [row for row in rows_of(lake, "samples") if "bert" in row["key"]]

    gone = open(lake, config=CONFIG).forget("person/anna/**", journal, tasks=Here())

    assert gone["journal"] == 12
    assert {name: gone[name] for name in before} == {"samples": 9, "seen": 3, "quarantine": 3}
    assert gone["latest"] == 2
    assert found_in(tmp_path, MARK) == []
    assert found_in(lake, "bert-stays")
    assert [row for row in rows_of(lake, "samples") if "bert" in row["key"]] == stayed
    # The pipeline goes on where it was, with nothing lost or doubled, and nothing comes back.
    assert verify(Journal.open(journal)).problems == []
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    assert pipeline.step().behind == 0
    pipeline.finish()
    assert [row["key"] for row in rows_of(lake, "samples")] == ["person/bert/seen"] * 4
    assert [row["who"] for row in rows_of(lake, "seen")] == ["bert"] * 4
    assert rows_of(lake, "quarantine") == []
    assert [row["key"] for row in rows_of(lake, "latest")] == ["person/bert/seen"]
    assert found_in(tmp_path, MARK) == []
    # Once more finds nothing, and the journal is still written and read.
    assert sum(open(lake).forget("person/anna/**", journal, tasks=Here()).values()) == 0
    heard(journal, 4)
    assert sum(batch.num_rows for batch in Journal.open(journal).scan()) == 8


def avro(path: Path) -> list[object]:
    """The entries of a manifest of Iceberg, which may be compressed."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.typedef import Record

    with AvroFile[Record](PyArrowFileIO().new_input(str(path))) as file:
        return list(file)


def test_no_byte_of_a_key_is_left_in_rollups_iceberg_views_ledgers_or_retired_rows(
    tmp_path: Path,
) -> None:
    lake, journal, place = tmp_path / "lake", tmp_path / "journal", LakeLocation(tmp_path / "lake")
    config = read_config(
        '{tables: {seen: {format: "person/${who}/seen"}}, rollups: true, iceberg: true}'
    )
    for n in range(2):
        heard(journal, n)
        pipeline = Pipeline(str(lake), str(journal), Here(), config)
        pipeline.step()
        pipeline.finish()
        assert pipeline.iceberg is not None
        for table in pipeline.tables.values():
            pipeline.iceberg.publish(table)
    # A view and what it noted, as a lake that ran leaves them.
    definitions = ContinuousQueryStore(place)
    view = new_definition("notes", "view", "SELECT key, note FROM seen", history=True)
    definitions.write(view)
    (definitions.aside(view) / "state").write_text(f"person/anna {MARK}")
    columns = pa.schema([("note", pa.string())])
    ResultTable(place, view, columns, 0.0).append(pa.table({"note": [MARK]}), {"b": (None, 1)})
    # The recorder's shortcuts, and rows that a rule has retired.
    recorded = Journal.open(journal)
    checkpoint.write(journal, json.dumps(checkpoint.recomputed(recorded).state()))
    latest = Latest()
    for partition in range(recorded.partitions):
        for batch in recorded.scan(partition=partition, columns=LATEST_COLUMNS):
            latest.enter(batch, partition)
    recall.write(LocalFiles(journal), recorded.id, recorded.watermark().offsets, latest)
    rules = LogLimits(segment_bytes=1, rules=(RetainRule("person/anna/gone", 1e-6),))
    now = [time.time()]
    log = Log(LocalFiles(journal), limits=rules, clock=lambda: now[0])
    log.tend()
    now[0] += 100.0
    while log.tend() == 0.0:
        pass
    assert log.retired.rows == 2
    log.close()
    for text, where in ((MARK, "notes/"), (MARK, "latest.arrow"), ("anna", "ledger.json")):
        assert [one for one in found_in(tmp_path, text) if where in one]
    folders = ("seen/_iceberg", "rollups/", "gaps/", "latest/")
    for folder in folders:
        assert [one for one in found_in(lake, "person/anna") if one.startswith(folder)]

    gone = open(lake, config=config).forget("person/anna/**", journal, tasks=Here())

    assert (gone["journal"], gone["gaps"]) == (6, 2)
    assert gone["rollups"] > 0
    assert found_in(tmp_path, MARK) == found_in(tmp_path, "anna") == []
    for folder in folders:
        assert [one for one in found_in(lake, "person/bert") if one.startswith(folder)]
    # The view is still there and begins anew; all others go on where they were.
    (anew,) = definitions.all().values()
    assert (anew.name, anew.sql) == (view.name, view.sql)
    assert anew.id != view.id
    verdict = verify(Journal.open(journal))
    assert verdict.sound, verdict.problems
    heard(journal, 2)
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    assert pipeline.step().behind == 0
    pipeline.finish()
    assert [row["who"] for row in rows_of(lake, "seen")].count("bert") == 3
    assert {row["key"]: row["rows"] for row in rows_of(lake, "gaps")} == {
        "person/anna/seen": 2,
        "person/anna/gone": 1,
        "person/bert/seen": 3,
    }


def test_nothing_is_forgotten_while_somebody_writes(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    heard(journal, 0)
    Pipeline(str(lake), str(journal), Here(), CONFIG).step()
    with (
        JournalWriter.open(journal, fsync="never"),
        pytest.raises(JournalLocked),
    ):
        open(lake).forget("**", journal, tasks=Here())
    write_status(str(lake), LakeStatus(state="running", written=time.time(), pid=1, every=1.0))
    with pytest.raises(LocalError, match="stop it"):
        open(lake).forget("**", journal, tasks=Here())
    assert len(rows_of(lake, "samples")) == 4
