"""Segments on their way to a store of objects: decisions alone, then a real server of S3."""

from __future__ import annotations

import dataclasses
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.journal.rows import rows
from tests.lake.journals import Here
from tests.volumes.bucket import SECRET, bucket
from zenlake.cli.app import application
from zenlake.errors import JournalCorrupt, JournalError, JournalLocked
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.disk.layout import JournalInfo
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import RemoteFiles
from zenlake.journal.disk.segment import Segment
from zenlake.journal.transfer.cargo import deletable, ends, listing, loads
from zenlake.journal.transfer.ship import Shipped, ship
from zenlake.journal.writing.readers import read_by_all
from zenlake.lake import Pipeline
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["bucket"]

TO = "s3://b/j"


def segment(first: int, end: int, path: str = "here", closed: float = 0.0) -> Segment:
    return Segment(first, end, 100, path, True, 0, 0, 0, 0, None, "a", "b", closed)


def manifest(*bounds: int, path: str = "here") -> Manifest:
    pairs = pairwise(bounds)
    return Manifest(bounds[0], tuple(segment(a, b, path, closed=b) for a, b in pairs))


def test_the_oldest_go_first_and_what_is_elsewhere_does_not_go() -> None:
    found = loads([manifest(0, 5, 20), manifest(0, 10), manifest(0, 3, path="s3://b/x")])
    assert [(load.partition, load.segment.first) for load in found] == [(0, 0), (1, 0), (0, 5)]
    assert found[0].path == "p0000/00000000000000000000.arrow"
    assert found[0].arrived({found[0].path: 100})
    assert not found[0].arrived({found[0].path: 99})
    assert not found[0].arrived({})


def test_what_a_rule_changed_after_it_was_shipped_stays_there_as_it_was() -> None:
    here = manifest(0, 5, 9)
    rewritten = dataclasses.replace(here.segments[0], bytes=40, retired=2)
    mine = [dataclasses.replace(here, segments=(rewritten, here.segments[1]))]
    assert [load.segment.first for load in loads(mine, [manifest(0, 5)])] == [5]
    (kept,) = deletable(mine, [here], {(0, 0), (0, 5)})
    assert (kept.partition, kept.segment.first, kept.segment.end) == (0, 5, 9)
    # What was changed before goes as it is.
    assert [load.segment.first for load in loads(mine, [Manifest()])] == [0, 5]


def test_what_is_listed_there_has_no_gap() -> None:
    here = manifest(0, 5, 9, 12)
    assert listing(0, here, Manifest(), {0, 9}, TO).end == 5
    assert listing(0, here, Manifest(), {5, 9}, TO) == Manifest(0)
    told = listing(0, here, Manifest(), {0, 5, 9}, TO)
    assert told.segments[0].path == "p0000/00000000000000000000.arrow"
    # What was let go here since stays there.
    later = manifest(9, 12, 20)
    assert listing(0, later, told, {12}, TO).segments[0].first == 0
    assert ends([listing(0, later, told, {12}, TO), Manifest(3)]) == (20, 3)
    with pytest.raises(JournalError, match="offsets 12 to 15 of partition 0 were let go before"):
        listing(0, manifest(15, 20), told, {15}, TO)


def test_only_what_is_listed_and_proven_may_be_deleted() -> None:
    here = [manifest(0, 5, 9, 12)]
    there = [manifest(0, 5, 9)]
    assert deletable(here, there, []) == []
    assert [x.segment.first for x in deletable(here, there, {(0, 0), (0, 9)})] == [0]
    # The same first offset with other rows is another segment.
    assert deletable(here, [manifest(0, 4)], {(0, 0)}) == []


def recorded(folder: Path, first: int, count: int) -> None:
    with JournalWriter.open(folder, fsync="never", partitions=2, segment_bytes=1) as writer:
        for n in range(first, first + count):
            writer.append(n % 2, rows(["a", "b"], start=2 * n))
            writer.flush()


def values(journal: Journal) -> list[bytes]:
    return sorted(v for batch in journal.scan() for v in batch["value"].to_pylist())


@pytest.mark.timeout(120)
def test_a_robot_ships_over_a_bad_network_and_the_lake_reads_there(
    tmp_path: Path, bucket: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    to, client = bucket
    home = tmp_path / "journal"
    recorded(home, 0, 6)
    before = values(Journal.open(home))
    sealed = len(list(home.rglob("*.arrow")))
    assert sealed >= 4

    # The network goes in the middle: what arrived stays, and the next call goes on.
    put, left = RemoteFiles.put, 3

    def fail(self: RemoteFiles, path: str, source: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError("the network is gone")
        put(self, path, source)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFiles, "put", fail)
        with pytest.raises(OSError, match="gone"):
            ship(str(home), to)
    done = ship(str(home), to)
    assert (done.segments, done.present, done.deleted) == (sealed - 1, 1, 0)
    assert ship(str(home), to) == Shipped(0, 0, sealed, 0)

    there = Journal.open(to)
    assert there.id == Journal.open(home).id
    sent = Journal.open(home).scan(end=dict(enumerate(there.watermark().offsets)))
    assert values(there) == sorted(v for batch in sent for v in batch["value"].to_pylist())
    assert there.watermark().offsets == tuple(
        max(s.end for s in Journal.open(home).segments(p) if s.sealed) for p in range(2)
    )
    info = JournalInfo.from_json((home / "journal.json").read_bytes(), "")
    assert read_by_all(LocalFiles(home), info) == there.watermark().offsets

    # Damage there is found before anything is deleted here.
    key = f"{to.removeprefix('s3://zenlake/')}/p0000/{0:020d}.arrow"
    good = client.get_object(Bucket="zenlake", Key=key)["Body"].read()
    client.put_object(Bucket="zenlake", Key=key, Body=bytes(len(good)))
    with pytest.raises(JournalCorrupt, match="is not what lies here"):
        ship(str(home), to, delete=True)
    assert len(list(home.rglob("*.arrow"))) == sealed
    client.put_object(Bucket="zenlake", Key=key, Body=good)
    assert ship(str(home), to, delete=True) == Shipped(0, 0, sealed, sealed)
    assert not list(home.rglob("*.arrow"))
    assert values(Journal.open(home)) == before

    # Recording goes on, and so does shipping.
    recorded(home, 6, 2)
    told = CliRunner().invoke(application(), ["journal", "ship", str(home), "--to", to, "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["segments"] >= 1
    assert SECRET not in told.output

    lake = Pipeline(str(tmp_path / "lake"), to, Here())
    lake.step()
    lake.finish()
    samples = Table.open(LakeLocation(tmp_path / "lake"), "samples")
    assert samples is not None
    assert samples.totals().rows == len(values(Journal.open(to))) > 0


def test_beside_a_recorder_it_ships_and_does_not_delete(tmp_path: Path) -> None:
    home, to = tmp_path / "journal", (tmp_path / "far").as_uri()
    with JournalWriter.open(home, fsync="never", segment_bytes=1) as writer:
        for n in range(3):
            writer.append(0, rows(["a"], start=n))
            writer.flush()
        with pytest.raises(JournalLocked, match=str(os.getpid())):
            ship(str(home), to, delete=True)
        assert ship(str(home), to).deleted == 0
    other = tmp_path / "other"
    JournalWriter.open(other).close()
    with pytest.raises(JournalError, match="holds another journal"):
        ship(str(other), to)
