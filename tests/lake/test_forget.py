from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import JournalLocked, LocalError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.verify import verify
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.status import LakeStatus, write_status

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
    import pyarrow.parquet as pq

    held = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        bare = path.read_bytes()
        if path.suffix == ".parquet":
            bare += repr(pq.ParquetFile(path).read().to_pylist()).encode()
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
