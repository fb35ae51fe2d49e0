"""How long questions take: on the bus, at the terminal, and beside DuckDB on the same tables.

    python -m bench.answers --rows 10000000 [--no-spark] [--json build/bench-answers.json]
    python -m bench.answers --rows 10000000 --folder /tmp/lake [--compact]

A lake of so many rows of 1000 keys is filled without Spark, and one of the first tenth of them; in
a folder that is named they are filled once and kept, and `--compact` merges files first. Then a
router that records, the lake on its bus and a client run in this process, and are asked again and
again; first questions that need the same few rows, of both lakes in turns. Spark is started after
those, and for SQL only. Ratios are of one run; times depend on what else the machine does. At the
end, a replay at full speed beside publishers (`bench.answers.replaying`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import zenlake
from bench.answers.replaying import replaying
from bench.lake.__main__ import START, batches
from zenlake.journal import JournalWriter
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.maintain.upkeep import compact
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.bus import BusAnswers
from zenlake.lake.service.service import Service
from zenlake.lake.table.delta import Table

R = TypeVar("R")
REPLIES = 10_000
QUESTIONS = {
    "count": "SELECT count(*) FROM samples",
    "one key": "SELECT count(*) FROM samples WHERE key = 'robot/7/pose'",
    "by key": "SELECT key, count(*) FROM samples GROUP BY key ORDER BY 2 DESC LIMIT 10",
    "distinct": "SELECT count(DISTINCT key) FROM samples",
    "sizes": "SELECT max(octet_length(value)), min(hlc), max(hlc) FROM samples",
}


class Here:
    """Work that is done in this process."""

    parallel = 1
    alive = True

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """One after the other."""
        return [item.run() for item in items]


def json_batches(rows: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Some of the rows of `bench.lake`, with payloads that can be asked about."""
    for number, batch in enumerate(batches(rows, 24)):
        if not start <= number * batch.num_rows < end:
            continue
        first = number * batch.num_rows
        values = [
            b'{"battery": %d, "n": %d}' % (n % 100, n) for n in range(first, first + batch.num_rows)
        ]
        place = batch.schema.get_field_index("value")
        columns = list(batch.columns)
        columns[place] = pa.array(values, pa.binary())
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def filled(folder: Path, rows: int, start: int, end: int) -> Pipeline:
    writer = JournalWriter.open(folder / "journal", name="j", fsync="never")
    for batch in json_batches(rows, start, end):
        writer.append(0, batch)
    writer.flush()
    writer.close()
    config = LakeConfig(batch_rows=1_000_000, task_rows=1_000_000)
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), config)
    while pipeline.step().behind:
        pass
    pipeline.finish()
    return pipeline


def timed(ask: Callable[[], object], times: int) -> dict[str, float]:
    ((_, told),) = in_turns({"": ask}, times).items()
    return told


def in_turns(asks: Mapping[str, Callable[[], object]], times: int) -> dict[str, dict[str, float]]:
    """How long each takes, one after the other again and again."""
    found: dict[str, list[float]] = {name: [] for name in asks}
    for ask in asks.values():
        ask()
    for _ in range(times):
        for name, ask in asks.items():
            began = time.perf_counter()
            ask()
            found[name].append((time.perf_counter() - began) * 1000)
    return {
        name: {"p50_ms": round(statistics.median(some), 1), "max_ms": round(max(some), 1)}
        for name, some in found.items()
    }


def session(endpoint: str | None, mode: str) -> zenlake.Session:
    config = zenlake.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("scouting/multicast/enabled", "false")
    if endpoint is None:
        config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
    else:
        config.insert_json5("connect/endpoints", json.dumps([endpoint]))
    return zenlake.open(config)


def replies_a_second(client: zenlake.Session, selectors: Mapping[str, str]) -> dict[str, float]:
    """How fast replies come at best to each of these, one after the other again and again."""
    best = dict.fromkeys(selectors, 0.0)
    for _ in range(9):
        for name, selector in selectors.items():
            began = time.perf_counter()
            count = sum(reply.ok is not None for reply in client.get(selector, timeout=120))
            best[name] = max(best[name], count / (time.perf_counter() - began))
    return best


