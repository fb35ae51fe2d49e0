"""Tables with features that are not understood are refused by name before a row is read."""

from __future__ import annotations

import json
import string
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.ingest.deletions import purge
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.maintain.background import BackgroundMaintenance
from zenlake.lake.maintain.repair import repair
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.query.planner import references
from zenlake.lake.table.data_files import read_table, write_file
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.features import TableDemands, UnsupportedTable, refusal_of
from zenlake.lake.table.location import LakeLocation

JSON = 5
CONFIG = read_config(
    """{tables: {pose: {format: "robot/${id}/pose"}, battery: {format: "robot/${id}/battery"}}}"""
)

Action = dict[str, Any]


def protocol(reader: int, writer: int, *features: str, writes: tuple[str, ...] = ()) -> Action:
    """A protocol; `features` are of readers and writers, `writes` of writers alone."""
    said: Action = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader == 3:
        said["readerFeatures"] = list(features)
    if writer == 7:
        said["writerFeatures"] = [*features, *writes]
    return {"protocol": said}


def metadata(place: Path, change: Callable[[Action], object] = lambda page: None) -> Action:
    """The metadata of a table, changed."""
    for path in sorted((place / "_delta_log").glob("*.json"), reverse=True):
        for line in path.read_text("utf-8").splitlines():
            action: Action = json.loads(line)
            if "metaData" in action:
                change(action["metaData"])
                return action
    raise AssertionError(place)


def commit(place: Path, *actions: Action) -> None:
    """Write the next page of a log by hand."""
    version = DeltaTable(str(place)).version() + 1
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (place / "_delta_log" / f"{version:020}.json").write_text(lines, "utf-8")


def having(**properties: str) -> Callable[[Action], object]:
    named = {name.replace("__", "."): value for name, value in properties.items()}
    return lambda page: page["configuration"].update(named)


def column(change: Action, **said: Any) -> Callable[[Action], object]:
    """Let the first column say something."""

    def changed(page: Action) -> None:
        schema = json.loads(page["schemaString"])
        schema["fields"][0].update(said)
        schema["fields"][0]["metadata"].update(change)
        page["schemaString"] = json.dumps(schema)

    return changed


def vector_of(*rows: int) -> Action:
    """A deletion vector of rows of one file, as the protocol has it in the log itself."""
    # One bitmap of 32 bits with one container, an array of 16-bit numbers.
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    bitmap += struct.pack(f"<{len(rows)}H", *sorted(rows))
    plain = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(plain + b"\0" * (-len(plain) % 4)),
        "sizeInBytes": len(plain),
        "cardinality": len(rows),
    }


def z85(plain: bytes) -> str:
    """Base 85 with the letters of ZeroMQ."""
    letters = (
        string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    )
    return "".join(
        letters[number // 85**power % 85]
        for (number,) in struct.iter_unpack(">I", plain)
        for power in (4, 3, 2, 1, 0)
    )


def deleted(place: Path, *rows: int, vector: Action | None = None) -> list[Action]:
    """What Delta's connector writes for DELETE: a file again, with a vector of deleted rows."""
    table = DeltaTable(str(place))
    path = min(pa.table(table.get_add_actions())["path"].to_pylist())
    (add,) = [
        action["add"]
        for page in sorted((place / "_delta_log").glob("*.json"))
        for action in map(json.loads, page.read_text("utf-8").splitlines())
        if "add" in action and action["add"]["path"] == path
    ]
    remove = {
        "path": add["path"],
        "dataChange": True,
        "deletionTimestamp": 1,
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    }
    return [
        protocol(3, 7, "deletionVectors"),
        {"remove": remove},
        {"add": {**add, "deletionVector": vector or vector_of(*rows)}},
    ]


UNREADABLE: Action = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 1,
}

Written = Callable[[Path], list[Action]]


def written(*actions: Action) -> Written:
    return lambda _: list(actions)


