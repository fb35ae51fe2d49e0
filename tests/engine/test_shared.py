from __future__ import annotations

from zenlake.engine.congestion import BLOCK
from zenlake.engine.shared import SharedOutbox

BATCH = 65_535
BURST = 1 << 20


class Wire:
    """A link that takes as many bytes as it has room for."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.writes: list[int] = []

    def write(self, data: bytes) -> int:
        taken = min(len(data), self.room)
        self.room -= taken
        self.writes.append(taken)
        return taken


def outbox(wire: Wire) -> SharedOutbox:
    """One whose flushes are asked of nobody: what is written is written by whoever fills it."""
    box = SharedOutbox(True, 2, lambda _: None, lambda: False, 0.0, 0.0)
    box.attach(wire.write, direct=True, burst=BURST)
    box.request.requested = True
    return box


def fill(box: SharedOutbox, batches: int) -> int:
    """Publish until so many batches are full; how many bytes that took, or until dropped."""
    size = 60_000
    for _ in range(batches + 1):
        if not box.offer(b"\x1d\x00\x01", bytes(size), 5, True, BLOCK, False):
            break
    return size * batches


def test_a_link_that_takes_everything_is_given_more_and_more_at_once() -> None:
    wire = Wire(1 << 40)
    box = outbox(wire)
    fill(box, 200)
    assert wire.writes[0] < 2 * BATCH
    assert max(wire.writes) > BURST // 2
    assert max(wire.writes) <= BURST
    assert box.depth == BURST // 65535


def test_a_link_that_cannot_take_all_has_little_waiting_in_front_of_what_is_urgent() -> None:
    wire = Wire(1 << 40)
    box = outbox(wire)
    fill(box, 100)
    wire.room = 100_000
    fill(box, 40)
    assert box.depth == 2
    wire.room = len(box.link.leftover)
    box.flush()
    wire.writes.clear()
    wire.room = 1 << 40
    box.flush()
    assert wire.writes[0] < 2 * BATCH


def test_what_was_written_is_counted_as_it_is_taken() -> None:
    wire = Wire(1 << 40)
    box = outbox(wire)
    wire.room = 10_000
    fill(box, 2)
    assert box.link.written == 10_000
    wire.room = 5_000
    box.flush()
    assert box.link.written == 15_000
