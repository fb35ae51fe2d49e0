"""Asks an older Spark with another project's connector: a line of SQL in, a line of JSON out.

As a program this runs in an environment of its own, with nothing of zenlake; `asking` makes it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.ui.enabled": "false",
}

Asked = Callable[[str], Any]


def plain(value: Any) -> Any:
    """Return a value as JSON has it, the same for values of Spark and of Arrow."""
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, datetime):
        # Spark gives times of the machine's zone, which is UTC here, without a zone.
        return str(value.replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, dict):
        return [plain(one) for one in value.values()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in (SETTINGS | json.loads(sys.argv[1])).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        try:
            print(json.dumps(plain(spark.sql(line).collect())), flush=True)
        except Exception as error:
            print(json.dumps({"error": str(error)[:1000]}), flush=True)
    spark.stop()


def _python_with_spark(folder: Path, version: str) -> Path:
    """The interpreter of an environment with nothing but that Spark."""
    import pytest

    python = folder / "bin" / "python"
    ready = folder / f"spark-{version}"
    if not ready.exists():
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={version}"]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Spark {version} does not come from PyPI: {done.stderr[-200:]}")
        ready.touch()
    return python


def _pom(package: str) -> str:
    """The address at which Maven says what a package is."""
    group, name, version = package.split(":")
    place = f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.pom"
    return f"https://repo1.maven.org/maven2/{place}"


@contextmanager
def asking(
    machine: dict[str, str],
    folder: Path,
    log: Path,
    spark: str,
    package: str,
    settings: Mapping[str, str],
) -> Iterator[Asked]:
    """Ask that version of Spark, with a package of Maven, statements of SQL; gives the rows.

    `folder`: where the environment is, and what came from Maven. The test is skipped where there
    is no Java, no Maven or no PyPI.
    """
    import pytest

    if "JAVA_HOME" not in machine and shutil.which("java", path=machine["PATH"]) is None:
        pytest.skip("this machine has no Java")
    try:
        urllib.request.urlopen(_pom(package), timeout=20).close()
    except OSError as error:
        pytest.skip(f"Maven cannot be reached: {error}")
    python = _python_with_spark(folder, spark)
    more = {"spark.jars.packages": package, "spark.jars.ivy": str(folder / "ivy"), **settings}
    errors = log.open("w")
    program = subprocess.Popen(
        [str(python), __file__, json.dumps(more)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={name: value for name, value in machine.items() if name != "PYTHONPATH"}
        | {"TZ": "UTC"},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    told, said = program.stdin, program.stdout

    def asked(statement: str) -> Any:
        print(statement, file=told, flush=True)
        line = said.readline()
        while line.startswith(("Deleted ", "Upgraded ")):  # VACUUM and ALTER say so by themselves
            line = said.readline()
        assert line.startswith("["), (statement, line, log.read_text("utf-8")[-2000:])
        return json.loads(line)

    try:
        assert json.loads(said.readline() or '"it did not start"') == "ready"
        yield asked
    finally:
        told.close()
        program.wait(60)
        said.close()
        errors.close()


if __name__ == "__main__":
    main()
