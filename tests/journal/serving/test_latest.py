from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.journal.heard import OTHER, ZID, Row, batch_of
from tests.newest.oracle import Said, answers
from zenlake.journal.serving.latest import Latest


def enter(latest: Latest, rows: list[Row], first: int = 0) -> None:
    latest.enter(batch_of(rows), 0, first)


def told(latest: Latest) -> dict[str, tuple[int, bytes, str]]:
    return {key: (hlc, id, value.payload.decode()) for key, hlc, id, value in latest.matching("**")}


def test_the_newest_row_of_each_key_is_its_value() -> None:
    latest = Latest()
    enter(latest, [Row("a", hlc=1, value=b"1"), Row("b", hlc=2), Row("a", hlc=3)])
    assert told(latest) == {"a": (3, ZID, "x"), "b": (2, ZID, "x")}
    enter(latest, [Row("a", hlc=2, value=b"late")])
    assert told(latest)["a"] == (3, ZID, "x")
    assert latest.counts["keys"] == 2


def test_values_of_a_publisher_share_what_names_it() -> None:
    for count in (2, 20):  # picked one by one, and gathered
        latest = Latest()
        enter(latest, [Row(f"k/{n}", sn=n, zid=ZID if n else OTHER) for n in range(count)])
        enter(latest, [Row(f"more/{n}") for n in range(count)])
        values = {key: value for key, _, _, value in latest.matching("**")}
        assert [values[f"k/{n}"].sn for n in range(count)] == list(range(count))
        assert values["k/0"].source == (OTHER, 7)
        assert {id(values[f"k/{n}"].source) for n in range(1, count)} == {id(values["k/1"].source)}
        assert {values[f"more/{n}"].source for n in range(count)} == {None}


def test_a_deletion_takes_the_value_away_and_a_collection_forgets_it() -> None:
    latest = Latest()
    enter(latest, [Row("a", hlc=1), Row("a", hlc=2, kind=1)])
    assert told(latest) == {}
    assert latest.counts["tombstones"] == 1
    assert latest.collect(3) == 1
    assert latest.counts["tombstones"] == 0


stamps = st.tuples(st.integers(-5, 5), st.sampled_from([ZID, OTHER]))
rows = st.lists(
    st.tuples(st.sampled_from(["a", "a/b", "c", "a/**", "*"]), st.booleans(), stamps),
    min_size=1,
    max_size=14,
    unique_by=lambda row: row[2],
)


@given(rows, st.data())
def test_rows_in_any_batches_give_what_the_order_of_time_gives(
    found: list[tuple[str, bool, tuple[int, bytes]]], data: st.DataObject
) -> None:
    said = [
        Said(key, hlc, id, f"{hlc}{id.hex()}" if put else None) for key, put, (hlc, id) in found
    ]
    latest = Latest()
    at = 0
    while at < len(said):
        size = data.draw(st.integers(1, len(said) - at))
        enter(
            latest,
            [
                Row(
                    one.key,
                    hlc=one.time,
                    stamp_id=one.id,
                    value=(one.value or "").encode(),
                    kind=int(one.value is None),
                )
                for one in said[at : at + size]
            ],
            at,
        )
        at += size
    assert told(latest) == answers(said)
