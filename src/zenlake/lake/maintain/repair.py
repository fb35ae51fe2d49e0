"""What can be done for damaged tables: torn logs, damaged checkpoints, lost files.

Nothing is deleted: what cannot be read is set aside under another name. A commit that was torn at
the end of a log is taken back, and its rows come again from the journal. A log that is broken
before its end is beyond repair: the table is set aside as a whole, and made again by the pipeline
or by `zenlake lake rebuild` from what is left elsewhere. Files that are lost leave the log, so that
readers find the rest; rows of `samples` that a journal still holds come again in the same commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from zenlake.errors import LocalError, ZError
from zenlake.journal import Journal
from zenlake.lake.maintain.restore import journals_of, restore
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.delta import LOG, CorruptTable, Table
from zenlake.lake.table.features import UnsupportedTable
from zenlake.lake.table.location import LakeLocation

__all__ = ["Repair", "repair"]

_AGAIN: Final = {
    "samples": "it is filled again with what the journal still holds",
    "latest": "it is made again from samples",
    "gaps": "it is made again from what the journal still holds",
    "quarantine": "what is refused from now on goes into a new one",
}


@dataclass(slots=True)
class Repair:
    """What was found in one table, and what was done."""

    table: str
    found: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    #: Rows that are lost with files; those of typed tables can be made again.
    lost_rows: int = 0
    #: Rows of lost files that came again from journals.
    restored_rows: int = 0


def repair(
    lake: LakeLocation, name: str, *, journals: Sequence[str] | None, dry: bool = False
) -> Repair:
    """Look at a table from its log to its files, and mend what can be mended.

    `journals`: folders or addresses of all that flow into the lake, None if there are none any
    more. With `dry` nothing is changed, and `done` says what would be.
    """
    if name not in lake.folders():
        raise LocalError(
            f"the lake at {lake.uri} has no folder '{name}'; it has {', '.join(lake.folders())}"
        )
    report = Repair(name)
    try:
        table = _opened(lake, name, report)
    except UnsupportedTable as error:  # nothing is damaged
        report.found.append(str(error))
        return report
    if table is None and not report.found:
        report.found.append("there is no log in the folder: it is no table")
        return report
    if table is None:
        _mend_log(lake / name, report, dry)
        if dry:
            return report
        table = _opened(lake, name, Repair(name))
        if table is None:
            _set_aside(lake, name, report)
            return report
    _mend_files(table, journals, report, dry)
    return report


def _opened(lake: LakeLocation, name: str, report: Repair) -> Table | None:
    try:
        return Table.open(lake, name)
    except CorruptTable as error:
        report.found.append(str(error).partition("; `")[0])
        return None


def _mend_log(place: LakeLocation, report: Repair, dry: bool) -> None:
    """Take back a torn last commit; leave out checkpoints where all commits are there."""
    names = sorted(n.rpartition("/")[2] for n, _, _ in place.files() if n.startswith(f"{LOG}/"))
    commits = [n for n in names if n.endswith(".json") and n[:-5].isdigit()]
    torn = [n for n in commits if not _is_whole(place, f"{LOG}/{n}")]
    if torn and torn == commits[-len(torn) :] and len(torn) < len(commits):
        for name in torn:
            report.done.append(
                f"version {int(name[:-5])} was not written to its end and is taken back; its rows "
                "come again from the journal"
            )
            if not dry:
                _rename(place, f"{LOG}/{name}", f"{LOG}/{name}.damaged")
    complete = commits and [int(n[:-5]) for n in commits] == list(range(len(commits)))
    points = [n for n in names if "checkpoint" in n and not n.endswith(".damaged")]
    if not torn and complete and points:
        report.done.append("the checkpoint of the log is left out: all commits are there")
        for name in points if not dry else ():
            _rename(place, f"{LOG}/{name}", f"{LOG}/{name}.damaged")


def _is_whole(place: LakeLocation, path: str) -> bool:
    with place.filesystem.open_input_stream(place.path(path)) as page:
        lines = page.read().splitlines()
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _set_aside(lake: LakeLocation, name: str, report: Repair) -> None:
    """Give a table that cannot be read another name."""
    aside = f".{name}.damaged-{int(time.time())}"
    lake.filesystem.move(lake.path(name), lake.path(aside))
    again = _AGAIN.get(name, f"`zenlake lake rebuild {name}` makes it again from samples")
    report.done.append(f"the table is set aside as {aside}; {again}")


def _mend_files(table: Table, journals: Sequence[str] | None, report: Repair, dry: bool) -> None:
    """Take files out of the log that are not there, or are not as long as they were."""
    sizes = {name: size for name, size, _ in table.place.files()}
    lost = [file for file in table.files() if sizes.get(file.path) != file.size]
    if not lost:
        return
    rows = sum(file.rows for file in lost)
    report.found.append(
        f"{len(lost)} of its files are lost or cut, with {rows:,} rows; the first is {lost[0].path}"
    )
    files: list[DataFile] = []
    if table.name == "samples" and journals is not None:
        opened = _opened_all(table, lost, journals, report)
        if opened is None:
            return
        files, report.restored_rows = restore(table, lost, opened, dry=dry)
    report.lost_rows = max(0, rows - report.restored_rows)
    again = ""
    if table.name not in _AGAIN:
        again = f"; `zenlake lake rebuild {table.name}` makes the rows again from samples"
    report.done.append(f"they leave the table, and its other rows can be read{again}")
    if table.name == "samples" and journals is not None:
        report.done.append(
            f"{report.restored_rows:,} of their rows come again from the journal, "
            f"{report.lost_rows:,} are not there any more"
        )
    if not dry:
        table.rewrite(files, lost, True)


def _opened_all(
    table: Table, lost: Sequence[DataFile], journals: Sequence[str], report: Repair
) -> list[Journal] | None:
    """The journals that rows of lost files may be in; None, and why, if not all are here.

    A file that has left the log is not looked for again, so nothing is done by half.
    """
    opened: list[Journal] = []
    why = ""
    for path in journals:
        try:
            opened.append(Journal.open(path))
        except ZError as error:
            why = str(error)
    others = journals_of(table, lost) - {journal.id for journal in opened}
    if not why and others:
        why = f"rows of them are from the journal {min(others)}, which was not named"
    if not why:
        return opened
    report.found.append(f"their rows may be in a journal that cannot be looked into: {why}")
    report.done.append(
        "nothing, so that no row is given up: name every journal that flows into the lake with "
        "--journal, or say --journal none to go on without"
    )
    return None


def _rename(place: LakeLocation, old: str, new: str) -> None:
    place.filesystem.move(place.path(old), place.path(new))
