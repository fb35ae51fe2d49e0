from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.rowsof import START, Row, batch
from tests.newest.oracle import Said, answers
from zenlake.lake.ingest.latest import (
    MERGED,
    MOST_REMEMBERED,
    as_state,
    bucket_of,
    buckets_of,
    live,
    memory,
    merged,
    remembered,
)
from zenlake.lake.ingest.latest_tasks import NewestTask, newest_note
from zenlake.lake.model.sample_rows import DAY, sample_rows, with_day
from zenlake.lake.table.data_files import read_table, write_partitioned
from zenlake.lake.table.location import LakeLocation

PUT, DELETE = 0, 1


def state(rows: list[Row]) -> pa.Table:
    return sample_rows(batch(rows), "j", 0)


def shown(table: pa.Table) -> dict[str, bytes]:
    return {row["key"]: row["value"] for row in live(table).to_pylist()}


def test_the_newest_by_its_own_clock_wins_not_the_last_heard() -> None:
    found = merged([state([Row("a", b"new", 5), Row("a", b"old", 1), Row("b", b"x", 2)])])
    assert shown(found) == {"a": b"new", "b": b"x"}


def test_the_footer_of_a_file_has_the_newest_rows_and_is_believed_if_all_of_it_is_wanted(
    tmp_path: Path,
) -> None:
    rows = [Row(f"k/{n % 2}", b"%d" % n, n) for n in range(100)]
    place = LakeLocation(tmp_path)

    def written(told: list[Row], noted: list[Row]) -> str:
        notes = newest_note(state(noted))
        (file,) = write_partitioned(
            place / "samples", with_day(state(told)), DAY, "a", notes=lambda _: notes
        )
        return file.path

    def newest(path: str, start: int, end: int, journal: str = "j") -> dict[str, bytes]:
        done = NewestTask(place.uri, (path,), journal, {0: (start, end)}, 1, merge={}).run()
        return {
            row["key"]: row["value"]
            for one in done.buckets
            for row in read_table(place / "latest", one.file.path, MERGED).to_pylist()
        }

    path = written(rows, rows)
    assert newest(path, 0, 100) == {"k/0": b"98", "k/1": b"99"}
    assert newest(path, 0, 98) == {"k/0": b"96", "k/1": b"97"}, "not all of it is wanted"
    assert newest(path, 0, 100, "another") == {}
    other = written(rows, [Row("k/9", b"noted", n) for n in range(100)])
    assert newest(other, 0, 100) == {"k/9": b"noted"}, "the rows were read again"
    assert not newest_note(state(rows[:40])), "they are not few"
    assert not newest_note(state([*rows, Row("k/*", b"", 5)])), "a put of many is not one of them"
    assert not newest_note(state([Row("k", b"x" * (256 << 10), n) for n in range(64)]))


def test_a_deleted_key_is_gone_and_an_older_put_that_comes_late_stays_gone() -> None:
    found = merged([state([Row("a", b"1", 1), Row("a", kind=DELETE, at=3)])])
    assert shown(found) == {}
    late = merged([found, state([Row("a", b"late", 2)])])
    assert shown(late) == {}
    again = merged([late, state([Row("a", b"again", 4)])])
    assert shown(again) == {"a": b"again"}


def test_a_deletion_with_wildcards_kills_what_is_older_and_what_comes_late() -> None:
    found = merged(
        [
            state([Row("a/1", b"1", 1), Row("a/2", b"2", 5), Row("b", b"3", 1)]),
            state([Row("a/**", kind=DELETE, at=3)]),
        ]
    )
    assert shown(found) == {"a/2": b"2", "b": b"3"}
    assert shown(merged([found, state([Row("a/9", b"late", 2)])])) == {"a/2": b"2", "b": b"3"}


def test_a_put_with_wildcards_names_no_key() -> None:
    assert shown(merged([state([Row("a/*", b"1", 2), Row("a/@x", b"2", 1)])])) == {"a/@x": b"2"}


def test_a_put_with_wildcards_changes_the_keys_that_there_are_and_those_that_come_late() -> None:
    found = merged([state([Row("a/1", b"1", 1), Row("a/2", b"2", 5), Row("a/*", b"all", 3)])])
    assert shown(found) == {"a/1": b"all", "a/2": b"2"}
    again = as_state(live(found), memory(found))
    assert shown(merged([again, state([Row("a/3", b"late", 2)])])) == {
        "a/1": b"all",
        "a/2": b"2",
        "a/3": b"all",
    }
    between = merged([again, state([Row("a/**", kind=DELETE, at=2)])])
    assert shown(between) == {"a/2": b"2"}, "it came after the key's own put"


def test_equal_times_are_decided_by_the_clocks_id_and_then_by_the_offset() -> None:
    rows = [
        Row("a", b"1", 1, id=b"\x02"),
        Row("a", b"2", 1, id=b"\x01"),
        Row("a", b"3", 1, id=b"\x02"),
    ]
    assert shown(merged([state(rows)])) == {"a": b"3"}


rows = st.lists(
    st.builds(
        Row,
        key=st.sampled_from(["a/1", "a/2", "b", "a/*", "**"]),
        value=st.binary(max_size=2),
        at=st.integers(0, 9).map(float),
        kind=st.sampled_from([PUT, PUT, DELETE]),
        id=st.sampled_from([b"\x01", b"\x02"]),
    ),
    min_size=1,
    max_size=12,
    # No clock tells a time twice.
    unique_by=lambda row: (row.at, row.id),
)


def reference(told: list[Row]) -> dict[str, bytes]:
    said = [
        Said(row.key, int(row.at), row.id, None if row.kind == DELETE else row.value.hex())
        for row in told
    ]
    return {key: bytes.fromhex(value) for key, (_, _, value) in answers(said).items()}


@given(rows, st.lists(st.integers(0, 12), max_size=3), st.randoms())
def test_however_rows_are_cut_and_shuffled_the_result_is_the_same(
    told: list[Row], cuts: list[int], random: object
) -> None:
    whole = state(told)
    edges = sorted({0, len(told), *[cut for cut in cuts if cut < len(told)]})
    parts = [whole.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    random.shuffle(parts)  # type: ignore[attr-defined]
    found = merged([parts[0]])
    for part in parts[1:]:
        found = merged([as_state(live(found), memory(found)), part, part])
    assert shown(found) == reference(told)
    assert len(live(found)) == len(shown(found))


def test_deletions_are_remembered_for_a_while_and_not_too_many() -> None:
    found = memory(merged([state([Row(f"k{n}", kind=DELETE, at=n) for n in range(10)])]))
    assert remembered(found, (START + 5) * 1_000_000).num_rows == 5
    many = pa.concat_tables([found] * (MOST_REMEMBERED // 10 + 1))
    assert remembered(many, 0).num_rows == MOST_REMEMBERED


def test_deletions_with_wildcards_belong_to_every_bucket() -> None:
    table = merged([state([Row("a", b"", 1), Row("a/**", kind=DELETE, at=1)])])
    numbers = dict(zip(table["key"].to_pylist(), buckets_of(table, 16).tolist(), strict=True))
    # The CRC-32 of "a" is e8b7be43: the last digit but two. Files lie where the bucket says.
    assert numbers == {"a": 0xE, "a/**": -1}
    assert (bucket_of("a", 16), bucket_of("a", 256)) == (0xE, 0xBE)
    assert len({bucket_of(f"k{n}", 16) for n in range(1000)}) == 16
