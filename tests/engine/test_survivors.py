"""Full collections look at what came since a long one, and at everything now and then."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zenlake.engine.survivors import LONG, OFTEN, TIMES, Survivors


class Heap:
    """A clock that is moved by hand, and whether objects are aside."""

    def __init__(self) -> None:
        self.now = 100.0
        self.aside = False
        self.survivors = Survivors(lambda: self.now, self._set_aside, self._take_back)

    def _set_aside(self) -> None:
        self.aside = True

    def _take_back(self) -> None:
        self.aside = False

    def collect(self, seconds: float, generation: int = 2) -> bool:
        """A collection that takes so long; whether it looked at all objects."""
        self.survivors("start", {"generation": generation})
        thorough = not self.aside
        self.now += seconds
        self.survivors("stop", {"generation": generation})
        return thorough


def test_what_survives_short_collections_stays_where_it_is() -> None:
    heap = Heap()
    assert all(heap.collect(LONG / 2) for _ in range(10))
    assert not heap.aside


def test_what_survives_a_long_one_is_set_aside_and_so_is_what_comes_later() -> None:
    heap = Heap()
    assert heap.collect(2 * LONG)
    assert heap.aside
    heap.aside = False  # as what came since is not
    heap.collect(LONG / 10)
    assert heap.aside


def test_collections_of_young_objects_set_nothing_aside() -> None:
    heap = Heap()
    for generation in (0, 1):
        heap.collect(1.0, generation)
    assert not heap.aside


def test_all_are_looked_at_again_after_a_while() -> None:
    heap = Heap()
    heap.collect(2 * LONG)
    assert not heap.collect(LONG / 10)
    heap.now += OFTEN
    assert heap.collect(2 * LONG)
    assert not heap.collect(LONG / 10)


@given(took=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30), pause=st.floats(0.0, 2000.0))
def test_looking_at_all_where_it_takes_long_takes_at_most_a_thousandth_of_the_time(
    took: list[float], pause: float
) -> None:
    heap = Heap()
    looked: list[tuple[float, float]] = []
    for seconds in took:
        heap.now += pause
        began = heap.now
        if heap.collect(seconds):
            looked.append((began, heap.now))
    for (began, ended), (again, _) in pairwise(looked):
        if ended - began >= LONG:
            assert again - ended >= max(OFTEN, TIMES * (ended - began)) - 1e-6


def told(program: str) -> list[int]:
    """The numbers that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=200
    )
    return [int(word) for word in done.stdout.split()]


def test_a_process_with_a_million_objects_looks_at_them_once() -> None:
    # With the interpreter's own rule some eight full collections look at 3.6 million.
    times, objects = told("""
import gc
from zenlake.engine.survivors import set_survivors_aside
set_survivors_aside()
set_survivors_aside()
assert len(gc.callbacks) == 1
looked = []
gc.callbacks.append(
    lambda phase, info: phase == "start" and info["generation"] == 2
    and looked.append(len(gc.get_objects()))
)
kept = [[number] for number in range(1_000_000)]
print(len(looked), sum(looked))
""")
    assert objects < 1_800_000, f"{objects} in {times} collections"


def test_what_died_aside_is_found_when_all_are_looked_at_again() -> None:
    assert told("""
import gc, weakref
from zenlake.engine.survivors import LONG, OFTEN, Survivors

class Ring:
    pass

now = 0.0
ring = Ring()
ring.itself = ring
gone = weakref.ref(ring)
survivors = Survivors(lambda: now)
survivors("start", {"generation": 2})
now += 2 * LONG
survivors("stop", {"generation": 2})
gc.callbacks.append(survivors)
del ring
gc.collect()
print(int(gone() is None))
now += OFTEN
gc.collect()
print(int(gone() is None))
""") == [0, 1]
