"""Writes the archive of Spark's classes for this machine, unless it is there already.

    python -m tools.spark_classes

The suite starts dozens of Sparks, several at once. Each that finds no archive starts slowly and
writes one as it ends, ten seconds of a core for each: so one is written before the first of them.
It is that of the Java that comes with the package, which the suite runs on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["STATE", "without_java", "write_archive"]

STATE = Path(__file__).resolve().parents[1] / "build" / "spark-tests"
"""Where the Spark of a test process has its warehouse and its log."""


def without_java(path: str, folder: Path) -> str:
    """Fill a folder with all programs of a PATH but `java`; a PATH of that folder alone."""
    for entry in path.split(os.pathsep):
        for program in Path(entry).glob("*") if Path(entry).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def write_archive() -> None:
    """Start Spark, let it do a little of what it does in tests, and let it write its classes."""
    from zenlake.spark import find_java, spark_session, stop_spark
    from zenlake.spark.classes import ClassArchive
    from zenlake.spark.session import cache_folder, spark_home

    shared = STATE / "spark"
    if not shared.is_symlink():
        # The Spark of a test process looks here, programs of the suite where users' programs do.
        shutil.rmtree(shared, ignore_errors=True)
        STATE.mkdir(parents=True, exist_ok=True)
        shared.symlink_to(cache_folder())
    archive = ClassArchive(find_java(), spark_home() / "jars", cache_folder())
    archive.options()  # which gives an archive that somebody has finished its name
    if archive.file.is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session("classes", "local[2]")
        try:
            rows = spark.range(1000).selectExpr("id", "id % 7 AS k", "cast(id AS string) AS s")
            rows.write.parquet(f"{folder}/rows")
            read = spark.readStream.schema(rows.schema).parquet(f"{folder}/rows")
            counts = read.groupBy("k").count().writeStream.outputMode("complete")
            written = counts.format("memory").queryName("counts").trigger(availableNow=True)
            written.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
            spark.sql("SELECT k, max(s) FROM counts JOIN (SELECT 1 AS k, 'a' AS s) USING (k) "
                      "GROUP BY k ORDER BY k").collect()  # fmt: skip
        finally:
            stop_spark(spark)
    archive.options()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as programs:
        os.environ.pop("JAVA_HOME", None)
        os.environ["PATH"] = without_java(os.environ["PATH"], Path(programs))
        write_archive()
