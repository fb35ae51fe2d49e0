from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.newest.oracle import Said, answers, tell, told
from zenlake.newest import NewestValues

A, B = b"\x01", b"\x02"
KEYS = ["a", "a/b", "a/c", "d/b", "@x/b", "a/**", "**", "*/b", "a/$*c"]


def storage_of(*said: Said) -> NewestValues[str]:
    storage: NewestValues[str] = NewestValues()
    for one in said:
        tell(storage, one)
    return storage


def test_the_newest_value_is_answered() -> None:
    storage = storage_of(Said("a", 1, A, "one"), Said("a", 2, A, "two"))
    held = storage.get("a")
    assert held is not None
    assert (held.value, held.time, held.id) == ("two", 2, A)


def test_a_late_older_value_is_ignored_and_counted() -> None:
    storage = storage_of(Said("a", 2, A, "two"))
    assert storage.put("a", 1, A, "one", 3) == []
    assert told(storage) == {"a": (2, A, "two")}
    assert storage.late == 1


def test_of_two_values_at_one_time_the_greater_id_wins() -> None:
    for order in itertools.permutations([Said("a", 1, A, "A"), Said("a", 1, B, "B")]):
        assert told(storage_of(*order)) == {"a": (1, B, "B")}


def test_a_sample_heard_twice_changes_nothing() -> None:
    storage = storage_of(Said("a", 1, A, "one"))
    assert storage.put("a", 1, A, "one", 3) == []
    assert storage.bytes == 3


def test_a_deletion_refuses_older_values_that_come_late() -> None:
    storage = storage_of(Said("a", 2, A, None), Said("a", 1, A, "one"))
    assert storage.get("a") is None
    assert len(storage) == 0
    assert storage.tombstones == 1
    assert storage.put("a", 3, A, "three", 5) == ["a"]
    assert storage.tombstones == 0


def test_a_deletion_of_many_keys_refuses_late_puts_of_keys_unheard_of() -> None:
    storage = storage_of(Said("a/b", 1, A, "x"), Said("d", 1, A, "y"))
    assert storage.delete("a/**", 2, A) == ["a/b"]
    assert storage.put("a/late", 1, A, "z", 1) == []
    assert storage.put("a/new", 3, A, "z", 1) == ["a/new"]
    assert set(told(storage)) == {"d", "a/new"}


def test_a_put_of_many_keys_reaches_those_that_have_a_value_and_late_ones() -> None:
    storage = storage_of(Said("a/b", 1, A, "x"))
    assert storage.put("a/*", 5, A, "all", 3) == ["a/b"]
    assert storage.put("a/late", 2, A, "z", 1) == ["a/late"]
    assert told(storage) == {"a/b": (5, A, "all"), "a/late": (5, A, "all")}


def test_a_put_of_many_keys_does_not_raise_the_dead() -> None:
    """Of a deletion and a put of many keys, both newer, the deletion decides."""
    events = [Said("a/b", 1, A, "x"), Said("a/*", 2, A, None), Said("a/**", 3, A, "all")]
    for order in itertools.permutations(events):
        assert told(storage_of(*order)) == {}


def test_wildcards_do_not_reach_verbatim_chunks() -> None:
    storage = storage_of(Said("a/@b", 1, A, "x"))
    assert storage.delete("**", 2, A) == []
    assert storage.get("a/@b") is not None


def test_a_question_finds_the_keys_it_stands_for() -> None:
    storage = storage_of(*(Said(k, 1, A, k) for k in ("a/b", "a/c", "d/b")))
    assert sorted(held.key for held in storage.matching("*/b")) == ["a/b", "d/b"]
    assert [held.key for held in storage.matching("a/c")] == ["a/c"]
    assert storage.matching("nothing") == []


def test_collecting_forgets_what_is_older_than_the_lifespan() -> None:
    storage = storage_of(
        Said("a", 1, A, None), Said("b", 9, A, None), Said("c/*", 2, A, None), Said("d/*", 9, A, "")
    )
    assert storage.collect(5) == 2
    assert storage.tombstones == 1
    assert storage.put("a", 0, A, "late", 4) == ["a"]
    assert storage.put("c/x", 1, A, "late", 4) == ["c/x"]
    assert storage.put("d/x", 1, A, "late", 4) == ["d/x"]
    held = storage.get("d/x")
    assert held is not None
    assert held.time == 9


