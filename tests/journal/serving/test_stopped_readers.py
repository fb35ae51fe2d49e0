"""A reader that stops in the middle of the latest values: others go on."""

from __future__ import annotations

from pathlib import Path

import zenlake
from tests.api.sessions import connected, listening
from tests.journal.recording import until_rows
from tests.waiting import SECONDS, until
from zenlake.handlers import FifoChannel
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.journal.serving.serve import THREADS

#: More than sockets and queues hold of one answer.
VALUES, SIZE = 1500, 20_000


def test_a_reader_that_stops_delays_nobody(tmp_path: Path) -> None:
    options = Options(("r/**",), str(tmp_path), name="j", fsync="5ms")
    patience_us = "transport__link__tx__queue__congestion_control__block__wait_before_close"
    with (
        listening(mode='"router"', **{patience_us: str(int(4_000_000 * SECONDS))}) as router,
        Recorder(router, options) as recorder,
        connected(router, mode='"client"') as slow,
        connected(router, mode='"client"') as other,
    ):
        for n in range(VALUES):
            router.put(f"r/large/{n}", bytes(SIZE))
        router.put("r/small/1", "1")
        until_rows(recorder, VALUES + 1)
        unread = [
            slow.get(
                "r/**",
                FifoChannel(1),
                consolidation=zenlake.ConsolidationMode.NONE,
                timeout=4 * SECONDS,
            )
            for _ in range(THREADS + 4)
        ]
        # Any of them: the link is not read any more when the channel of another one is full.
        until(lambda: any(one.try_recv() is not None for one in unread), "nothing is answered")
        for asked in ("r/small/*", "r/small/1", "@journal/j/watermark"):
            (reply,) = other.get(asked, timeout=SECONDS)
            assert reply.ok is not None
