"""Rows of a replay on the bus: the same, however their times were written."""

from __future__ import annotations

import numpy as np
import pytest

import zenlake
from tests.api.sessions import connected, listening, until_matched
from zenlake.api.core import OWN
from zenlake.journal.reading.wire_times import wire_times
from zenlake.replay.recorded_puts import RecordedPuts, ReplayRoute

ID = bytes(range(1, 17))
SECOND = 1 << 32


@pytest.mark.parametrize("remote", [False, True], ids=["own", "remote"])
@pytest.mark.parametrize("quick", [False, True])
def test_rows_are_published_with_their_own_times(remote: bool, quick: bool) -> None:
    count = 300
    raw = [(1_800_000_000 + n) * SECOND + n for n in range(count)]
    puts = RecordedPuts(
        [one >> 32 for one in raw],
        [one % SECOND for one in raw],
        [ID] * count,
        [b"%d" % n for n in range(count)],
        [b"note" if n % 7 == 0 else None for n in range(count)],
        wire_times(np.array(raw, np.uint64)) if quick else b"",
    )
    with listening() as here, connected(here) as there:
        subscriber = (there if remote else here).declare_subscriber("k/*")
        with here.declare_publisher("k/0") as publisher:
            until_matched(publisher)
        local = here.runtime.node.local
        routes = [
            ReplayRoute(local.publication(OWN, f"k/{n}", 5, True, 5 * n, b"", 2)) for n in (0, 1)
        ]
        puts.publish(routes, [n % 2 for n in range(count)], 0, count)
        heard = [subscriber.recv() for _ in range(count)]
    assert (puts.size, puts.lost) == (sum(len(b"%d" % n) for n in range(count)), 0)
    encodings = ("zenoh/bytes", "application/json")
    for n, one in enumerate(heard):
        assert one.payload.to_bytes() == b"%d" % n
        assert (str(one.key_expr), str(one.encoding)) == (f"k/{n % 2}", encodings[n % 2])
        assert one.timestamp == zenlake.Timestamp(1_800_000_000 + n, ID, n)
        assert (one.attachment is not None) == (n % 7 == 0)
