"""A Spark of a command's own: started for it, and stopped when it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zenlake.cli.anonymous import AnonymousPort, refuse_others
from zenlake.cli.connection import note
from zenlake.cli.patience import WaitNotice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Announcing", "connect_conf", "sparking"]


@contextmanager
def sparking(master: str, conf: list[str] | None) -> Iterator[SparkSession]:
    """Spark for as long as the block runs."""
    from zenlake.errors import ConfigError
    from zenlake.spark.session import spark_session, stop_spark

    settings: dict[str, str] = {}
    for pair in conf or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--conf {pair}: write KEY=VALUE")
        settings[name] = value
    with Announcing() as tell:
        spark = spark_session(master=master, conf=settings, progress=tell)
    try:
        yield spark
    finally:
        stop_spark(spark)


class Announcing:
    """Says what takes time: in one line that is replaced on a terminal, else in plain lines."""

    def __init__(self) -> None:
        """Nothing is said yet."""
        self._waiting: WaitNotice | None = None

    def __enter__(self) -> Callable[[str], None]:
        """Return the function that says what takes time from now on."""
        return self._tell

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        self._end()

    def _tell(self, words: str) -> None:
        self._end()
        if sys.stderr.isatty():
            self._waiting = WaitNotice(words)
            self._waiting.__enter__()
        else:
            note(words)

    def _end(self) -> None:
        if self._waiting is not None:
            self._waiting.__exit__()
            self._waiting = None


def connect_conf(place: str | None, allowed: Collection[AnonymousPort] | None = None) -> list[str]:
    """Return the settings with which Spark lets its clients in.

    Raise for an address that other machines reach, unless `allowed` names this port.
    """
    from zenlake.errors import ConfigError

    if place is None:
        return []
    host, _, port = place.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--spark-connect {place}: write a port such as 15002")
    host = host or "127.0.0.1"
    refuse_others(AnonymousPort.SPARK_CONNECT, host, allowed)
    return [
        "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin",
        f"spark.connect.grpc.binding.address={host}",
        f"spark.connect.grpc.binding.port={port}",
        # Views of this database are seen by every session.
        "spark.sql.globalTempDatabase=lake",
    ]
