"""A lake on a store of objects, filled by a Spark that only Spark Connect reaches, and a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.programs import Program
from tests.lake.clusters import connect_server, environment, until_connected
from tests.lake.mixed import mixed, proven_once
from tests.lake.numbered import config
from tests.volumes.bucket import SECRET, bucket

__all__ = ["bucket"]

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

COUNT = 1800


def test_a_spark_without_rdds_fills_a_store_once_though_its_driver_is_killed(
    tmp_path: Path, bucket: tuple[str, Any]
) -> None:
    lake, client = bucket
    with connect_server(tmp_path) as master:
        said = mixed(tmp_path / "journal", COUNT)
        settings = tmp_path / "lake.json5"
        settings.write_text(config(tmp_path, "batch: {rows: 600, task_rows: 200}"))
        run = ["-m", "zenlake", "lake", "run", "--once", "--json", "--lake", lake]
        run += ["--journal", str(tmp_path / "journal"), "--config", str(settings)]
        run += ["--master", master]
        until_connected(master)
        with Program(*run) as driver:
            # One step is committed; the server is at work on the next.
            driver.says('"rows"', 200)
            driver.process.kill()
            driver.process.wait()
        ran = subprocess.run(
            [sys.executable, *run], capture_output=True, text=True, timeout=300, env=environment()
        )
        assert ran.returncode == 0, ran.stderr
        assert SECRET not in ran.stdout + ran.stderr
        asked = subprocess.run(
            [sys.executable, "-m", "zenlake", "sql", "SELECT count(*) FROM counter",
             "--lake", lake, "--master", master],
            capture_output=True, text=True, timeout=300, env=environment(),
        )  # fmt: skip
        assert asked.returncode != 0
        assert "Spark Connect hides it" in asked.stderr
    proven_once(lake, said, **{"s3.endpoint": client.meta.endpoint_url})
