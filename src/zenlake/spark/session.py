"""Starts Spark: quiet, bound to this machine, in UTC, with this Python and a Java that works.

    from zenlake.spark import spark_session

    spark = spark_session()
    spark.read.format("zenoh").load("journal").show()

The same call with `master="spark://host:7077"` runs on a cluster. A task that fails is tried four
times, also where the master is `local[2]`. What `conf` says wins over what is chosen here.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zenlake.errors import LocalError
from zenlake.spark import jvm
from zenlake.spark.classes import ClassArchive
from zenlake.spark.java import find_java, write_shim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SparkError",
    "cache_folder",
    "is_connect",
    "is_here",
    "spark_session",
    "stop_spark",
    "with_retries",
    "worker_path",
    "worker_python",
]

# How long a Java may take to end: the first one on a machine archives its classes then.
EXIT_SECONDS = 60.0
#: How often a task is tried where the master is local; clusters have the same number.
TASK_TRIES = 4
#: In the environment: options for the Java of every session.
JAVA_OPTIONS = "ZENLAKE_JAVA_OPTIONS"

LOGGING = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
# Spark greets a shell whose own level differs from the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# What a task failed with is raised where it was asked for; its stack would come here, too.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
"""


class SparkError(LocalError):
    """Spark does not start; the message says what is missing and how to mend it."""


def spark_session(
    app: str = "zenlake",
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    state: Path | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    archive_classes: bool = True,
) -> SparkSession:
    """Start Spark, or give the session that runs in this process already.

    `state` is the folder that Spark's own things live in: the warehouse, its log, the archive of
    classes that makes the second start fast. Without it they go where this user keeps caches,
    and errors to the terminal. `progress` is told in words what takes time.
    """
    tell = progress or _silent
    _demand_pyspark()
    if master.startswith("sc://"):
        return _connect(master, {**session_conf(), **(conf or {})}, tell)
    if jvm.active_context() is not None:
        return _join({**session_conf(), **(conf or {})})
    began = time.monotonic()
    java = find_java()
    folder = cache_folder(state)
    home = write_shim(java, folder)
    logging = folder / "log4j2.properties"
    _write(logging, LOGGING)
    options = [f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    launcher: list[str] = []
    first = ""
    if archive_classes and not os.environ.get("SPARK_CONF_DIR"):
        # Never a reason not to start: whatever goes wrong here costs only time.
        with suppress(OSError):
            archive = ClassArchive(java, spark_home() / "jars", folder)
            launcher = archive.launcher_options()
            options += archive.options()
            if not archive.file.is_file():
                first = "; the first time on this machine it takes longer"
    wanted = {
        "spark.app.name": app,
        "spark.master": master,
        **process_conf(master, state),
        **session_conf(),
        **(conf or {}),
    }
    wanted["spark.master"] = with_retries(wanted["spark.master"])
    theirs = wanted.get("spark.driver.extraJavaOptions", "")
    everywhere = os.environ.get(JAVA_OPTIONS, "")
    wanted["spark.driver.extraJavaOptions"] = " ".join([*options, everywhere, theirs]).strip()
    tell(f"starting Spark on Java {java.release} ({java.origin}){first}")
    environment = {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": worker_python(master, os.environ),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(worker_path()),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LAUNCHER_OPTS": " ".join(
            [*launcher, os.environ.get("SPARK_LAUNCHER_OPTS", "")]
        ).strip(),
    }
    if is_here(master):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Spark says so at every start, whether or not anybody uses pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with _environment(environment), _log(state) as log:
        spark = _start(wanted, log)
    tell(f"Spark {spark.version} is ready after {time.monotonic() - began:.1f} s")
    return spark


def stop_spark(spark: SparkSession) -> None:
    """Stop Spark and wait until its Java has ended, so that no process is left behind.

    Sessions of one process share a Spark: who comes second finds it stopped, and does nothing.
    """
    if is_connect(spark):
        spark.stop()  # the session; the server goes on
        return
    gateway = jvm.gateway()
    if gateway is None:
        return
    process = jvm.java_process()
    try:
        spark.stop()
    except Exception:
        if process is None or process.poll() is None:
            raise
        # Its Java has ended: there is nothing left to stop, and who ended it has said why.
    if process is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    jvm.forget_gateway()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(Exception):
        process.wait(EXIT_SECONDS)
        return
    process.kill()
    process.wait()


def kill_spark() -> None:
    """End the Java of this process's Spark at once, whatever it does."""
    process = jvm.java_process()
    if process is not None:
        process.kill()


def is_connect(spark: object) -> bool:
    """Whether a session is a client of Spark Connect: then it has no context and no Java."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _connect(master: str, conf: Mapping[str, str], tell: Callable[[str], None]) -> SparkSession:
    """A session on a server of Spark Connect."""
    from pyspark.errors import PySparkException

    tell(f"asking the Spark at {master.partition(';')[0]}")
    try:
        # As Arrow wants it; Spark says at every start that it does not fully support pandas.
        warnings.filterwarnings("ignore", "PySpark does not yet fully", FutureWarning)
        from pyspark.sql.connect.session import SparkSession as Client

        builder: Any = Client.builder.remote(master)
        for name, value in conf.items():
            builder = builder.config(name, value)
        spark: Any = builder.create()
        tell(f"Spark {spark.version} is ready")
    except ImportError as error:
        raise SparkError(
            f"Spark Connect lacks a package ({error}); run: pip install 'zenlake[connect]'"
        ) from error
    except PySparkException as error:
        first = str(error).partition("\n")[0]
        # What follows a semicolon may be a token.
        raise SparkError(
            f"no Spark answers at {master.partition(';')[0]} ({type(error).__name__}: {first}); "
            "start one with `start-connect-server.sh`, or check the address"
        ) from error
    return spark  # type: ignore[no-any-return]


def process_conf(master: str, state: Path | None = None) -> dict[str, str]:
    """What must be said when Spark starts, for a master like this one."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(worker_path()),
        # Arrow's memory goes back as pages that the system may take, not as pages that it must:
        # asking for them again between two batches was a sixth of the work of a task.
        "spark.executorEnv.MIMALLOC_PURGE_DECOMMITS": "0",
    }
    if is_here(master):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        # Two hundred tasks to shuffle a handful of rows is Spark's default, made for clusters.
        cores = str(max(2, os.cpu_count() or 2))
        conf["spark.sql.shuffle.partitions"] = conf["spark.default.parallelism"] = cores
    if state is not None:
        conf["spark.sql.warehouse.dir"] = str((state / "warehouse").absolute())
    return conf