def test_values_beyond_the_bounds_are_counted_and_not_answered_for() -> None:
    storage: NewestValues[str] = NewestValues(most_keys=2, most_bytes=10)
    storage.put("a", 1, A, "12345", 5)
    storage.put("b", 1, A, "12345", 5)
    storage.put("c", 1, A, "", 0)
    assert storage.overflowed == 1
    storage.put("a", 2, A, "123456", 6)
    assert storage.get("a") is None, "an old value would be a wrong answer"
    assert storage.overflowed == 2
    assert storage.bytes == 5


def test_tombstones_give_way_to_values() -> None:
    storage: NewestValues[str] = NewestValues(most_keys=2)
    storage.delete("a", 1, A)
    storage.delete("b", 2, A)
    storage.put("c", 3, A, "x", 1)
    assert storage.get("c") is not None
    assert storage.overflowed == 0


def test_too_many_updates_of_many_keys_forget_the_oldest_and_say_so() -> None:
    storage: NewestValues[str] = NewestValues(most_wide=2)
    for time, key in enumerate(("a/*", "b/*", "c/*"), 1):
        storage.delete(key, time, A)
    assert storage.forgotten == 1
    assert storage.put("a/x", 0, A, "late", 4) == ["a/x"]
    assert storage.put("b/x", 0, A, "late", 4) == []


samples = st.builds(
    lambda key, value: (key, value), st.sampled_from(KEYS), st.sampled_from([None, "v", "w"])
)


def events(most: int) -> st.SearchStrategy[list[Said]]:
    """Samples with a timestamp each."""
    stamps = st.tuples(st.integers(0, 5), st.sampled_from([A, B]))
    return st.lists(st.tuples(samples, stamps), max_size=most, unique_by=lambda e: e[1]).map(
        lambda found: [
            Said(key, time, id, None if value is None else f"{value}{time}{id.hex()}")
            for (key, value), (time, id) in found
        ]
    )


@settings(max_examples=60, deadline=None)
@given(events(4))
def test_every_order_of_arrival_gives_what_the_order_of_time_gives(said: list[Said]) -> None:
    expected = answers(said)
    for order in itertools.permutations(said):
        assert told(storage_of(*order)) == expected


@given(events(12), st.randoms(use_true_random=False))
def test_many_samples_in_any_order_agree_with_the_oracle_at_every_step(
    said: list[Said], chance: object
) -> None:
    chance.shuffle(said)  # type: ignore[attr-defined]
    storage: NewestValues[str] = NewestValues()
    before: dict[str, tuple[int, bytes, str]] = {}
    for count, one in enumerate([*said, *said], 1):
        changed = tell(storage, one)
        now = answers(said[:count])
        assert told(storage) == now
        # Every key whose answer differs is named; one that is named may have been put again.
        assert {k for k in before.keys() | now.keys() if before.get(k) != now.get(k)} <= {*changed}
        assert storage.bytes == sum(len(value) for _, _, value in now.values())
        assert len(storage) == len(now)
        before = now


@given(events(10), st.integers(0, 6))
def test_collecting_changes_no_answer(said: list[Said], before: int) -> None:
    storage = storage_of(*said)
    expected = told(storage)
    storage.collect(before)
    assert told(storage) == expected


def passed_on(storage: NewestValues[str], to: NewestValues[str]) -> None:
    """Let one storage hear of all that another knows."""
    for key, time, id, value, size in storage.puts_of_many():
        to.put(key, time, id, value, size)
    for held in storage.held():
        if held.value is None:
            to.delete(held.key, held.time, held.id)
        else:
            base = held.base_time, held.base_id
            to.hold(held.key, held.time, held.id, held.value, held.size, *base)
    for key, time, id in storage.deletions_of_many():
        to.delete(key, time, id)


@settings(max_examples=200)
@given(events(12), st.data())
def test_what_one_storage_knows_another_learns_beside_what_it_hears_itself(
    said: list[Said], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(said)))
    before = data.draw(st.integers(first, len(said)))
    storage = storage_of(*said[first:before])
    passed_on(storage_of(*said[:first]), storage)
    for one in said[before:]:
        tell(storage, one)
    assert told(storage) == answers(said)
    assert storage.bytes == sum(len(value) for _, _, value in told(storage).values())
