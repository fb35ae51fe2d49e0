"""Tables on the bus: each row that is new or has changed, at least once."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zenoh

import zenlake
from tests.api.sessions import config, connected, listening, where
from tests.ext.cable import Cable
from tests.ports import free_port
from tests.waiting import until
from zenlake.lake.continuous.publishing import RECENT, RouterLink
from zenlake.lake.pipelines.publication import TablePublication
from zenlake.lake.pipelines.publishing import PublishedTables, TablePublisher
from zenlake.lake.table.data_files import DataFile, write_file
from zenlake.lake.table.delta import LOG, Table
from zenlake.lake.table.location import LakeLocation

COLUMNS = pa.schema([("id", pa.string()), ("wh", pa.float64())])
ENERGY = TablePublication("fleet/${id}/energy", ("id", "wh"), "", "application/json")
Row = tuple[str | None, float]
Heard = list[tuple[str, Any]]


def made(lake: LakeLocation) -> Table:
    return Table.create(lake, "energy", COLUMNS, (), by_programs=True)


def files(table: Table, rows: Sequence[Row]) -> list[DataFile]:
    found = [dict(zip(COLUMNS.names, row, strict=True)) for row in rows]
    name = uuid.uuid4().hex
    return [write_file(table.place, pa.Table.from_pylist(found, COLUMNS), {}, name)]


def append(table: Table, *rows: Row) -> None:
    table.append(files(table, rows), {})


def replace(table: Table, *rows: Row) -> None:
    table.refresh()
    table.rewrite(files(table, rows), table.files(), True)


@contextmanager
def eclipse(router: zenlake.Session) -> Iterator[Heard]:
    """What a subscriber of Eclipse's package hears, as it comes."""
    heard: Heard = []
    client = zenoh.Config()
    client.insert_json5("mode", '"client"')
    client.insert_json5("connect/endpoints", json.dumps([where(router)]))

    def take(sample: zenoh.Sample) -> None:
        assert str(sample.encoding) == "application/json"
        heard.append((str(sample.key_expr), json.loads(sample.payload.to_bytes())["wh"]))

    with zenoh.open(client) as session:
        session.declare_subscriber("fleet/**", take)
        until(lambda: router.info.links())
        # Its declaration has come when an answer to a later one has.
        list(session.get("nothing/at/all", timeout=5.0))
        yield heard


@pytest.mark.interop
def test_an_eclipse_subscriber_hears_rows_that_are_new_or_changed_and_no_others(
    tmp_path: Path,
) -> None:
    lake = LakeLocation(tmp_path / "lake")
    table = made(lake)
    append(table, ("before", 0.0))
    pages = tmp_path / "published"
    with listening(mode='"router"') as router, eclipse(router) as heard:
        published = PublishedTables(router)
        published.follow(lake, {"energy": ENERGY}, pages)
        append(table, ("1", 1.0), ("2", 2.0))
        until(lambda: len(heard) == 2)
        replace(table, ("before", 0.0), ("1", 1.5), ("2", 2.0), ("3", 3.0), ("a/b", 4.0))
        until(lambda: len(heard) == 4)
        # The same rows in other files are no news.
        table.refresh()
        before = table.files()
        table.rewrite(files(table, [("before", 0.0), ("1", 1.5), ("2", 2.0)]), before, False)
        append(table, ("4", 4.0))
        until(lambda: len(heard) == 5)
        assert heard == [
            (f"fleet/{n}/energy", wh)
            for n, wh in ((1, 1.0), (2, 2.0), (1, 1.5), (3, 3.0), (4, 4.0))
        ]
        until(lambda: published.facts()["energy"]["waiting"] == 0)
        facts = published.facts()["energy"]
        assert (facts["published"], facts["refused"], facts["begun_again"]) == (5, 1, 0)
        assert "the column 'id' is 'a/b'" in facts["refusal"]
        published.close()
        # While nobody published, as in one run without a bus, rows wait in the table.
        PublishedTables(None).follow(lake, {"energy": ENERGY}, pages)
        append(table, ("5", 5.0))
        published = PublishedTables(router)
        published.follow(lake, {"energy": ENERGY}, pages)
        until(lambda: heard[5:] == [("fleet/5/energy", 5.0)])
        published.close()


