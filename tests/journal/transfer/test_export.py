from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer

from tests.journal.heard import Row, ros
from tests.journal.written import write_rows
from zenlake.errors import JournalError, LocalError
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.transfer.export import to_mcap, to_parquet
from zenlake.journal.transfer.imports import from_mcap, from_parquet

ROWS = [
    Row("a/b", sn=0, hlc=-5, value=b"one"),
    Row("c", hlc=7, value=b"two", attachment=ros(1)),
    Row("a/b", sn=1, hlc=9, kind=1, value=b""),
    Row("a/b", sn=2, hlc=10, stamped=True),
]


def told(journal: Journal) -> list[dict[str, object]]:
    """Rows in the order of time, without what importing changes."""
    rows = [row for batch in journal.scan() for row in batch.to_pylist()]
    for row in rows:
        del row["offset"], row["origin"]
    return sorted(rows, key=lambda row: row["hlc"])


@pytest.mark.parametrize("form", ["parquet", "mcap"])
def test_rows_come_back_from_a_file_as_they_were(tmp_path: Path, form: str) -> None:
    journal = write_rows(tmp_path / "from", ROWS[:2], ROWS[2:])
    file = tmp_path / f"rows.{form}"
    write, read = {"parquet": (to_parquet, from_parquet), "mcap": (to_mcap, from_mcap)}[form]
    assert write(journal, file) == 4
    with JournalWriter.open(tmp_path / "to", partitions=2) as writer:
        assert read(writer, file) == 4
    back = Journal.open(tmp_path / "to")
    assert told(back) == told(journal)
    origins = {row["origin"] for batch in back.scan() for row in batch.to_pylist()}
    assert origins == {2}
    assert list(tmp_path.glob("*.part")) == []


def test_an_export_holds_what_was_chosen(tmp_path: Path) -> None:
    journal = write_rows(tmp_path / "j", ROWS)
    assert to_parquet(journal, tmp_path / "a.parquet", keys="a/**") == 3
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("key").to_pylist() == ["a/b"] * 3
    assert table.schema.metadata[b"zenlake.name"] == b"j"


def test_other_tools_see_topics_and_times_in_an_mcap(tmp_path: Path) -> None:
    to_mcap(write_rows(tmp_path / "j", ROWS), tmp_path / "x.mcap")
    with open(tmp_path / "x.mcap", "rb") as file:
        found = [(c.topic, m.data) for _, c, m in make_reader(file).iter_messages()]
    assert sorted(found) == sorted((row.key, row.value) for row in ROWS)


def test_an_mcap_of_others_becomes_keys(tmp_path: Path) -> None:
    file = tmp_path / "theirs.mcap"
    with open(file, "wb") as out:
        writer = Writer(out)
        writer.start()
        channel = writer.register_channel("/tf//static*", "json", 0)
        writer.add_message(channel, 2_000_000_000, b"{}", 1_500_000_000)
        writer.finish()  # type: ignore[no-untyped-call]
    with JournalWriter.open(tmp_path / "j") as journal:
        assert from_mcap(journal, file) == 1
    (row,) = (row for batch in Journal.open(tmp_path / "j").scan() for row in batch.to_pylist())
    assert (row["key"], row["encoding_id"]) == ("tf/static_", 5)
    assert row["time"].timestamp() == 1.5
    assert row["received"].timestamp() == 2.0
    assert row["stamped"]


def test_a_parquet_file_needs_keys_and_values(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["a", "b"]}), tmp_path / "bad.parquet")
    pq.write_table(
        pa.table({"key": ["a", "b"], "value": pa.array([b"1", b"2"])}), tmp_path / "good.parquet"
    )
    with JournalWriter.open(tmp_path / "j", partitions=2) as writer:
        with pytest.raises(JournalError, match="no column value"):
            from_parquet(writer, tmp_path / "bad.parquet")
        assert from_parquet(writer, tmp_path / "good.parquet") == 2
    assert sorted(str(r["key"]) for r in told(Journal.open(tmp_path / "j"))) == ["a", "b"]


def test_an_export_that_fails_leaves_no_file(tmp_path: Path) -> None:
    journal = write_rows(tmp_path / "j", ROWS)
    with pytest.raises(LocalError, match="no partition 9"):
        to_parquet(journal, tmp_path / "x.parquet", partition=9)
    assert [path.name for path in tmp_path.iterdir()] == ["j"]
