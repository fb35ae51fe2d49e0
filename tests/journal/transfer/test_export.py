from __future__ import annotations

from contextlib import suppress
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
from zenlake.journal.transfer.taken_in import taking_in

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


@pytest.mark.parametrize(
    ("text", "id", "schema"),
    [
        ("application/json;pose", 5, "pose"),
        ("unknown(4000);v2", 4000, "v2"),
        ("my/own;v2", 65535, "my/own;v2"),
        ("unknown(65535);text/plain", 65535, "text/plain"),
    ],
)
def test_an_mcap_names_encodings_so_that_their_numbers_come_back(
    tmp_path: Path, text: str, id: int, schema: str
) -> None:
    write_rows(tmp_path / "a", [Row("a", encoding_id=id, encoding_schema=schema)])
    to_mcap(Journal.open(tmp_path / "a"), tmp_path / "ours.mcap")
    with open(tmp_path / "ours.mcap", "rb") as file:
        ((_, channel, _),) = make_reader(file).iter_messages()
    assert channel.metadata["zenoh.encoding"] == text
    # As another tool copies it: the attachments are gone.
    with open(tmp_path / "copy.mcap", "wb") as out:
        writer = Writer(out)
        writer.start()
        copied = writer.register_channel("a", channel.message_encoding, 0, channel.metadata)
        writer.add_message(copied, 2_000_000_000, b"{}", 1_500_000_000)
        writer.finish()  # type: ignore[no-untyped-call]
    with JournalWriter.open(tmp_path / "b") as journal:
        assert from_mcap(journal, tmp_path / "copy.mcap") == 1
    (row,) = (row for batch in Journal.open(tmp_path / "b").scan() for row in batch.to_pylist())
    assert (row["encoding_id"], row["encoding_schema"]) == (id, schema)


@pytest.mark.parametrize("form", ["parquet", "mcap"])
def test_a_file_is_imported_once_unless_it_is_told_to(tmp_path: Path, form: str) -> None:
    file = tmp_path / f"rows.{form}"
    write, read = {"parquet": (to_parquet, from_parquet), "mcap": (to_mcap, from_mcap)}[form]
    write(write_rows(tmp_path / "from", ROWS), file)
    with JournalWriter.open(tmp_path / "to") as writer:
        assert read(writer, file) == 4
    with JournalWriter.open(tmp_path / "to") as writer:
        with pytest.raises(JournalError, match=r"was imported on .* 4 rows; --again"):
            read(writer, file.rename(tmp_path / f"other.{form}"))
        assert read(writer, tmp_path / f"other.{form}", again=True) == 4
    assert len(told(Journal.open(tmp_path / "to"))) == 8


def test_an_import_that_was_cut_short_is_noticed_and_one_that_failed_at_once_is_not(
    tmp_path: Path,
) -> None:
    bad, good = tmp_path / "bad.mcap", tmp_path / "good.mcap"
    bad.write_bytes(b"no mcap at all")
    to_mcap(write_rows(tmp_path / "from", ROWS), good)
    with JournalWriter.open(tmp_path / "to") as writer:
        for _ in range(2):
            with pytest.raises(JournalError, match=r"bad\.mcap is no MCAP file"):
                from_mcap(writer, bad)
        with suppress(KeyboardInterrupt), taking_in(writer, good, False) as taken:
            taken.rows += 1
            raise KeyboardInterrupt
        with pytest.raises(JournalError, match="was cut short"):
            from_mcap(writer, good)


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
