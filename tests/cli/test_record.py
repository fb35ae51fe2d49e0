from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zenoh

from tests.cli.programs import command, endpoint, run, run_alone
from tests.waiting import SECONDS
from zenlake.journal import Journal


def rows(path: Path) -> list[tuple[str, bytes]]:
    return [
        (row["key"], row["value"])
        for batch in Journal.open(path).scan(columns=["key", "value"])
        for row in batch.to_pylist()
    ]


def test_what_is_put_is_recorded_and_an_interruption_flushes_it(tmp_path: Path) -> None:
    place = endpoint()
    folder = tmp_path / "flight"
    with command("record", "-k", "r/**", "--to", str(folder), "-q", "-l", place) as recorder:
        recorder.says("recording 'r/**'")
        assert run("put", "-k", "r/a", "-p", "hello", "-e", place) == (0, [])
        assert "r/a: hello" in run("get", "-s", "r/**", "-e", place)[1][0]
        code, lines = run("ledger", "--name", "flight", "-e", place, "--json")
        assert (code, json.loads(lines[0])["unprovable"]) == (0, {"r/a": 1})
        assert recorder.interrupt(signal.SIGTERM) == 0
        assert "1 rows, 5 B; durable up to [1]" in recorder.lines[-1]
    assert rows(folder) == [("r/a", b"hello")]
    assert "ledger agrees" in "\n".join(run_alone("journal", "verify", str(folder))[1])


def test_a_line_a_second_says_how_it_goes(tmp_path: Path) -> None:
    with command("record", "-k", "r/**", "--to", str(tmp_path), "--json") as recorder:
        recorder.says("recording")
        told = json.loads(recorder.says("rows_per_s"))
        assert (told["rows"], told["missing"], told["dropped"]) == (0, 0, 0)
        assert recorder.interrupt() == 130


def test_a_journal_that_is_being_written_is_refused_to_another(tmp_path: Path) -> None:
    with command("record", "-k", "r/**", "--to", str(tmp_path)) as recorder:
        recorder.says("recording")
        code, lines = run("record", "-k", "r/**", "--to", str(tmp_path))
        assert code == 1
        assert "is being written by process" in lines[0]


def test_a_router_records_the_journals_of_its_configuration(tmp_path: Path) -> None:
    place = endpoint()
    folder = tmp_path / "flight"
    file = tmp_path / "router.json5"
    entry = {"name": "flight", "dir": str(folder), "key_exprs": ["r/**"], "fsync": "5ms"}
    file.write_text(json.dumps({"journals": [entry]}))
    with command("router", "-c", str(file), "-l", place) as router:
        router.says("recording journal 'flight'")
        router.says("listens on")
        assert run("put", "-k", "r/a", "-p", "hello", "-e", place) == (0, [])
        assert "r/a: hello" in run("get", "-s", "r/a", "-e", place)[1][0]
        assert router.interrupt() == 130
    assert rows(folder) == [("r/a", b"hello")]


@pytest.mark.interop
def test_a_client_that_is_faster_than_the_start_is_recorded_from_its_first_sample(
    tmp_path: Path,
) -> None:
    place = endpoint()
    folder = tmp_path / "flight"
    file = tmp_path / "router.json5"
    entry = {"name": "flight", "dir": str(folder), "key_exprs": ["r/**"], "fsync": "5ms"}
    file.write_text(json.dumps({"journals": [entry]}))
    settings = zenoh.Config()
    settings.insert_json5("mode", '"client"')
    settings.insert_json5("scouting/multicast/enabled", "false")
    settings.insert_json5("connect/endpoints", json.dumps([place]))
    # It tries all the time, and connects in the moment in which the port is there.
    settings.insert_json5("connect/timeout_ms", str(int(SECONDS * 1000)))
    retry = {"period_init_ms": 1, "period_max_ms": 1, "period_increase_factor": 1}
    settings.insert_json5("connect/retry", json.dumps(retry))

    def publish() -> None:
        with zenoh.open(settings) as client:
            for number in range(300):
                block = zenoh.CongestionControl.BLOCK
                client.put("r/a", str(number), congestion_control=block)

    with ThreadPoolExecutor(1) as client:
        published = client.submit(publish)
        with command("router", "-c", str(file), "-l", place) as router:
            router.says("listens on")
            published.result(SECONDS)
            assert "r/a: 299" in run("get", "-s", "r/a", "-e", place)[1][0]
            assert router.interrupt() == 130
    assert [int(value) for _, value in rows(folder)] == list(range(300))


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a/*", "dir": "x", "key_exprs": ["r"]},
        {"name": "a", "dir": "x", "key_exprs": []},
        {"name": "a", "dir": "x", "key_exprs": ["r"], "fsync": "often"},
        {"name": "a", "dir": "x", "key_exprs": ["r"], "partitions": 0},
        {"name": "a", "key_exprs": ["r"]},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    file = tmp_path / "router.json5"
    file.write_text(json.dumps({"journals": [entry]}))
    code, lines = run_alone("check-config", str(file))
    assert code != 0
    assert any("journals" in line for line in lines)


def test_only_what_lies_around_an_event_is_written(tmp_path: Path) -> None:
    place = endpoint()
    with command(
        "record", "-k", "r/**", "--to", str(tmp_path), "--around", "r/fault?_filter=level>2",
        "--before", "1h", "--after", "0s", "-l", place,
    ) as recorder:  # fmt: skip
        recorder.says("around 'r/fault?_filter=level>2'")
        told = [
            ("r/a", "1"),
            ("r/fault", '{"level": 1}'),
            ("r/fault", '{"level": 3}'),
            ("r/a", "2"),
        ]
        for key, value in told:
            assert run("put", "-k", key, "-p", value, "-e", place) == (0, [])
        recorder.says(f"{1:>4} events  {1:>9} rows wait")  # the last one has come
        assert recorder.interrupt(signal.SIGTERM) == 0
        assert "1 events; 3 rows around them were kept, 1 let go" in "\n".join(recorder.lines)
    assert rows(tmp_path) == [(key, value.encode()) for key, value in told[:3]]
