from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.newest import Contents, Entry, Value

A = b"\x01"


def test_a_key_that_changes_again_before_it_is_written_is_written_once() -> None:
    contents = Contents(keeps=True)
    for time in range(1, 100):
        contents.put("a", time, A, Value(b"%d" % time))
    batch = contents.take()
    assert [(entry.key, entry.time) for entry in batch.entries] == [("a", 99)]
    contents.written(batch)
    assert contents.dirty == 0
    assert contents.waiting == 0
    assert contents.durable == contents.number == 99


def test_a_written_payload_leaves_memory_and_its_key_stays() -> None:
    contents = Contents(keeps=True)
    contents.put("a", 1, A, Value(b"x", 5))
    contents.written(contents.take())
    entry = contents.get("a")
    assert entry is not None
    assert entry.value == Value(None, 5)


def test_a_change_during_a_write_is_written_next_and_not_durable_before() -> None:
    contents = Contents(keeps=True)
    contents.put("a", 1, A, Value(b"old"))
    batch = contents.take()
    contents.put("a", 2, A, Value(b"new"))
    contents.written(batch)
    assert contents.durable == 1
    (entry,) = contents.take().entries
    assert entry.value == Value(b"new")
    contents.written(contents.take())
    assert contents.durable == 2


def test_keys_put_together_keep_their_payload_until_each_is_written() -> None:
    contents = Contents(keeps=True)
    contents.put("a/b", 1, A, Value(b"b"))
    contents.put("a/c", 1, A, Value(b"c"))
    contents.put("a/*", 2, A, Value(b"both"))
    first = contents.take(1)
    contents.written(first)
    (second,) = contents.take(1).entries
    assert second.value == Value(b"both")


def test_what_does_not_fit_into_memory_is_dropped_and_counted() -> None:
    contents = Contents(keeps=True, most_waiting=1000)
    numbers = [contents.put(f"k{n}", n + 1, A, Value(bytes(300))) for n in range(5)]
    assert numbers == [1, 0, 0, 0, 0]
    assert contents.dropped == 4
    contents.written(contents.take())
    assert contents.put("k9", 9, A, Value(bytes(300))) == 2


def test_without_a_volume_nothing_waits_and_all_is_as_durable_as_it_will_be() -> None:
    contents = Contents(keeps=False)
    contents.put("a", 1, A, Value(b"x"))
    contents.delete("b", 1, A)
    assert contents.take().empty
    assert contents.durable == 2


def test_expired_values_and_collected_tombstones_leave_the_volume_too() -> None:
    contents = Contents(keeps=True)
    contents.put("old", 1, A, Value(b"x"))
    contents.put("new", 9, A, Value(b"x"))
    contents.delete("gone", 1, A)
    contents.delete("wide/**", 1, A)
    contents.written(contents.take())
    assert contents.expire(5) == 1
    assert contents.collect(5) == 2
    batch = contents.take()
    assert sorted(batch.removed) == ["gone", "old"]
    assert batch.forgotten == ["wide/**"]
    assert contents.keys("**") == ["new"]


steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["a", "a/b", "c", "a/*", "**"]),
            st.integers(1, 9),
            st.sampled_from([None, b"v", b"w"]),
        ),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(steps)
def test_what_a_volume_was_given_is_what_is_known_and_numbers_say_when(
    steps: list[tuple[str, int, bytes | None] | int],
) -> None:
    """Writes of any size between any updates: nothing is lost, and nothing called durable early."""
    contents = Contents(keeps=True)
    volume: dict[str, Entry] = {}
    updates: list[str] = []
    for step in [*steps, 10, 10]:
        if isinstance(step, int):
            batch = contents.take(step)
            volume.update({entry.key: entry for entry in batch.entries})
            for key in batch.removed:
                volume.pop(key, None)
            contents.written(batch)
            continue
        key, time, payload = step
        if payload is None:
            contents.delete(key, time, A)
        else:
            contents.put(key, time, A, Value(payload))
        updates.append(key)
        assert contents.durable <= contents.number == len(updates)
    assert contents.durable == contents.number
    assert contents.dirty == contents.waiting == 0
    known = {entry.key: (entry.time, entry.base_time) for entry in contents.matching("**")}
    assert known == {
        key: (entry.time, entry.base_time)
        for key, entry in volume.items()
        if entry.value is not None
    }