class Bus:
    """A router that records, a lake on its bus, and a client."""

    def __init__(self, folder: Path, pipeline: Pipeline, spark: Any, held: ExitStack) -> None:
        router = held.enter_context(session(None, "router"))
        keys = ("robot/**", "live/**")
        options = Options(keys, str(folder / "journal"), name="j", fsync="5ms")
        self.recorder = held.enter_context(Recorder(router, options))
        self.endpoint = router.runtime.node.settings.locators[0]
        bus = held.enter_context(session(self.endpoint, "client"))
        self.client = held.enter_context(session(self.endpoint, "client"))
        service = Service(Lake(pipeline.place, spark, LakeConfig()), [pipeline.journal], bus)
        held.callback(service.close)
        service.add(BusAnswers(service, bus))

    def ask(self, selector: str, least: int = 1) -> Callable[[], None]:
        """A question of the client's."""

        def run() -> None:
            found = list(self.client.get(selector, timeout=120))
            assert sum(reply.ok is not None for reply in found) >= least, found

        return run

    def questions(self) -> dict[str, Any]:
        """Questions of all kinds, and how fast replies come."""
        before = sum(self.recorder.watermark().offsets)
        for n in range(1000):
            self.client.put(f"live/{n % 10}", json.dumps({"n": n}))
        while sum(self.recorder.watermark().offsets) < before + 1000:
            time.sleep(0.01)
        ask = self.ask
        middle, end = _at(300), _at(600)
        told: dict[str, Any] = {
            "tail only, 10 of 1000 samples": timed(
                ask("live/3?_time=[now(-1h)..];_limit=10", 10), 50
            ),
            "_time on one key, all its samples": timed(ask(f"robot/7/pose?_time=[..{end}]"), 5),
            "_filter of the newest values, 1000 keys": timed(ask("robot/**?_filter=battery<50"), 3),
            "_asof on 1000 keys": timed(ask(f"robot/**?_asof={middle}", 1000), 3),
        }
        for n in range(REPLIES):
            self.client.put(f"live/many/{n % 10}", json.dumps({"n": n}))
        while sum(self.recorder.watermark().offsets) < before + 1000 + REPLIES:
            time.sleep(0.01)
        values = [json.dumps({"n": n}).encode() for n in range(REPLIES)]

        stamp = self.client.new_timestamp()

        def answer(query: zenlake.Query) -> None:
            for value in values:
                query.reply("plain/a", value)

        def stamped(query: zenlake.Query) -> None:
            """As a lake must: a sample has the time that it was published with."""
            for value in values:
                query.reply("plain/b", value, timestamp=stamp)

        with (
            self.client.declare_queryable("plain/a", answer),
            self.client.declare_queryable("plain/b", stamped),
            session(self.endpoint, "client") as other,
        ):
            asked = {
                "plain_s": "plain/a?_time=[..]",
                "plain_with_times_s": "plain/b?_time=[..]",
                "lake_s": "live/many/*?_time=[now(-1h)..]",
            }
            rates = replies_a_second(other, asked)
        told["replies"] = {
            **{name: round(rate) for name, rate in rates.items()},
            "ratio": round(rates["lake_s"] / rates["plain_s"], 2),
            "ratio_with_times": round(rates["lake_s"] / rates["plain_with_times_s"], 2),
        }
        return told


def pruned(buses: Mapping[str, Bus]) -> dict[str, Any]:
    """What needs the same few rows, however many others there are."""
    asked = {
        "_time on one key, ten seconds": f"robot/7/pose?_time=[{_at(10)};10s]",
        "_asof on one key": f"robot/7/pose?_asof={_at(20)}",
    }
    return {
        name: in_turns({rows: bus.ask(selector) for rows, bus in buses.items()}, 31)
        for name, selector in asked.items()
    }


def _at(seconds: int) -> str:
    """A moment of the recorded time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + seconds))


def beside_duckdb(folder: Path, lake: Lake) -> dict[str, Any]:
    import duckdb
    from deltalake import DeltaTable

    from zenlake.lake.query.executor import SqlExecutor

    questions = SqlExecutor(lake)
    told: dict[str, Any] = {}
    try:
        for name, query in QUESTIONS.items():
            ours = timed(lambda query=query: questions.ask(query, "bench"), 3)  # type: ignore[misc]

            def theirs(query: str = query) -> None:
                table = DeltaTable(str(folder / "lake" / "samples"))
                samples = table.to_pyarrow_dataset()  # noqa: F841
                found = duckdb.sql(query)
                assert found is not None
                found.fetchall()

            other = timed(theirs, 3)
            told[name] = {
                "spark_ms": ours["p50_ms"],
                "duckdb_ms": other["p50_ms"],
                "ratio": round(ours["p50_ms"] / other["p50_ms"], 1),
            }
    finally:
        questions.close()
    return told


def terminal(folder: Path) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "zenlake",
        "sql",
        QUESTIONS["count"],
        "--lake",
        str(folder / "lake"),
    ]

    def ask() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return timed(ask, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--compact", action="store_true")
    chosen = parser.parse_args()
    told: dict[str, Any] = {"rows": chosen.rows}
    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        folder = chosen.folder or Path(name)
        tenth = chosen.rows // 10
        if not (folder / "lake").exists():
            filled(folder / "tenth", chosen.rows, 0, tenth)
            began = time.perf_counter()
            filled(folder, chosen.rows, 0, chosen.rows)
            told["filled_rows_s"] = round(chosen.rows / (time.perf_counter() - began))
        few, pipeline = (filled(place, chosen.rows, 0, 0) for place in (folder / "tenth", folder))
        for one in (few, pipeline) if chosen.compact else ():
            samples = Table.open(one.place, "samples")
            assert samples is not None
            compact(samples, Here(), LakeConfig(), full=True)
            told["files of samples"] = len(samples.files())
        with ExitStack() as first:
            lakes = {f"{tenth} rows": (folder / "tenth", few)}
            lakes[f"{chosen.rows} rows"] = (folder, pipeline)
            told["pruned"] = pruned({n: Bus(*lake, None, first) for n, lake in lakes.items()})
        spark = None
        if not chosen.no_spark:
            from zenlake.spark.session import spark_session, stop_spark

            spark = spark_session()
            held.callback(stop_spark, spark)
        told |= Bus(folder, pipeline, spark, held).questions()
        if spark is not None:
            told["zenlake sql at the terminal"] = terminal(folder)
            told["beside DuckDB"] = beside_duckdb(folder, Lake(pipeline.place, spark, LakeConfig()))
        told["replay"] = replaying(folder / "journal", min(300_000, chosen.rows))
    text = json.dumps(told, indent=1)
    print(text)
    if chosen.json is not None:
        chosen.json.write_text(text)


if __name__ == "__main__":
    main()