def test_what_a_broken_link_may_have_lost_and_what_a_death_left_comes_again(
    tmp_path: Path,
) -> None:
    lake = LakeLocation(tmp_path / "lake")
    table = made(lake)
    page = tmp_path / "energy.json"
    now = 0.0
    port = free_port()
    heard: list[str] = []
    with listening(mode='"router"') as router:
        router.declare_subscriber("fleet/**", lambda sample: heard.append(str(sample.key_expr)))
        cable = Cable(where(router), port=port)
        bus = zenlake.open(
            config(
                mode='"client"',
                connect__endpoints=f'["tcp/127.0.0.1:{port}"]',
                connect__retry="{period_init_ms: 10, period_max_ms: 50}",
            )
        )
        with bus:
            link = RouterLink(bus)

            def opened() -> TablePublisher:
                return TablePublisher(lake, "energy", ENERGY, page, lambda: now)

            publisher = opened()
            append(table, ("1", 1.0))
            publisher.publish(link)
            until(lambda: len(heard) == 1)
            now = RECENT + 1.0
            publisher.publish(link)  # the first has come by now, or the link would have broken
            append(table, ("2", 2.0))
            publisher.publish(link)
            until(lambda: len(heard) == 2)
            cable.cut()
            until(lambda: not link.look() and link.was_broken)
            append(table, ("3", 3.0))
            publisher.publish(link)
            assert (publisher.published, publisher.waiting) == (2, 1)
            cable.join()
            until(link.look)
            publisher.publish(link)
            assert publisher.published == 2  # not before what was lost
            link.was_broken = False
            publisher.begin_again()
            publisher.publish(link)
            until(lambda: len(heard) == 4)
            assert Counter(heard) == Counter([f"fleet/{n}/energy" for n in (1, 2, 2, 3)])
            # A process that dies says nothing of what it put last.
            heard.clear()
            publisher = opened()
            publisher.publish(link)
            until(lambda: len(heard) == 2)
            publisher.close(is_broken=False)
            again = opened()
            again.publish(link)
            assert again.published == 0


def test_commits_that_are_forgotten_are_made_good_by_all_rows(tmp_path: Path) -> None:
    lake = LakeLocation(tmp_path / "lake")
    table = made(lake)
    page = tmp_path / "energy.json"
    with listening(mode='"router"') as router, router.declare_subscriber("fleet/**") as heard:
        link = RouterLink(router)
        TablePublisher(lake, "energy", ENERGY, page)
        append(table, ("1", 1.0))
        append(table, ("2", 2.0))
        table.end_past()
        assert not Path(table.place.uri, LOG, f"{1:020}.json").exists()
        publisher = TablePublisher(lake, "energy", ENERGY, page)
        publisher.publish(link)
        assert (publisher.published, publisher.begun_again, publisher.waiting) == (2, 1, 0)
        assert {str(heard.recv().key_expr) for _ in range(2)} == {
            "fleet/1/energy",
            "fleet/2/energy",
        }
        append(table, ("3", 3.0))
        publisher.publish(link)
        assert str(heard.recv().key_expr) == "fleet/3/energy"
        # A table that was made again is another one: all its rows are new.
        for file in sorted(Path(table.place.uri).rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        append(made(lake), ("1", 1.0))
        publisher.publish(link)
        assert (publisher.published, publisher.begun_again) == (4, 1)


def test_a_table_that_is_published_no_more_begins_anew_if_it_is_again(tmp_path: Path) -> None:
    lake = LakeLocation(tmp_path / "lake")
    table = made(lake)
    pages = tmp_path / "published"
    published = PublishedTables(None)
    published.follow(lake, {"energy": ENERGY}, pages)
    append(table, ("1", 1.0))
    assert (pages / "energy.json").exists()
    published.follow(lake, {}, pages)
    assert (published.names(), list(pages.iterdir())) == ([], [])
    published.follow(lake, {"energy": ENERGY}, pages)
    with listening(mode='"router"') as router, connected(router):
        publisher = TablePublisher(lake, "energy", ENERGY, pages / "energy.json")
        publisher.publish(RouterLink(router))
        assert publisher.published == 0