REFUSED: dict[str, tuple[Written, str]] = {
    "deletion vectors": (
        lambda place: deleted(place, 0),
        "deletion vectors, so nothing in it is read or written until its files are written anew",
    ),
    "deletion vectors that are lost": (
        lambda place: deleted(place, vector=UNREADABLE),
        "deletion vectors that cannot be read",
    ),
    "a reader's feature that nobody knows": (
        lambda _: [protocol(3, 7, "madeUp")],
        "feature madeUp.*ALTER TABLE pose DROP FEATURE madeUp",
    ),
    "a writer's feature that nobody knows": (
        lambda _: [protocol(1, 7, writes=("madeUp",))],
        "feature madeUp",
    ),
    **{
        name: (written(protocol(3, 7, name)), f"feature {name}")
        for name in ("typeWidening", "v2Checkpoint", "vacuumProtocolCheck")
    },
    **{
        name: (written(protocol(1, 7, writes=(name,))), f"feature {name}")
        for name in (
            "allowColumnDefaults", "clustering", "domainMetadata", "icebergCompatV2",
            "identityColumns", "inCommitTimestamp", "rowTracking",
        )
    },
    "what a dropped feature leaves behind": (
        written(protocol(1, 7, writes=("checkpointProtection",))),
        "ALTER TABLE pose DROP FEATURE checkpointProtection TRUNCATE HISTORY`",
    ),
    "a reader of tomorrow": (lambda _: [protocol(4, 7)], "wants a reader of Delta's protocol 4"),
    "a writer of tomorrow": (lambda _: [protocol(1, 8)], "wants a writer of Delta's protocol 8"),
    "column mapping": (
        lambda place: [
            protocol(2, 5),
            metadata(place, having(delta__columnMapping__mode="name")),
        ],
        "maps columns.*DROP FEATURE columnMapping",
    ),
    "a constraint": (
        lambda place: [
            protocol(1, 3),
            metadata(place, having(delta__constraints__positive="n > 0")),
        ],
        "constraint positive.*ALTER TABLE pose DROP CONSTRAINT positive",
    ),
    "an invariant": (
        lambda place: [metadata(place, column({"delta.invariants": '{"expression": "n > 0"}'}))],
        "column 'key' with delta.invariants",
    ),
    "a column that is never null": (
        lambda place: [metadata(place, column({}, nullable=False))],
        "column 'key' that is NOT NULL.*ALTER COLUMN key DROP NOT NULL",
    ),
    "a generated column": (
        lambda place: [
            protocol(1, 4),
            metadata(place, column({"delta.generationExpression": "upper(id)"})),
        ],
        "column 'key' with delta.generationExpression",
    ),
    "rows that stay": (
        lambda place: [metadata(place, having(delta__appendOnly="true"))],
        "lets no row be removed.*UNSET TBLPROPERTIES .'delta.appendOnly'",
    ),
    "offsets that are forgotten": (
        lambda place: [
            metadata(place, having(delta__setTransactionRetentionDuration="interval 1 days"))
        ],
        "forgets how far it is.*UNSET TBLPROPERTIES .'delta.setTransactionRetentionDuration'",
    ),
}  # fmt: skip


def filled(tmp_path: Path) -> tuple[Path, Pipeline]:
    journal = tmp_path / "journal"
    write(journal, rows(0))
    pipeline = Pipeline(str(tmp_path / "lake"), str(journal), Here(), CONFIG)
    pipeline.step()
    return tmp_path / "lake", pipeline


def rows(n: int) -> list[Row]:
    said = json.dumps({"n": n}).encode()
    return [
        Row("robot/1/pose", said, n, encoding=JSON),
        Row("robot/1/battery", said, n, encoding=JSON),
    ]


@pytest.mark.parametrize("what", REFUSED)
def test_a_table_that_is_not_understood_is_refused_with_the_feature_and_the_way_out(
    tmp_path: Path, what: str
) -> None:
    lake, _ = filled(tmp_path)
    table, place = table_of(lake, "pose"), LakeLocation(lake)
    actions, sentence = REFUSED[what]
    commit(lake / "pose", *actions(lake / "pose"))
    refused = pytest.raises(UnsupportedTable, match=f"table 'pose' .*{sentence}")
    with refused:
        Table.open(place, "pose")
    with refused:
        table.refresh()
    with refused:
        table.append([], {"j/0": (None, 1)})
    with refused:
        references(Catalog(place), "SELECT * FROM pose")
    assert references(Catalog(place), "SELECT * FROM battery")[0].tables == {"battery"}
    told = repair(place, "pose", journals=None)
    assert (told.done, len(told.found)) == ([], 1)
    assert (lake / "pose").exists()


def test_features_that_nothing_uses_stand_in_nobodys_way(tmp_path: Path) -> None:
    lake, pipeline = filled(tmp_path)
    unused = ("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed")
    named = ("timestampNtz", "columnMapping", "variantType")
    commit(lake / "pose", protocol(3, 7, *named, writes=unused))
    write(tmp_path / "journal", rows(1))
    pipeline.step()
    assert pipeline.stopped.sentences() == ()
    assert table_of(lake, "pose").totals().rows == 2


