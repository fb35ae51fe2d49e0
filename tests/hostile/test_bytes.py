"""What a stranger may send: nothing but `DecodeError` comes of it, and nothing large is made."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import wire, xrce
from zenlake.errors import DecodeError
from zenlake.wire.codec_network import skip_network
from zenlake.wire.cursor import Reader, Writer

GOLDEN = Path(__file__).parents[1] / "golden"
ENTRIES = json.loads((GOLDEN / "vectors-1x.json").read_text())
NETWORK = [bytes.fromhex(e["hex"]) for e in ENTRIES if e["layer"].startswith("network")]
SOME = sorted(set(NETWORK), key=lambda data: (len(data), data))[::6]
BATCHES = [bytes.fromhex(e["hex"]) for e in ENTRIES if e["layer"].startswith("batch (")]

READERS: dict[str, Callable[[bytes], object]] = {
    "batch": wire.read_batch,
    "network": wire.read_network,
    "scouting": wire.read_scouting,
    "link states": wire.read_link_states,
    "packet": xrce.read_packet,
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


def number(value: int) -> bytes:
    w = Writer()
    w.vle(value, (1 << 64) - 1)
    return w.getvalue()


def refuses(read: Callable[[bytes], object], data: bytes) -> bool:
    """Whether the bytes are refused; an offset outside them or another error is a failure."""
    try:
        read(data)
    except DecodeError as error:
        if not 0 <= error.offset <= len(data):
            raise AssertionError(f"offset {error.offset} in {len(data)} bytes") from error
        return True
    return False


# --------------------------------------------------------------------------------- any bytes


@every_reader
@given(data=st.binary(max_size=80))
def test_random_bytes_are_read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    refuses(read, data)


@pytest.mark.parametrize("data", SOME, ids=lambda data: data.hex()[:24])
def test_a_flipped_bit_never_gives_anything_but_a_message_or_a_refusal(data: bytes) -> None:
    for place in range(len(data)):
        for bit in range(8):
            damaged = data[:place] + bytes((data[place] ^ 1 << bit,)) + data[place + 1 :]
            if not refuses(wire.read_network, damaged):
                message = wire.read_network(damaged)
                assert wire.read_network(wire.write(message)) == message


@given(st.sampled_from(BATCHES), st.data())
def test_a_damaged_batch_is_read_or_refused(batch: bytes, data: st.DataObject) -> None:
    damaged = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if not refuses(wire.read_batch, bytes(damaged)):
        found = wire.read_batch(damaged)
        assert wire.read_batch(b"".join(map(wire.write, found))) == found


@given(st.sampled_from(NETWORK), st.sampled_from(NETWORK), st.data())
def test_two_messages_grown_together_are_read_or_refused(
    one: bytes, other: bytes, data: st.DataObject
) -> None:
    cut, from_ = data.draw(st.integers(0, len(one))), data.draw(st.integers(0, len(other)))
    refuses(wire.read_network, one[:cut] + other[from_:])


@given(st.binary(max_size=60))
def test_passing_over_needs_no_more_than_reading_does(data: bytes) -> None:
    r = Reader(data)
    try:
        skip_network(r)
    except DecodeError:
        assert refuses(wire.read_network, data)
    else:
        assert 0 < r.pos <= len(data)


# ---------------------------------------------------------------------- lengths that are lies

HUGE = [2**16 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
LIES: dict[str, Callable[[int], bytes]] = {
    "the suffix of a push": lambda n: b"\x7d\x00" + number(n) + b"ab",
    "the payload of a put": lambda n: b"\x5d\x01\x01" + number(n) + b"ab",
    "the schema of an encoding": lambda n: b"\x5d\x01\x41\x09" + number(n) + b"ab",
    "the id of a timestamp": lambda n: b"\x5d\x01\x21\x00" + number(n) + b"ab",
    "an extension nobody knows": lambda n: b"\xdd\x01\x4e" + number(n) + b"ab",
    "an extension of a put": lambda n: b"\x5d\x01\x81\x4e" + number(n) + b"ab",
    "an attachment": lambda n: b"\x5d\x01\x81\x43" + number(n) + b"ab",
    "source info": lambda n: b"\x5d\x01\x81\x41" + number(n) + b"\x00\x01\x01\x01",
    "the slices of shared memory": lambda n: b"\x5d\x01\x81\x12" + number(n) + b"\x00\x00",
    "the stamps of a timestamp stack": lambda n: b"\xdd\x01\x47\x0b\x07" + number(n) + bytes(9),
    "the parameters of a query": lambda n: b"\x5c\x01\x00\x43" + number(n) + b"ab",
    "the body of an oam": lambda n: b"\x5f\x01" + number(n) + b"ab",
    "the key of an undeclaration": lambda n: b"\x1e\x83\x01\x5f" + number(n) + b"\x00\x01",
}


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_length_larger_than_the_message_is_refused(
    lie: Callable[[int], bytes], size: int
) -> None:
    assert refuses(wire.read_network, lie(size))


@pytest.mark.parametrize("count", HUGE)
def test_a_count_of_locators_larger_than_the_datagram_is_refused(count: int) -> None:
    with pytest.raises(DecodeError, match="elements announced"):
        wire.read_scouting(b"\x22\x09\x00\x01" + number(count) + b"\x01a")


@pytest.mark.parametrize("count", HUGE)
@pytest.mark.parametrize(
    "before", [b"", b"\x01\x00\x00\x00", b"\x01\x04\x00\x00"], ids=["entries", "links", "locators"]
)
def test_a_count_of_link_states_larger_than_the_body_is_refused(before: bytes, count: int) -> None:
    with pytest.raises(DecodeError, match="elements announced"):
        wire.read_link_states(before + number(count) + b"\x00")


@pytest.mark.parametrize("size", HUGE)
def test_a_cookie_larger_than_the_batch_is_refused(size: int) -> None:
    assert refuses(wire.read_batch, b"\x21\x09\x00\x01" + number(size) + b"ab")
    assert refuses(wire.read_batch, b"\x42\x0a\x01" + number(size) + b"ab")


def test_an_integer_without_end_stops_after_nine_bytes() -> None:
    with pytest.raises(DecodeError):
        wire.read_network(b"\x1a" + b"\xff" * 1_000_000)
    with pytest.raises(DecodeError, match="ten bytes"):
        xrce.read_packet(b"\x01" + b"\xff" * 1_000_000)


# ------------------------------------------------------------------------------ work and memory

#: Bytes of memory that a byte of input may cost: the smallest messages make the most objects.
COST = 150

Read = Callable[[bytes], object]
BULK: dict[str, tuple[Read, Callable[[int], bytes]]] = {
    "keep alives": (wire.read_batch, lambda n: b"\x04" * n),
    "empty frames": (wire.read_batch, lambda n: b"\x05\x01" * n),
    "deletions": (wire.read_batch, lambda n: b"\x05\x01" + b"\x1d\x00\x02" * n),
    "final responses": (wire.read_batch, lambda n: b"\x05\x01" + b"\x1a\x00" * n),
    "extensions to pass over": (wire.read_batch, lambda n: b"\x85\x01" + b"\x8e" * n + b"\x0e"),
    "extensions to keep": (wire.read_network, lambda n: b"\x1d\x01\x82" + b"\x8e" * n + b"\x0e"),
    "the same extension again": (
        wire.read_network,
        lambda n: b"\x1d\x01\x82" + b"\xc2\x10aaaaaaaaaaaaaaaa" * n + b"\x42\x00",
    ),
    "slices": (wire.read_network, lambda n: b"\x1d\x01\x81\x12" + number(n) + b"\x00\x00" * n),
    "links": (
        wire.read_link_states,
        lambda n: b"\x01\x08\x00\x00" + number(n) + b"\x01\x01" * n,
    ),
    "link states": (wire.read_link_states, lambda n: number(n) + b"\x00\x01\x01\x00" * n),
    "locators": (wire.read_scouting, lambda n: b"\x22\x09\x00\x01" + number(n) + bytes(n)),
    "pings": (xrce.read_packet, lambda n: b"\x0c\x01" * n),
    "markers": (xrce.read_packet, lambda n: b"\x93" * n),
    "declarations": (xrce.read_packet, lambda n: b"\x06\x01" + number(n) + b"\x06\x01" * n),
}
bulk = pytest.mark.parametrize(("read", "make"), BULK.values(), ids=BULK)


def try_to(read: Callable[[bytes], object], data: bytes) -> object:
    try:
        return read(data)
    except DecodeError as error:
        return error


@bulk
def test_memory_is_a_bounded_multiple_of_the_input(
    read: Read, make: Callable[[int], bytes]
) -> None:
    data = make(20_000)
    try_to(read, make(10))  # what is made once is not counted
    tracemalloc.start()
    try:
        try_to(read, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= COST * len(data)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_about_a_length_allocates_nothing_of_its_size(lie: Callable[[int], bytes]) -> None:
    try_to(wire.read_network, lie(2**40))
    tracemalloc.start()
    try:
        try_to(wire.read_network, lie(2**32 - 1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000


@bulk
def test_work_grows_with_the_input_and_not_with_its_square(
    read: Read, make: Callable[[int], bytes]
) -> None:
    # Eight times the input is eight times the work; quadratic work would be 64 times. A copy of the
    # rest for every message is work of C, which no count of lines sees: so this is time, of this
    # thread only. Others on the machine can only add to it: the shortest of many is the work, and
    # quadratic work is too much each time.
    few, many = make(5_000), make(40_000)
    small, large = cpu_time(read, few), cpu_time(read, many)
    for _ in range(20):
        if large <= 24 * max(small, 0.0005):
            break
        large = min(large, cpu_time(read, many))
    assert large <= 24 * max(small, 0.0005)


def cpu_time(read: Read, data: bytes) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        try_to(read, data)
        return time.thread_time() - start
    finally:
        gc.enable()
