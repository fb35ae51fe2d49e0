"""Every cast of the lake is here with the reason why no value changes in silence.

Arrow's cast is checked unless it says `safe=False`: it raises `ArrowInvalid` where a value would
not be the same. But a time becomes a day without a word, and a cast that raises stops a table. So
whoever adds a cast says here why it is right.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import zenlake

ROOT = Path(zenlake.__file__).parent
ROOMS = ("lake", "recorded")

DAY_OF = "the day of receipt is a column of its own, beside the time"
SAME = "the types are those of the rows already, or differ in names inside and in offsets alone"
BITS = "a time and the number of its microseconds are the same 64 bits"
LOGGED = "the text of a folder, as the log writes it"
ZONE = "the same microseconds since 1970, with another zone or none to show them in"
WORDS = "places in a dictionary become the words that they stand for"
JSON_TEXT = "JSON is text already; the cast names its type where nothing is refused"
DAY_TEXT = "the name of a folder, beside the day"
TEXT_BYTES = "text in UTF-8 and its bytes are the same"
CHECKED = "checked, and the caller refuses what does not fit, for its sample or for the step"

CASTS: dict[str, dict[str, str]] = {
    "lake/continuous/alert_results.py": {
        "rows[TIME].cast(pa.int64())": BITS,
        "pa.table(columns, COLUMNS.names).cast(COLUMNS)": BITS,
    },
    "lake/continuous/result_table.py": {"rows[one.name].cast(one.type)": CHECKED},
    "lake/continuous/table_stream.py": {
        "rows['received'].cast(pa.date32())": DAY_OF,
        "batch.cast(self._schema)": CHECKED,
        "batch[one.name].cast(one.type)": CHECKED,
    },
    "lake/pipelines/expected_rows.py": {
        "f.when(refused, f.to_json(f.struct('*'))).cast('string')": JSON_TEXT,
        "rows[DAY].cast(pa.string())": DAY_TEXT,
        "rows.cast(pa.binary())": TEXT_BYTES,
        "given[one.name].cast(one.type)": SAME,
    },
    "lake/decode/arrow_rows.py": {"facts['received'].cast(pa.date32())": DAY_OF},
    "lake/decode/formats/arrow_ipc.py": {
        "values.cast(pa.int64())": "a time in nanoseconds and their number are the same 64 bits",
        "pa.array(numbers // 1000, mask=exact.is_null().to_numpy()).cast(INSTANT)": (
            "all nanoseconds stand in the column beside it"
        ),
        "values.cast(wanted)": CHECKED,
        "values.cast(pa.int64() if kind == INSTANT else pa.int32())": BITS,
    },
    "lake/decode/formats/ros2.py": {
        "pa.array(times, pa.int64()).cast(INSTANT)": BITS,
    },
    "lake/decode/formats/ros2_shapes.py": {
        "stamp.field('sec').cast(pa.int64())": "32 bits into 64",
        "exact.cast(pa.timestamp('ns', 'UTC'))": "a time in nanoseconds is their number",
        "micros.cast(INSTANT)": "all nanoseconds stand in the column beside it",
    },
    "lake/decode/json_columns.py": {
        "values.cast(pa.list_(pa.float64()) if listed else pa.float64())": (
            "numbers that no double holds are looked for before"
        ),
    },
    "lake/decode/typed_rows.py": {
        "values.cast(ARROW[kind])": "`fit` has looked at all values when the column became wider",
        "part.facts['received'].cast(pa.date32())": DAY_OF,
    },
    "lake/history/answer.py": {"rows['time'].cast(pa.int64())": BITS},
    "lake/history/file_reader.py": {
        "pa.table({field.name: _repeated(told[field.name], field.type, len(rows)) if field.name in "
        "told else table[field.name] for field in columns}).cast(columns)": CHECKED,
    },
    "lake/history/samples.py": {
        "sample_rows(chosen, journal.id, partition, columns.names).cast(columns)": WORDS,
    },
    "lake/ingest/latest.py": {
        "pa.scalar(since_us, pa.int64()).cast(MEMORY.field('received').type)": BITS,
        "pa.table(arrays).cast(schema)": SAME,
        "rows.cast(STATE)": SAME,
    },
    "lake/ingest/latest_tasks.py": {"newest.cast(latest.MERGED)": WORDS},
    "lake/ingest/rollups.py": {
        "values.cast(pa.float64(), safe=False)": (
            "rollups are doubles, as docs/reference/values.md says; the values stay as they are"
        ),
        "pc.floor_temporal(done['start'], unit=width).cast(INSTANT)": SAME,
        "done['key'].cast(pa.string())": WORDS,
        "pc.cast(pc.floor_temporal(rows['start'], unit='day'), pa.date32())": DAY_OF,
    },
    "lake/maintain/upkeep.py": {
        "facts['received'].cast(pa.int64())": BITS,
        "actions['min.received'].cast(pa.int64())": BITS,
    },
    "lake/model/sample_rows.py": {
        "rows['received'].cast(pa.date32())": DAY_OF,
        "chunk.cast(pa.string())": WORDS,
        "keys.cast(pa.string())": WORDS,
    },
    "lake/model/typed_table.py": {
        "values.cast(type)": WORDS,
        "bad['received'].cast(pa.date32())": DAY_OF,
        "bad[name].cast(QUARANTINE.field(name).type)": WORDS,
    },
    "lake/model/wider_kinds.py": {"values.cast(type)": CHECKED},
    "lake/query/executor.py": {"pa.Table.from_batches(batches).cast(schema)": SAME},
    "lake/query/object_source.py": {
        "pa.scalar(partition_values.get(field.name), pa.string()).cast(field.type)": CHECKED,
    },
    "lake/query/table_frames.py": {"lit(None).cast('string')": "null is null as a text, too"},
    "lake/query/text_columns.py": {
        "column.cast(_as_bytes(column.type))": "bytes of a text are the text",
    },
    "lake/spark_source/columns.py": {"column.cast(pa.timestamp('us', 'UTC'))": ZONE},
    "lake/spark_source/merge.py": {
        "pa.scalar(file.partition[name], pa.string()).cast(schema.field(name).type)": (
            "the log has what a folder says as text; checked"
        ),
    },
    "lake/spark_source/tasks.py": {
        "pa.scalar(value or None, pa.string()).cast(field.type)": (
            "the log has what a folder says as text; checked"
        ),
    },
    "lake/table/data_files.py": {"rows[field.name].cast(field.type)": CHECKED},
    "lake/table/delta.py": {
        "values.cast(pa.timestamp('us')).cast(pa.string())": LOGGED,
        "values.cast(pa.timestamp('us'))": ZONE,
        "times.cast(pa.int64())": BITS,
        "pc.if_else(is_cut, pc.add(micros, 999), micros).cast(times.type)": BITS,
    },
    "recorded/columns.py": {"kinds.cast(pa.int32())": "8 bits into 32"},
}


def casts(source: str) -> list[str]:
    """Return the calls of a method or function `cast` of Arrow, as Python writes them."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "cast"
        and ast.unparse(node.func.value) not in ("typing", "functions", "F")
    ]


def test_every_cast_of_the_lake_says_why_no_value_changes() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): Counter(casts(path.read_text()))
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
    }
    listed = {path: Counter(calls.keys()) for path, calls in CASTS.items()}
    new = {path: list(calls - listed.get(path, Counter())) for path, calls in found.items()}
    gone = {path: list(calls - found.get(path, Counter())) for path, calls in listed.items()}
    assert {path: calls for path, calls in new.items() if calls} == {}, "say why in CASTS"
    assert {path: calls for path, calls in gone.items() if calls} == {}, "take it out of CASTS"


def test_a_cast_that_is_new_is_found() -> None:
    source = "def f(x):\n    return pc.cast(x, a, safe=False), x.cast(b), typing.cast(int, x)\n"
    assert casts(source) == ["pc.cast(x, a, safe=False)", "x.cast(b)"]


def test_casts_that_may_lose_digits_are_few() -> None:
    unchecked = [call for calls in CASTS.values() for call in calls if "safe=False" in call]
    assert unchecked == ["values.cast(pa.float64(), safe=False)"]