def session_conf() -> dict[str, str]:
    """What every session wants, and a running one can still be told."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark's default are the 96-bit timestamps of old, which other readers refuse.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Lets `format("zenoh")` see the WHERE clause.
        "spark.sql.python.filterPushdown.enabled": "true",
    }


def with_retries(master: str) -> str:
    """Return a master that tries a task four times, as clusters do: `local[2]` is `local[2,4]`.

    Spark gives a job up at the first failure of a task where a local master says no number.
    """
    local = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*\])?", master)
    return master if local is None else f"local[{local[1] or 1},{TASK_TRIES}]"


def is_here(master: str) -> bool:
    """Whether all of Spark runs on this machine, so that nothing need be open to another."""
    if master.startswith("local"):
        return True
    host = urlsplit(master).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def worker_python(master: str, environment: Mapping[str, str]) -> str:
    """The Python of the workers: ours, unless they run elsewhere and `PYSPARK_PYTHON` names one."""
    theirs = "" if is_here(master) else environment.get("PYSPARK_PYTHON", "")
    return theirs or sys.executable


def worker_path() -> list[str]:
    """The folders of this program's modules that another Python would not find by itself.

    Spark's workers are processes of their own. What is installed beside this interpreter they
    find as we did; a source tree, or the folder a script was started from, they must be told.
    """
    installed = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    shipped = {"site-packages", "dist-packages", "lib-dynload"}
    paths = [Path(entry or ".").resolve() for entry in sys.path]
    return [
        str(path)
        for path in dict.fromkeys(paths)
        if path.exists() and path not in installed and not shipped & set(path.parts)
    ]


def cache_folder(state: Path | None = None) -> Path:
    """Where the shim and the archive of classes live: in `state`, else in this user's cache."""
    if state is None:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(root) / "zenlake" / "spark"
    else:
        folder = state / "spark"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparkError(
            f"cannot make {folder}, where Spark's start-up files go: {error}. "
            "Pass another `state` folder, or set XDG_CACHE_HOME to one that can be written"
        ) from error
    return folder.absolute()


def spark_home() -> Path:
    """Where Spark is installed."""
    _demand_pyspark()
    return Path(jvm.spark_home())


def _demand_pyspark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SparkError(
            f"{error.name} is not installed, and the lake needs it; "
            "run: pip install 'zenlake[spark]'"
        ) from error
    if os.name != "posix":
        raise SparkError(
            f"Spark is started by a shell script here, which {sys.platform} does not run; "
            "use Linux, macOS or WSL"
        )


def _join(wanted: Mapping[str, str]) -> SparkSession:
    """The session that runs already, told what a running one can be told."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    session: SparkSession = builder.config(map=dict(wanted)).getOrCreate()
    return session


def _start(wanted: Mapping[str, str], log: IO[bytes] | None) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(wanted.items()))
    try:
        jvm.start_java(conf, {"stderr": log} if log else None)
        builder: Any = SparkSession.builder
        session: SparkSession = builder.config(conf=conf).getOrCreate()
    except PySparkRuntimeError as error:
        raise SparkError(
            f"Spark's Java ended before it was ready ({error}). What it said is "
            f"{f'in {log.name}' if log else 'above'}; a common cause is too little memory: "
            "it needs about 1 GB, less with conf={'spark.driver.memory': '512m'}"
        ) from error
    return session


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the programs started meanwhile; this process gets its own back."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _log(state: Path | None) -> Iterator[IO[bytes] | None]:
    """The file that Spark complains into; nothing, and so the terminal, without a state folder."""
    if state is None:
        yield None
        return
    path = state / "spark" / "spark.log"
    # One old log is kept: what happened before the restart is what is asked for after it.
    if path.is_file() and path.stat().st_size:
        shutil.move(path, path.with_suffix(".log.1"))
    with path.open("ab", buffering=0) as file:
        yield file


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)


def _silent(words: str) -> None:
    pass
