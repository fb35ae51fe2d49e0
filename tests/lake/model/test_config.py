from __future__ import annotations

import pytest

from zenlake.errors import ConfigError
from zenlake.lake import LakeConfig, Retention, read_config
from zenlake.lake.model.config import seconds_of
from zenlake.lake.model.row_access import RowAccess


def test_nothing_said_is_the_default() -> None:
    assert read_config("{}") == LakeConfig()


def test_a_file_says_tables_and_retention_and_sizes() -> None:
    config = read_config(
        """{lake: {
            path: "lake", journal: "journal",
            tables: {
                pose: {format: "robot/${id}/${part:**}", columns: {x: "double"}},
                raw: {format: "raw/${n}", encoding: "zenoh/serialized", type: {a: "int8"}},
            },
            retain: [{keys: "camera/**", age: "7d"}, {age: 3600}],
            latest: {buckets: 4, remember: "2h"},
            gaps: {every: "500ms"},
            batch: {rows: 10, task_rows: 5},
            compact: {files: 3, bytes: 1000, vacuum_age: "1m"},
        }}"""
    )
    pose, raw = config.tables
    assert (pose.name, pose.format, pose.chunks) == (
        "pose",
        "robot/${id:*}/${part:**}",
        ("id", "part"),
    )
    assert (raw.encoding, raw.type) == ("zenoh/serialized", {"a": "int8"})
    assert config.retain == (Retention("camera/**", 604800.0), Retention("**", 3600.0))
    assert (config.buckets, config.remember, config.gaps_every) == (4, 7200.0, 0.5)
    assert (config.batch_rows, config.task_rows) == (10, 5)
    assert (config.compact_files, config.compact_bytes, config.vacuum_age) == (3, 1000, 60.0)
    assert (config.path, config.journal) == ("lake", "journal")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1"),
        ("[]", "not an object"),
        ("{tabels: {}}", "did you mean 'tables'"),
        ("{tables: {samples: {format: 'a'}}}", "already"),
        ("{tables: {Pose: {format: 'a'}}}", "lower-case"),
        ("{tables: {pose: {}}}", "format"),
        ("{tables: {pose: {format: 'a/$*'}}}", "wildcards"),
        ("{tables: {pose: {format: 3}}}", "not text"),
        ("{tables: {pose: {format: 'a/${time}'}}}", "rename"),
        ("{tables: {pose: {format: 'a', columns: {x: 'float'}}}}", "not one of"),
        ("{tables: {pose: {format: 'a', columns: {key: 'double'}}}}", "free name"),
        ("{tables: {pose: {format: 'a', decoder: 'no.where:X'}}}", "no decoder"),
        ("{tables: {pose: {format: 'a', type: 'float'}}}", "no type"),
        ("{retain: {}}", "not a list"),
        ("{retain: [{keys: 'a'}]}", "age"),
        ("{retain: [{keys: 'a//b', age: '1d'}]}", "retain/0/keys"),
        ("{latest: {buckets: 0}}", "latest/buckets"),
        ("{gaps: {every: 'soon'}}", "gaps/every"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("$", r"\$")):
        read_config(text)


def test_durations() -> None:
    assert [seconds_of(t) for t in ("250ms", "2s", "3m", "1.5h", "1d", "1w", 4)] == [
        0.25,
        2.0,
        180.0,
        5400.0,
        86400.0,
        604800.0,
        4.0,
    ]


def test_row_access_has_keys_and_those_that_it_leaves_out() -> None:
    told = read_config('{row_access: {guests: {keys: ["robot/**"], but: ["robot/*/camera"]}}}')
    assert told.row_access == {"guests": RowAccess(("robot/**",), ("robot/*/camera",))}
    for wrong, why in (
        ("{row_access: {guests: {}}}", "say which keys"),
        ("{row_access: {guests: {keys: 'a'}}}", "is not a list"),
        ("{row_access: {guests: {keys: ['a//b']}}}", "row_access/guests/keys"),
        ("{row_access: {'a/b': {keys: ['a']}}}", "name has lower-case letters"),
    ):
        with pytest.raises(ConfigError, match=why):
            read_config(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "{views: {guests: {keys: ['a']}}}",
        "{lake: {views: {}}}",
        "{views: {guests: {keys: ['a']}}, row_access: {guests: {keys: ['a']}}}",
    ],
)
def test_the_old_word_for_row_access_is_refused_and_never_ignored(text: str) -> None:
    with pytest.raises(ConfigError, match="'views' is called 'row_access' now"):
        read_config(text)