def test_a_column_of_documents_is_refused() -> None:
    fields = [{"name": "at", "type": "timestamp_ntz"}, {"name": "said", "type": "variant"}]
    for kept, refused in ((fields[:1], False), (fields, True)):
        schema = json.dumps({"type": "struct", "fields": kept})
        demands = TableDemands(3, 7, frozenset(["timestampNtz", "variantType"]), schema=schema)
        assert ("feature variantType" in refusal_of("pose", demands)) is refused


def test_a_table_with_times_without_a_zone_outlives_the_merging_of_its_files(
    tmp_path: Path,
) -> None:
    place = LakeLocation(tmp_path)
    schema = pa.schema([("at", pa.timestamp("us")), ("day", pa.date32())])
    table = Table.create(place, "seen", schema, "day")
    for n in range(2):
        at = pa.table({"at": pa.array([n], pa.timestamp("us"))})
        table.append([write_file(table.place, at, {"day": "2026-01-01"}, str(n))], {})
    before = table.files()
    rows = pa.concat_tables(read_table(table.place, f.path, table.file_schema) for f in before)
    table.rewrite([write_file(table.place, rows, {"day": "2026-01-01"}, "both")], before, False)
    again = table_of(tmp_path, "seen")
    assert (len(again.files()), again.totals().rows) == (1, 2)


@pytest.mark.parametrize("name", ["samples", "latest", "gaps", "pose"])
def test_a_refused_table_stops_alone_and_goes_on_when_the_feature_is_gone(
    tmp_path: Path, name: str
) -> None:
    lake, pipeline = filled(tmp_path)
    pipeline.finish()
    before = metadata(lake / name)
    commit(lake / name, metadata(lake / name, having(delta__constraints__none="false")))
    write(tmp_path / "journal", rows(1))
    pipeline.step(1.0)
    pipeline.fold(1.0, all=True)
    assert set(pipeline.stopped) == ({name, "latest"} if name == "samples" else {name})
    assert f"table '{name}' has the constraint none" in pipeline.stopped.sentences()[-1]
    assert len(rows_of(lake, "samples")) == 2 + 2 * (name != "samples")
    assert len(rows_of(lake, "battery")) == 2
    assert {one.name for one in pipeline.shown()} >= {"samples", "pose", name}
    pipeline.gaps.missing()
    again = Pipeline(str(lake), str(tmp_path / "journal"), Here(), CONFIG)  # after a restart
    again.step(1.0)
    again.fold(1.0, all=True)
    assert name in again.stopped
    commit(lake / name, before)
    for one in (pipeline, again):
        one.step(1000.0)
        one.fold(1000.0, all=True)
        one.step(2000.0)
        assert one.stopped.sentences() == ()
    for table in ("samples", "pose", "battery", "latest"):
        assert len(rows_of(lake, table)) == 2 * (1 + (table == "samples"))


def test_what_a_refused_quarantine_was_promised_comes_when_the_feature_is_gone(
    tmp_path: Path,
) -> None:
    lake, pipeline = filled(tmp_path)
    before = metadata(lake / "quarantine")
    constraint = having(delta__constraints__none="false")
    commit(lake / "quarantine", metadata(lake / "quarantine", constraint))
    write(tmp_path / "journal", [*rows(1), Row("robot/1/pose", b"{", 2, encoding=JSON)])
    pipeline.step(1.0)
    again = Pipeline(str(lake), str(tmp_path / "journal"), Here(), CONFIG)
    for one in (pipeline, again):
        assert "table 'quarantine' has the constraint none" in one.stopped.sentences()[-1]
    commit(lake / "quarantine", before)
    write(tmp_path / "journal", rows(3))
    for one in (pipeline, again):
        one.step(1000.0)
        one.step(2000.0)
        assert one.stopped.sentences() == ()
    assert len(rows_of(lake, "quarantine")) == 1
    assert len(rows_of(lake, "pose")) == len(rows_of(lake, "battery")) == 3


