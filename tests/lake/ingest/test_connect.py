"""Journal and lake on a store of objects, a Spark that only Spark Connect reaches, and a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.api.sessions import listening, where
from tests.cli.programs import Program
from tests.lake.clusters import connect_server, environment, until_connected
from tests.lake.mixed import mixed, proven_once, rows_at
from tests.lake.numbered import config
from tests.volumes.bucket import SECRET, bucket
from tests.waiting import until
from zenlake.cli.app import application
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.transfer.ship import ship
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["bucket"]

pytestmark = [
    pytest.mark.nightly(day="lake/ingest/test_cluster.py, lake/query/test_object_source.py"),
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

COUNT = 1800


def shipped(home: Path, to: str, count: int) -> dict[str, list[int]]:
    """A journal whose segments are all at `to`, and no longer here; gives what was said in it."""
    said = mixed(home, count)
    JournalWriter.open(home, fsync="never", segment_bytes=1).close()  # seals them
    assert ship(str(home), to, delete=True).deleted == 2
    assert sum(Journal.open(to).watermark().offsets) == count
    return said


def states(lake: str, what: str) -> set[tuple[str | None, str]]:
    """What the table `network` tells of such things: their keys, and what became of them."""
    if Table.open(LakeLocation(lake), "network") is None:
        return set()
    rows = rows_at(lake, "network").to_pylist()
    return {(row["key"], row["state"]) for row in rows if row["what"] == what}


def test_a_spark_without_rdds_fills_a_store_once_though_its_driver_is_killed(
    tmp_path: Path, bucket: tuple[str, Any]
) -> None:
    home, client = bucket
    lake, journal = f"{home}/lake", f"{home}/journal"
    with (
        connect_server(tmp_path) as master,
        listening(mode='"router"', adminspace__enabled="true") as router,
        router.liveliness().declare_token("fleet/7"),
    ):
        said = shipped(tmp_path / "journal", journal, COUNT)
        settings = tmp_path / "lake.json5"
        steps = ("batch: {rows: 600, task_rows: 200}", 'network: {every: "200ms"}')
        settings.write_text(config(tmp_path, *steps))
        run = ["-m", "zenlake", "lake", "run", "--json", "--lake", lake, "--master", master]
        run += ["--journal", journal, "--config", str(settings)]
        until_connected(master)
        with Program(*run, "-e", where(router)) as driver:
            driver.says('"ready"', 200)
            # It hears the bus beside its work.
            until(lambda: ("fleet/7", "came") in states(lake, "liveliness"), "no token", 60)
            until(lambda: bool(states(lake, "node")), "no router", 60)
            # One step is committed; the server is at work on the next.
            driver.says('"rows"', 200)
            driver.process.kill()
            driver.process.wait()
        ran = subprocess.run(
            [sys.executable, *run, "--once"],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment(),
        )
        assert ran.returncode == 0, ran.stderr
        assert SECRET not in ran.stdout + ran.stderr
    asked = ["sql", "SELECT count(*) FROM counter", "--lake", lake, "--master", master]
    refused = CliRunner().invoke(application(), asked)
    assert refused.exit_code == 2
    assert "Spark Connect hides it" in refused.output
    proven_once(lake, journal, said, **{"s3.endpoint": client.meta.endpoint_url})
