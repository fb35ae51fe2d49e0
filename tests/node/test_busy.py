from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.busy import MOST_OF, REMEMBERED, WAITED, WINDOW, BusyWatch
from zenlake.node.incidents import BUSY, Incident, Incidents


class Scene:
    """A watch, and a clock that turns move on."""

    def __init__(self) -> None:
        self.events = Incidents()
        self.watch = BusyWatch(self.events)
        self.now = 100.0
        self.heard = 0

    def turns(
        self, many: int, took: float, pause: float, others: int = 1, host: str = "10.0.0.66"
    ) -> None:
        """Turns of one address, with a pause after each in which others are heard."""
        for _ in range(many):
            self.now += took
            self.watch.used_up(host, "eve", took, 20, 0, 1, self.heard, 0, self.now)
            self.now += pause
            self.heard += others

    def named(self) -> list[Incident]:
        return [event for event in self.events.newest() if event.kind == BUSY]


def test_who_has_most_of_a_second_while_others_wait_is_named_with_its_share() -> None:
    scene = Scene()
    scene.turns(1000, 0.003, 0.001)
    (event,) = scene.named()
    assert (event.peer, event.user) == ("10.0.0.66", "eve")
    assert "declarations" in event.reason
    assert event.detail.startswith("75%")
    assert event.count == scene.events.counts[BUSY] > 1  # a second after the other, one event


def test_who_leaves_most_of_the_time_to_others_is_not_named() -> None:
    scene = Scene()
    scene.turns(1000, 0.003, 0.004)
    assert scene.named() == []


def test_a_lone_neighbour_may_have_all_the_time_there_is() -> None:
    scene = Scene()
    scene.turns(1000, 0.003, 0.0, others=0)
    assert scene.named() == []


def test_its_own_short_reads_are_nobody_who_waits() -> None:
    scene = Scene()
    for _ in range(1000):
        scene.heard += 1
        scene.now += 0.003
        scene.watch.used_up("a", "", 0.003, 0, 9, 0, scene.heard, 1, scene.now)
    assert scene.named() == []


def test_many_connections_of_one_address_are_one_neighbour() -> None:
    scene = Scene()
    for _ in range(500):
        scene.turns(1, 0.002, 0.0, host="a")
        scene.turns(1, 0.002, 0.0, host="a")
        scene.turns(1, 0.001, 0.0, host="b")
    assert {event.peer for event in scene.named()} == {"a"}


@given(
    st.lists(st.tuples(st.integers(0, 99), st.floats(0, 2), st.floats(0, 2), st.integers(0, 20)))
)
def test_nobody_is_named_without_a_share_and_others_that_waited(
    turns: list[tuple[int, float, float, int]],
) -> None:
    scene = Scene()
    for host, took, pause, others in turns:
        scene.turns(1, took, pause, others, str(host))
    spent = sum(took for _, took, _, _ in turns)
    for event in scene.named():
        assert spent >= WINDOW * MOST_OF
        assert scene.heard >= WAITED
        assert event.detail
    assert len(scene.watch._windows) <= REMEMBERED