def test_upkeep_of_the_other_tables_goes_on(tmp_path: Path) -> None:
    lake, pipeline = filled(tmp_path)
    commit(lake / "pose", protocol(3, 7, "madeUp"))
    (lake / "samples" / "left.parquet").write_bytes(b"")
    told: list[str] = []
    upkeep = BackgroundMaintenance(pipeline, Here(), complain=told.append)
    pipeline.config = replace(CONFIG, vacuum_age=0.0, history=0.0)
    upkeep.turn(0.0, time.time())
    assert [line for line in told if "feature madeUp" in line]
    assert not (lake / "samples" / "left.parquet").exists()


def test_nothing_is_forgotten_in_part(tmp_path: Path) -> None:
    lake, _ = filled(tmp_path)
    commit(lake / "pose", protocol(3, 7, "madeUp"))
    with pytest.raises(UnsupportedTable, match="table 'pose'"):
        open(lake).forget("robot/**", tasks=Here())
    assert len(rows_of(lake, "samples")) == 2


def held(lake: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table without those that deletion vectors delete, as delta-rs reads them."""
    found = QueryBuilder().register("t", DeltaTable(str(lake / name))).execute("SELECT * FROM t")
    return list(pa.table(found.read_all()).to_pylist())


@pytest.mark.parametrize("restarted", [False, True])
def test_rows_that_deletion_vectors_delete_are_gone_and_the_lake_goes_on(
    tmp_path: Path, restarted: bool
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    bad = [Row("robot/1/pose", b"{", 100 + n, encoding=JSON) for n in range(3)]
    write(journal, [*(row for n in range(5) for row in rows(n)), *bad], 1)
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    pipeline.step()
    pipeline.finish()
    left = {}
    for name in ("pose", "samples", "quarantine", "latest"):
        path = min((lake / name).glob("*/*.parquet"))
        offsets = pq.ParquetFile(path).read()["offset"].to_pylist()
        left[name] = {*offsets} - {offsets[0], offsets[2 % len(offsets)]}
        commit(lake / name, *deleted(lake / name, 0, *([2] if name != "latest" else [])))
        with pytest.raises(UnsupportedTable, match=f"table '{name}' has deletion vectors"):
            table_of(lake, name)
    write(journal, rows(5), 1)
    if restarted:
        pipeline = Pipeline(str(lake), str(journal), Here(), CONFIG)
    for now in (1.0, 10.0, 1000.0):
        pipeline.step(now)
        pipeline.fold(now, all=True)
    assert pipeline.stopped.sentences() == ()
    for name, more in (("pose", {13}), ("samples", {13, 14}), ("quarantine", set())):
        assert sorted(row["offset"] for row in held(lake, name)) == sorted(left[name] | more)
    assert {row["key"] for row in held(lake, "latest")} == {"robot/1/pose", "robot/1/battery"}
    assert table_of(lake, "pose").totals().rows == 4
    # The feature is there, and the next rows are deleted in the same way.
    commit(lake / "pose", *deleted(lake / "pose", 0))
    pipeline.step(2000.0)
    pipeline.step(3000.0)
    assert len(held(lake, "pose")) == 3


def test_merging_files_by_hand_takes_deleted_rows_away(tmp_path: Path) -> None:
    lake, _ = filled(tmp_path)
    commit(lake / "pose", *deleted(lake / "pose", 0))
    mine = open(lake, config=CONFIG)
    mine.compact(tasks=Here())
    assert held(lake, "pose") == []
    assert len(held(lake, "battery")) == 1


def test_a_lake_that_hears_nothing_takes_deleted_rows_away(tmp_path: Path) -> None:
    lake, pipeline = filled(tmp_path)
    commit(lake / "pose", *deleted(lake / "pose", 0))
    told: list[str] = []
    BackgroundMaintenance(pipeline, Here(), complain=told.append).turn(0.0, time.time())
    assert (told, held(lake, "pose")) == ([], [])
    assert table_of(lake, "pose").totals().rows == 0


def test_a_delete_that_comes_while_files_are_written_anew_counts(tmp_path: Path) -> None:
    lake, pipeline = filled(tmp_path)
    write(tmp_path / "journal", rows(1))
    pipeline.step()
    commit(lake / "pose", *deleted(lake / "pose", 0))
    table = Table.open(LakeLocation(lake), "pose", refused=True)
    assert table is not None

    class Meanwhile(Here):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            theirs = DeltaTable(str(lake / "pose"))
            theirs.delete("n >= 0")
            return super().run(items, what)

    with pytest.raises(CommitConflict):
        purge(table, Meanwhile())
    assert held(lake, "pose") == []
