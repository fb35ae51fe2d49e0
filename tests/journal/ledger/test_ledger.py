from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.heard import OTHER, ZID, Row, batch_of, beat, ros
from zenlake.errors import LocalError
from zenlake.journal.ledger.ledger import Ledger

SOURCE = "b0a:7"


def ledger_of(*batches: list[Row], partition: int = 0) -> Ledger:
    ledger = Ledger()
    for rows in batches:
        ledger.enter(partition, batch_of(rows))
    return ledger


def test_a_source_is_named_by_its_ids_and_the_key_it_was_heard_on() -> None:
    (page,) = ledger_of([Row("a/b", sn=0), Row("a/b", sn=1)]).pages()
    assert (page.source, page.key) == (SOURCE, "a/b")
    assert (page.expected, page.received, page.missing) == (2, 2, 0)


def test_a_gap_is_told_when_it_opens() -> None:
    ledger = ledger_of([Row(sn=0)])
    (opened,) = ledger.enter(0, batch_of([Row(sn=3)]))
    assert (opened.source, opened.key, opened.first, opened.last) == (SOURCE, "a", 1, 2)
    assert ledger.open_gaps() == [opened]


def test_healed_rows_close_the_gap() -> None:
    ledger = ledger_of([Row(sn=0), Row(sn=3)], [Row(sn=1, origin=1), Row(sn=2, origin=1)])
    page = ledger.page(SOURCE)
    assert page is not None
    assert (page.missing, page.healed, page.gaps) == (0, 2, ())


def test_sources_in_one_batch_are_told_apart() -> None:
    rows = [
        Row(sn=0),
        Row(sn=5, zid=OTHER, eid=1),
        Row(sn=1),
        Row(sn=7, zid=OTHER, eid=1),
        Row(sn=9, eid=8),
    ]
    found = {page.source: page.missing for page in ledger_of(rows).pages()}
    assert found == {SOURCE: 0, "c:1": 1, "b0a:8": 0}


def test_ros_publishers_are_sources_by_their_attachment() -> None:
    gid = bytes(range(16))
    rows = [Row("chatter", attachment=ros(n, gid)) for n in (1, 2, 4)]
    ledger = ledger_of(rows)
    (page,) = ledger.pages()
    assert page.source == f"ros2:{gid.hex()}"
    assert page.gaps == ((3, 3),)
    assert ledger.unprovable() == {}


def test_attachments_of_another_shape_are_no_source() -> None:
    shapes = [b"", b"x" * 33, ros(1)[:-1], ros(1) + b"x", ros(1, b"short")]
    ledger = ledger_of([Row("k", attachment=shape) for shape in shapes])
    assert ledger.pages() == []
    assert ledger.unprovable() == {"k": 5}


def test_rows_without_a_number_are_unprovable_and_counted_by_key() -> None:
    ledger = ledger_of([Row("a"), Row("b"), Row("a", sn=0)], [Row("a")])
    assert ledger.unprovable() == {"a": 2, "b": 1}
    totals = ledger.totals()
    assert (totals["rows"], totals["unprovable_rows"]) == (4, 3)


def test_a_source_in_two_partitions_is_judged_as_one() -> None:
    ledger = Ledger()
    ledger.enter(0, batch_of([Row("a", sn=0), Row("a", sn=2), Row("a", sn=6)]))
    ledger.enter(1, batch_of([Row("b", sn=1), Row("b", sn=3)]))
    (page,) = ledger.pages()
    assert (page.expected, page.received, page.gaps) == (7, 5, ((4, 5),))


def test_a_partition_may_begin_late() -> None:
    ledger = Ledger()
    ledger.begin(0, 100)
    ledger.enter(0, batch_of([Row(sn=0)]))
    assert ledger.offsets == {0: 101}


def test_a_batch_that_is_a_slice_is_read_where_it_begins() -> None:
    whole = batch_of([Row(attachment=ros(n)) for n in range(10)])
    ledger = Ledger()
    ledger.enter(0, whole.slice(4, 3))
    (page,) = ledger.pages()
    assert (page.first, page.last) == (4, 6)


def test_drops_are_told_by_reason_and_are_no_part_of_the_rows() -> None:
    ledger, other = ledger_of([Row(sn=0)]), ledger_of([Row(sn=0)])
    ledger.drop("full", 3)
    ledger.drop("full")
    assert ledger.report()["drops"] == {"full": 4}
    assert ledger.agrees(other)


def test_a_ledger_of_another_format_is_refused() -> None:
    state = Ledger().state() | {"format": 99}
    with pytest.raises(LocalError, match="format 99"):
        Ledger.from_state(state)


def test_an_ordinary_batch_costs_nothing_per_row() -> None:
    """Ten times the rows of one source make as many Python calls."""

    def calls(rows: int) -> int:
        batch = batch_of([Row(sn=n) for n in range(rows)])
        ledger, count = Ledger(), 0

        def count_calls(*_: object) -> None:
            nonlocal count
            count += 1

        before = sys.getprofile()
        sys.setprofile(count_calls)
        try:
            ledger.enter(0, batch)
        finally:
            sys.setprofile(before)
        return count

    assert calls(1000) == calls(100)


any_row = st.builds(
    Row,
    key=st.sampled_from(["a", "b"]),
    sn=st.none() | st.integers(0, 12),
    zid=st.sampled_from([ZID, OTHER]),
    eid=st.integers(0, 1),
    hlc=st.integers(0, 9),
    stamp_id=st.sampled_from([ZID, b"\x77"]),
    attachment=st.none() | st.just(b"") | st.integers(0, 9).map(ros),
    origin=st.sampled_from([0, 0, 1]),
)


@settings(deadline=None)
@given(st.lists(any_row, min_size=1, max_size=30), st.data())
def test_a_ledger_put_aside_and_taken_up_equals_one_made_anew(
    rows: list[Row], data: st.DataObject
) -> None:
    anew = ledger_of(rows)
    kept, at = Ledger(), 0
    while at < len(rows):
        size = data.draw(st.integers(1, len(rows) - at))
        kept.enter(0, batch_of(rows[at : at + size]))
        kept = Ledger.from_state(json.loads(json.dumps(kept.state())))
        at += size
    assert kept.agrees(anew)
    assert kept.state() == anew.state()
    assert kept.totals()["rows"] == len(rows)
    for page in kept.pages():
        assert page.received + page.duplicates == page.rows
        assert page.expected == page.received + page.missing


def test_a_heartbeat_in_a_partition_where_nothing_came_proves_nothing() -> None:
    ledger = Ledger()
    ledger.enter(0, batch_of([Row("a", sn=n, hlc=n) for n in range(1_000_000, 1_000_100)]))
    ledger.enter(1, batch_of([beat(0, "b")]))
    ledger.enter(2, batch_of([beat(2**31, "c")]))
    (page,) = ledger.pages()
    assert (page.expected, page.missing, page.first) == (100, 0, 1_000_000)
