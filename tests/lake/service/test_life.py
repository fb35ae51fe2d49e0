"""The life of a question that docs/architecture.md tells is the one that a question has."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

import zenlake
from tests.docs.test_lives import HOP, LIVES
from tests.journal.recording import until_rows
from tests.lake.service.test_bus import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.timeout(240)]

SOURCES = Path(zenlake.__file__).parent


def is_interpreted(file: str) -> bool:
    name = f"zenlake.{file.removesuffix('.py').replace('/', '.')}"
    return str(import_module(name).__file__).endswith(".py")


def test_a_question_walks_through_the_hops_in_their_order(
    tmp_path: Path, spark: SparkSession
) -> None:
    # The interpreter does not see calls of compiled functions.
    hops = [hop for hop in HOP.findall(dict(LIVES)["A question"]) if is_interpreted(hop[0])]
    files = {str(SOURCES / file): file for file, _ in hops}
    walked: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename in files:
            walked.append((files[frame.f_code.co_filename], frame.f_code.co_name))

    threading.setprofile(note)
    try:
        with opened(tmp_path, "robot/**", spark=spark) as world:
            for n in range(3):
                world.put(f"robot/{n}", {"battery": n})
            until_rows(world.recorder, 3)
            world.pipeline.step()
            sql = "SELECT CAST(value AS string) AS told FROM samples WHERE key = 'robot/2'"
            assert world.rows(f"@lake/sql?_sql={sql}") == [
                ("@lake/sql", [{"told": '{"battery": 2}'}])
            ]
    finally:
        threading.setprofile(None)
    walk = iter(walked[walked.index(hops[0]) :])
    assert [hop for hop in hops if hop in walk] == hops
    assert len(hops) > 10
