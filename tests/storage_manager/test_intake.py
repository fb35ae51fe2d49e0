"""Samples into the contents of a storage, by the batch."""

from __future__ import annotations

from threading import Lock

from hypothesis import given
from hypothesis import strategies as st

from zenlake.keys import KeyExpr
from zenlake.newest import Contents, Value
from zenlake.node.sample import Sample
from zenlake.storage_manager.intake import Intake, StorageCounts
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Put

ID = b"\x01"
#: In 2038 a time no longer fits into a word with a sign.
TIMES = st.one_of(st.integers(1, 1 << 40), st.integers((1 << 63) - 5, (1 << 64) - 1))


def sample(key: str, time: int, payload: bytes | None = b"x", id: bytes = ID) -> Sample:
    seconds, fraction = divmod(time, 1 << 32)
    put = payload is not None
    return Sample(KeyExpr(key), payload or b"", put, 7, b"s", seconds, fraction, id, 5, True, None)


class Taking:
    """An intake, and what it told."""

    def __init__(self, contents: Contents) -> None:
        self.lock = Lock()
        self.counts = StorageCounts()
        self.told = 0
        self.unstamped: list[Sample] = []
        self.intake = Intake(contents, self.counts, self.lock, self._tell, self._unstamped)

    def _tell(self) -> None:
        assert self.lock.locked()
        self.told += 1

    def _unstamped(self, one: Sample) -> None:
        with self.lock:  # which is free meanwhile
            self.unstamped.append(one)


def test_a_batch_is_stored_and_told_of_once() -> None:
    contents = Contents(keeps=False)
    taking = Taking(contents)
    attached = sample("a/3", 9)
    attached.push = Push(scope=0, body=Put(payload=b"x", attachment=b"beside"))
    taking.intake.heard([sample("a/1", 5), sample("a/2", 6), sample("a/1", 7, None), attached])
    assert taking.told == 0, "nobody waits"
    assert sorted(entry.key for entry in contents.matching("a/*")) == ["a/2", "a/3"]
    assert (taking.counts.puts, taking.counts.deletes) == (3, 1)
    last = contents.get("a/3")
    assert last is not None
    assert last.value == Value(b"x", 7, b"s", b"beside")
    taking.intake.acknowledging = 1
    taking.intake.heard([sample("a/4", 8), sample("a/5", 8)])
    assert taking.told == 1
    assert not taking.lock.locked()


def test_a_sample_without_a_time_gets_one_elsewhere_in_its_turn() -> None:
    contents = Contents(keeps=False)
    taking = Taking(contents)
    bare = sample("b", 0, id=b"")
    taking.intake.heard([sample("a", 5), bare, sample("c", 6)])
    assert taking.unstamped == [bare]
    assert sorted(entry.key for entry in contents.matching("**")) == ["a", "c"]
    assert not taking.lock.locked()


@given(st.lists(st.tuples(st.sampled_from("ab"), TIMES, st.booleans()), max_size=6))
def test_a_batch_is_what_its_samples_are_one_by_one(said: list[tuple[str, int, bool]]) -> None:
    together, single = Contents(keeps=False), Contents(keeps=False)
    samples = [sample(key, time, b"%d" % time if put else None) for key, time, put in said]
    Taking(together).intake.heard(samples)
    one_by_one = Taking(single).intake
    for one in samples:
        one_by_one.heard([one])
    assert together.records() == single.records()
    newest = {key: time for key, time, _ in sorted(said, key=lambda one: one[1])}
    assert {entry.key: entry.time for entry in together.records()} == newest
