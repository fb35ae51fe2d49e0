from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.query.executor import one_line
from zenlake.lake.query.referenced_tables import Unanswerable, ask, only_counts

COLUMNS = {
    "samples": ["key", "value", "time", "hlc", "offset", "day"],
    "latest": ["key", "value", "time"],
    "battery": ["key", "id", "time", "percent", "cells"],
}


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT count(*) FROM samples", {"samples"}),
        ("select KEY from Samples s where s.offset > 5 order by s.hlc", {"samples"}),
        ("SELECT 1", set()),
        ("SELECT 'samples' AS text", set()),
        ("SELECT percent FROM battery -- not latest", {"battery"}),
        ("WITH samples2 AS (SELECT key AS k FROM samples) SELECT k FROM samples2", {"samples"}),
        ("SELECT * FROM latest JOIN battery USING (key)", {"latest", "battery"}),
        ("SELECT avg(percent) AS p FROM battery GROUP BY id HAVING p > 5 ORDER BY p", {"battery"}),
        ("SELECT x.n FROM (SELECT percent n FROM battery) x", {"battery"}),
        ("SELECT c FROM battery LATERAL VIEW explode(cells) t AS c", {"battery"}),
        ("SELECT transform(cells, c -> c + 1) FROM battery", {"battery"}),
        ("SELECT col FROM (SELECT explode(cells) FROM battery)", {"battery"}),
        ("SELECT key FROM samples WHERE time > now() - INTERVAL 5 MINUTES", {"samples"}),
        ("SELECT rank() OVER (PARTITION BY key ORDER BY hlc) n FROM samples", {"samples"}),
        ("SELECT * FROM range(5)", set()),
        ("SELECT s.key FROM samples s WHERE EXISTS (SELECT 1 FROM latest l WHERE l.key = s.key)",
         {"samples", "latest"}),
        ("SELECT key:a.b::double FROM latest WHERE value:['x'] IS NOT NULL", {"latest"}),
        ("DESCRIBE battery", {"battery"}),
        ("SHOW TABLES", set(COLUMNS)),
    ],
)  # fmt: skip
def test_a_question_names_its_tables(query: str, tables: set[str]) -> None:
    assert ask(query, COLUMNS).tables == tables


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM sampels", "no table 'sampels'; did you mean 'samples'?"),
        ("SELECT * FROM nothing", "no table 'nothing'; there are samples, latest, battery"),
        ("SELECT percnt FROM battery", "no column 'percnt' in 'battery'; did you mean 'percent'?"),
        ("SELECT b.percnt FROM battery b", "did you mean 'percent'?"),
        ("SELECT id FROM battery WHERE prcent > 5", "battery has key, id, time, percent, cells"),
        ("SELECT percent FROM samples", "no column 'percent' in 'samples'"),
        ("  ; ", "there is no question"),
    ],
)
def test_a_mistake_is_one_line_with_the_names_that_exist(query: str, words: str) -> None:
    with pytest.raises(Unanswerable) as told:
        ask(query, COLUMNS)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_what_spark_knows_by_itself_is_no_mistake() -> None:
    assert ask("SELECT x FROM mine", COLUMNS, lambda name: name == "mine").tables == frozenset()
    assert ask("SELECT x FROM parquet.`/some/file`", COLUMNS).tables == frozenset()


def test_text_that_only_spark_may_understand_is_left_to_it() -> None:
    assert ask("SELECT FROM WHERE (", COLUMNS).tables == set(COLUMNS)


@given(st.text(max_size=40))
def test_whatever_is_asked_nothing_else_is_raised(query: str) -> None:
    with suppress(Unanswerable):
        assert ask(query, COLUMNS).tables <= COLUMNS.keys()


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("SELECT count(*) FROM samples", ("samples", "count(1)")),
        ("select COUNT(*) AS n from Samples;", ("Samples", "n")),
        *(
            (f"SELECT {text}", None)
            for text in (
                "count(*) FROM samples WHERE key = 'a'",
                "count(*) FROM samples GROUP BY key",
                "count(*) FROM samples LIMIT 0",
                "count(DISTINCT key) FROM samples",
                "count(key) FROM samples",
                "count(*) FILTER (WHERE key = 'a') FROM samples",
                "count(*) OVER () FROM samples",
                "count(*) FROM samples TABLESAMPLE (10 PERCENT)",
                "count(*) FROM samples VERSION AS OF 3",
                "count(*) FROM a JOIN b",
                "count(*) FROM range(3)",
                "count(*) FROM samples UNION SELECT 1",
            )
        ),
    ],
)
def test_what_only_counts_the_rows_of_a_table_is_known(
    query: str, counts: tuple[str, str] | None
) -> None:
    assert only_counts(query) == counts


@pytest.mark.parametrize(
    "said",
    [
        "[PATH_NOT_FOUND] Path does not exist: file:/lake/pose/day=1/a.parquet. SQLSTATE: 42K03",
        "Job aborted\n[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:///lake/pose/day=1/a.parquet. File does not exist. SQLSTATE: KD001",
        "java.io.FileNotFoundException: File file:/lake/pose/day=1/a.parquet is gone",
    ],
)
def test_a_lost_file_is_named_with_the_way_out(said: str) -> None:
    told = one_line(said)
    assert told.startswith("a file of a table is lost: /lake/pose/day=1/a.parquet; ")
    assert "zenlake lake repair" in told


def test_a_value_without_end_in_what_spark_says_takes_no_time() -> None:
    words = "x" * 2_000_000
    assert (
        one_line(f"The value '{words}' cannot be cast.") == f"The value '{words}' cannot be cast."
    )
    assert one_line(f"File {words} does not exist").startswith("File xxx")


def test_another_mistake_of_a_question_is_told_as_before() -> None:
    assert one_line("[X] Path does not exist: nothing. SQLSTATE: 1") == (
        "Path does not exist: nothing."
    )
