from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import SECONDS
from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.sample import Sample


def sample(payload: bytes | None) -> Sample:
    return Sample(KeyExpr("a/b"), payload, True, 0, b"", 0, 0, b"", 5, True, None)


def lying(chunk: bytes, at: int, size: int) -> Sample:
    found = sample(None)
    found.lies_in(chunk, at, size)
    return found


@given(st.binary(max_size=50), st.binary(max_size=50), st.binary(max_size=50))
def test_a_payload_that_lies_in_a_read_is_seen_as_any_other(
    before: bytes, payload: bytes, after: bytes
) -> None:
    chunk = before + payload + after
    plain = sample(payload)
    for look in (
        lambda one: bytes(one.payload),
        lambda one: one.size(),
        lambda one: one == plain,
        hash,
        repr,
        lambda one: pickle.loads(pickle.dumps(one)) == plain,
    ):
        assert look(lying(chunk, len(before), len(payload))) == look(plain)


def test_a_payload_that_was_looked_at_keeps_no_read() -> None:
    read = b"x" * 1000
    alone = sys.getrefcount(read)
    kept = lying(read, 10, 20)
    assert sys.getrefcount(read) == alone + 1
    assert bytes(kept.payload) == b"x" * 20
    assert sys.getrefcount(read) == alone
    assert bytes(kept.payload) == b"x" * 20


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads change places after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_threads_that_look_at_once_see_the_same(impatient: None) -> None:
    samples = [lying(b"left" + b"payload" + b"right", 4, 7) for _ in range(2000)]
    seen: list[bytes] = []
    begin = threading.Barrier(4)

    def look() -> None:
        begin.wait(SECONDS)
        seen.extend(one.content() for one in samples)

    threads = [threading.Thread(target=look, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == [b"payload"] * 8000
