"""Reading and publishing through a router, by Spark's tasks: other processes than this one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zenlake
from tests.api.sessions import listening, where
from tests.spark.rows import MIDNIGHT, row, write_journal
from tests.waiting import SECONDS
from zenlake.journal import Journal
from zenlake.journal.serving.documents import Documents
from zenlake.journal.serving.serve import JournalReplies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenlake.api.session import Session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def router() -> Iterator[Session]:
    with listening(mode='"router"') as session:
        yield session


@pytest.fixture(scope="module")
def endpoint(router: Session) -> str:
    return where(router)


class Heard:
    """What a subscriber got, and a way to wait for it."""

    def __init__(self, session: Session, keys: str) -> None:
        self.samples: list[tuple[str, bytes, str, str, bytes | None]] = []
        self._more = threading.Condition()
        self._subscriber = session.declare_subscriber(keys, self._take)

    def _take(self, sample: zenlake.Sample) -> None:
        attachment = sample.attachment
        with self._more:
            self.samples.append(
                (
                    str(sample.key_expr),
                    sample.payload.to_bytes(),
                    sample.kind.name.lower(),
                    str(sample.encoding),
                    None if attachment is None else attachment.to_bytes(),
                )
            )
            self._more.notify()

    def wait(self, count: int) -> list[tuple[str, bytes, str, str, bytes | None]]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.samples) >= count, SECONDS), self.samples
            return sorted(self.samples)


def test_rows_become_puts_and_deletes(
    spark: SparkSession, router: Session, endpoint: str, tmp_path: Path
) -> None:
    heard = Heard(router, "out/**")
    rows = [
        ("out/a", b"1", "put", "application/json", b"x"),
        ("out/b", b"", "delete", None, None),
        ("out/c", None, None, None, None),
        ("out/d", b"4", None, None, None),
        (None, b"5", None, None, None),
        ("out//e", b"6", None, None, None),
        ("out/f", b"7", "patch", None, None),
    ]
    frame = spark.createDataFrame(
        rows, "key string, value binary, kind string, encoding string, attachment binary"
    )
    options = {"zenoh.connect": endpoint, "encoding": "text/plain", "onInvalid": "drop"}
    report = tmp_path / "report.jsonl"
    frame.repartition(2).write.format("zenoh").options(report=str(report), **options).mode(
        "append"
    ).save()
    assert heard.wait(4) == [
        ("out/a", b"1", "put", "application/json", b"x"),
        ("out/b", b"", "delete", "zenoh/bytes", None),
        ("out/c", b"", "delete", "zenoh/bytes", None),
        ("out/d", b"4", "put", "text/plain", None),
    ]
    assert json.loads(report.read_text()) == {
        "puts": 2,
        "deletes": 2,
        "dropped": {
            "a row has no key": 1,
            "KeyExprError": 1,
            "a kind is neither put nor delete": 1,
        },
    }


def test_a_journal_behind_the_network_streams_into_it_again(
    spark: SparkSession, router: Session, endpoint: str, tmp_path: Path
) -> None:
    rows = [row(f"in/{n % 5}", b"%d" % n, MIDNIGHT + n) for n in range(50)]
    write_journal(tmp_path / "robots", rows, partitions=2)
    journal = Journal.open(tmp_path / "robots")
    documents = Documents(journal.watermark, dict, dict)
    answers = JournalReplies(
        router,
        journal,
        documents,
        None,
        lambda: None,
        [],
        is_ready=lambda: True,
        time=False,
        complete=False,
    )
    heard = Heard(router, "in/**")
    try:
        read = spark.read.format("zenoh").option("journal", "robots")
        frame = read.option("zenoh.connect", endpoint).load()
        assert frame.where("key = 'in/3'").count() == 10
        stream = (
            spark.readStream.format("zenoh")
            .option("journal", "robots")
            .option("zenoh.connect", endpoint)
            .option("startingOffsets", "earliest")
            .option("maxRecordsPerTrigger", 30)
            .load()
        )
        report = tmp_path / "report.jsonl"
        query = (
            stream.writeStream.format("zenoh")
            .option("zenoh.connect", endpoint)
            .option("report", str(report))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        answers.close()
    assert sorted(int(value) for _, value, *_ in heard.wait(50)) == list(range(50))
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(line["batch"], line["puts"]) for line in lines] == [(0, 30), (1, 20)]
