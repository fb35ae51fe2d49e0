"""What is dropped is counted by reason and key, in bounded memory, and adds up."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from zenlake.transport.drops import (
    CONGESTION,
    EXACT,
    LONGEST,
    ONE_IN,
    OTHERS,
    ROWS,
    DropLog,
    KeyTally,
    prefix_row,
)
from zenlake.transport.outbox import Outbox
from zenlake.wire.codec_network import Push, Request, ResponseFinal, push_head
from zenlake.wire.codec_zenoh import Put, Query
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message

chunks = st.sampled_from(["a", "b", "c", "robot", "7"])
keys = st.lists(chunks, min_size=1, max_size=4).map("/".join)


def encoded(*messages: Message) -> bytes:
    w = Writer()
    for message in messages:
        message.write(w)
    return w.getvalue()


def put(scope: int, suffix: str, *, mine: bool = True, size: int = 8) -> Push:
    return Push(scope=scope, suffix=suffix, sender_mapping=mine, body=Put(payload=bytes(size)))


def test_a_row_is_folded_into_that_of_its_prefix_and_the_last_into_all() -> None:
    rows = ["robot/7/arm/joint"]
    while rows[-1] != OTHERS:
        rows.append(prefix_row(rows[-1]))
    assert rows == ["robot/7/arm/joint", "robot/7/arm/**", "robot/7/**", "robot/**", "**"]
    assert prefix_row("alone") == OTHERS


@given(st.lists(keys, min_size=1, max_size=5), st.integers(1, 600), st.randoms())
def test_rows_are_bounded_add_up_and_tell_no_more_of_a_key_than_there_was(
    prefixes: list[str], count: int, chance: Random
) -> None:
    tally, truth = KeyTally(), Counter[str]()
    for _ in range(count):
        key, many = f"{chance.choice(prefixes)}/{chance.randrange(200)}", chance.randrange(1, 50)
        tally.add(key, many)
        truth[key] += many
    assert len(tally.rows) <= ROWS
    assert sum(tally.rows.values()) == truth.total()
    assert (len(truth) > ROWS) is any(row.endswith("**") for row in tally.rows)
    for row, many in tally.rows.items():
        if row.endswith("**"):
            below = row.removesuffix("**")
            assert many <= sum(truth[key] for key in truth if key.startswith(below))
        else:
            assert many <= truth[row]
    if len(truth) <= ROWS:
        assert tally.rows == truth


def test_of_more_keys_than_there_are_rows_the_lightest_are_told_by_their_prefix() -> None:
    tally = KeyTally()
    for n in range(65):
        tally.add(f"robot/{n}", 1 + n)
    # Of 64 rows the lighter half gave way to one: 1 + 2 + ... + 32.
    assert tally.rows == {"robot/**": 528} | {f"robot/{n}": 1 + n for n in range(32, 65)}


def test_a_key_that_loses_most_keeps_its_row_among_thousands() -> None:
    tally = KeyTally()
    for n in range(5000):
        tally.add(f"robot/{n}/pose", 1)
        tally.add("robot/7/camera", 3)
    assert tally.most()[:2] == [("robot/7/camera", 15_000), ("robot/**", tally.rows["robot/**"])]
    assert sum(tally.rows.values()) == 20_000
    tally.add("x/" * LONGEST + "end", 1)
    assert all(len(row) <= LONGEST + 3 for row in tally.rows)


def test_a_run_of_messages_is_read_with_the_numbers_that_both_sides_gave() -> None:
    known = {(3, False): "robot/7", (3, True): "other"}
    log = DropLog(DropLog())
    log.resolve = lambda scope, theirs, suffix: (
        known[scope, theirs] + suffix if (scope, theirs) in known else None
    )
    run = encoded(
        put(3, "/pose"),
        put(3, "/pose", mine=False, size=900),
        put(0, "plain/key"),
        put(9, "/unknown"),
        Request(id=4, scope=3, suffix="/ask", body=Query()),
        ResponseFinal(id=4),
    )
    log.messages(CONGESTION, [run[:5], run[5:]], 6)
    expected = {"robot/7/pose": 1, "other/pose": 1, "plain/key": 1, "robot/7/ask": 1, OTHERS: 2}
    assert log.tallies[CONGESTION].rows == expected
    assert log.total is not None
    assert log.total.tallies[CONGESTION].rows == expected


@given(st.binary(max_size=60), st.integers(1, 30))
def test_bytes_that_cannot_be_read_are_counted_all_the_same(data: bytes, count: int) -> None:
    log = DropLog()
    log.messages(CONGESTION, [data], count)
    assert sum(log.tallies[CONGESTION].rows.values()) == count


@given(st.lists(st.integers(1, 120), min_size=1, max_size=60), st.integers(2, 12))
def test_what_is_not_looked_at_is_counted_with_what_is(runs: list[int], robots: int) -> None:
    """Keys take turns, as robots do: the worst case for looking at every n-th."""
    log, turn, truth = DropLog(), 0, Counter[str]()
    for count in runs:
        names = [f"robot/{(turn + n) % robots}" for n in range(count)]
        turn += count
        truth.update(names)
        log.messages(CONGESTION, [encoded(*[put(0, name) for name in names])], count)
    counted = sum(log.tallies[CONGESTION].rows.values())
    assert counted + log.owed.get(CONGESTION, 0) == truth.total()
    assert log.sampled or log.tallies[CONGESTION].rows == truth


def test_of_many_drops_one_in_so_many_is_looked_at_and_shares_come_out_right() -> None:
    log, looked = DropLog(), 0
    for n in range(200_000):
        owed = log.due(CONGESTION, 1)
        if owed:
            looked += 1
            log.note(CONGESTION, "a" if n % 4 == 0 else "b", owed)
    rows = log.tallies[CONGESTION].rows
    assert log.sampled
    assert abs((looked - EXACT) * ONE_IN / 199_000 - 1) < 0.05
    assert abs(rows["a"] / 50_000 - 1) < 0.1
    assert sum(rows.values()) + log.owed[CONGESTION] == 200_000


def test_an_outbox_counts_what_it_drops_under_its_key_and_says_why() -> None:
    outbox = Outbox(2048, 2, 0xFFFF, 0, False, 1)
    outbox.lost = DropLog()
    payload = bytes(1000)
    taken = [
        outbox.offer(push_head(scope=0, suffix=f"cam/{n}") + b"\x01", payload, 5, True, 0, False)
        for n in range(6)
    ]
    lost = [f"cam/{n}" for n in range(6) if not taken[n]]
    assert len(lost) >= 2
    assert outbox.lost.tallies[CONGESTION].rows == dict.fromkeys(lost, 1)
    assert not outbox.relay([encoded(put(0, "run/a"), put(0, "run/b"))], 1200, 2, 5, True, False)
    assert outbox.drops[5] == len(lost) + 2
    assert outbox.lost.tallies[CONGESTION].rows["run/b"] == 1


def test_what_is_too_large_for_low_latency_is_counted_once_as_such() -> None:
    outbox = Outbox(2048, 2, 0xFFFF, 0, False, 4)
    outbox.agree(2048, 0xFFFF, 0, False, bare=True)
    outbox.lost = DropLog()
    assert not outbox.send(put(0, "big/one", size=4000), 5, True)
    assert outbox.send(put(0, "small/one"), 5, True)
    assert (outbox.oversized, sum(outbox.drops)) == (1, 0)
    assert outbox.lost.tallies["oversized"].rows == {"big/one": 1}
