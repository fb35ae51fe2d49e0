"""The table `quarantine`: what other tables refused, committed after them and never without them.

A table and quarantine are two tables, and two commits. The commit of the first one notes the files
of the quarantine that belong to it; the next run, after a crash too, finishes what was
promised. A table that was made again notes that all its old refusals shall go.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.ingest.deletions import purge
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.model.decoder import Reason
from zenlake.lake.model.sample_rows import DAY, QUARANTINE
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["Quarantine", "QuarantineRemoval", "waiting_for"]


@dataclass(frozen=True, slots=True)
class QuarantineRemoval:
    """A file of the quarantine, and the table whose rows shall leave it."""

    place: str
    file: DataFile
    table: str
    schema: pa.Schema

    def run(self) -> tuple[bool, DataFile | None]:
        """Whether such rows were there, and the file that is left without them, if one is."""
        place = LakeLocation(self.place)
        rows = read_table(place, self.file.path, self.schema)
        others = rows.filter(pc.not_equal(rows["table"], self.table))
        if others.num_rows == rows.num_rows:
            return False, None
        if not others.num_rows:
            return True, None
        return True, write_file(place, others, self.file.partition, uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class MissingRows:
    """A file for the quarantine, and up to where it has the rows of a table by partition."""

    place: str
    file: DataFile
    ends: Mapping[str, int]
    schema: pa.Schema

    def run(self) -> DataFile | None:
        """The file with the rows that the quarantine lacks, if there are any."""
        if least_offset(self.file) >= max(self.ends.values()):
            return self.file
        place = LakeLocation(self.place)
        rows = read_table(place, self.file.path, self.schema)
        lacking = pa.array(
            [
                offset >= self.ends.get(f"{journal}/{partition}", 0)
                for journal, partition, offset in zip(
                    rows["journal"].to_pylist(),
                    rows["partition"].to_pylist(),
                    rows["offset"].to_pylist(),
                    strict=True,
                )
            ],
            pa.bool_(),
        )
        left = rows.filter(lacking)
        if left.num_rows == rows.num_rows:
            return self.file
        if not left.num_rows:
            return None
        return write_file(place, left, self.file.partition, uuid.uuid4().hex)


def least_offset(file: DataFile) -> int:
    """The least offset of the rows in a file; 0 if its statistics do not tell."""
    least = json.loads(file.stats).get("minValues", {}).get("offset")
    return least if isinstance(least, int) else 0


@final
class Quarantine:
    """Settles what other tables have promised to the quarantine."""

    def __init__(self, lake: LakeLocation, tables: Mapping[str, Table], tasks: Tasks) -> None:
        """The table is made if it is not there, and what is open is settled."""
        self._tasks = tasks
        self.table = Table.create(lake, QUARANTINED, QUARANTINE, DAY)
        purge(self.table, tasks)
        self.table.grow({field.name: field.type for field in QUARANTINE})
        # The version of each table up to which the quarantine has its part.
        self._settled: dict[str, int] = {}
        for table in tables.values():
            self.settle(table)

    def settle(self, table: Table) -> None:
        """Commit what the last commit of a table left to the quarantine.

        The driver that made that commit may have been killed right after it.
        """
        if table.version == self._settled.get(table.name):
            return
        note = table.last_note("append")
        if note is not None and (note.get("quarantine") or note.get("rebuilt")):
            self._keep(table.name, note)
        self._settled[table.name] = table.version

    def _keep(self, name: str, note: Mapping[str, Any]) -> None:
        self.table.refresh()
        moved = {
            f"{name}:{app}": (self.table.committed(f"{name}:{app}"), end)
            for app, end in note["moved"].items()
        }
        removed: list[DataFile] = []
        files = [DataFile.of(plain) for plain in note["quarantine"]]
        if note.get("rebuilt"):
            mark = f"{name}:rebuilt"
            before = self.table.committed(mark)
            if before is not None and before >= note["rebuilt"]:
                return
            moved[mark] = before, note["rebuilt"]
            there = self.table.files()
            schema = self.table.file_schema
            rewritten = self._tasks.run(
                [QuarantineRemoval(self.table.place.uri, file, name, schema) for file in there],
                f"take {name} out of quarantine",
            )
            removed = [file for file, (had, _) in zip(there, rewritten, strict=True) if had]
            files += [left for _, left in rewritten if left is not None]
        else:
            # Rows of a commit that was taken back come again, and some of them are here already.
            known = {app: start for app in note["moved"] if (start := moved[f"{name}:{app}"][0])}
            moved = {app: way for app, way in moved.items() if way[0] is None or way[0] < way[1]}
            if not moved:
                return
            if known:
                place = self.table.place.uri
                schema = self.table.file_schema
                lacking = [MissingRows(place, file, known, schema).run() for file in files]
                files = [file for file in lacking if file is not None]
        self.table.append(files, moved, {"kind": "append"}, removed)

    def forget(self, name: str, apps: Collection[str]) -> None:
        """Take all rows of a table out, and how far it was, so that one of its name may be made.

        `apps`: those that have written to the table.
        """
        self.table.refresh()
        there, schema = self.table.files(), self.table.file_schema
        rewritten = self._tasks.run(
            [QuarantineRemoval(self.table.place.uri, file, name, schema) for file in there],
            f"take {name} out of quarantine",
        )
        removed = [file for file, (had, _) in zip(there, rewritten, strict=True) if had]
        left = [file for _, file in rewritten if file is not None]
        moved = {
            mark: (before, 0)
            for mark in (f"{name}:rebuilt", *(f"{name}:{app}" for app in sorted(apps)))
            if (before := self.table.committed(mark))
        }
        self._settled.pop(name, None)
        if removed or moved:
            self.table.append(left, moved, {"kind": "append"}, removed)


def waiting_for(lake: LakeLocation, type: str) -> set[str]:
    """The tables whose samples wait for a definition of this type."""
    table = Table.open(lake, QUARANTINED)
    tables: set[str] = set()
    for file in [] if table is None else table.files():
        rows = read_table(lake / QUARANTINED, file.path, QUARANTINE, ["table", "reason", "detail"])
        mine = pc.and_(
            pc.equal(rows["reason"], str(Reason.DEFINITION)),
            pc.match_substring(rows["detail"], type),
        )
        tables.update(rows.filter(mine)["table"].to_pylist())
    return tables
