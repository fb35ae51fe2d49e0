"""Recorders in this process, and waiting for what they must do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zenlake
from tests.api.sessions import connected, listening
from tests.waiting import until
from zenlake.journal.disk.files import JournalFiles
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder


def until_rows(recorder: Recorder, count: int) -> None:
    """Wait until so many rows are durable, in all partitions together."""
    until(lambda: sum(recorder.watermark().offsets) >= count, f"{recorder.watermark()}")


def until_heard(publisher: Any) -> None:
    """Wait until somebody listens."""
    until(lambda: publisher.matching_status.matching, "nobody listens")


@contextmanager
def recording(
    path: Path, *exprs: str, files: JournalFiles | None = None, **options: Any
) -> Iterator[tuple[Recorder, zenlake.Session]]:
    """A recorder with a session of its own, and another session connected to that."""
    found = Options(exprs or ("r/**",), str(path), **{"name": "j", "fsync": "5ms"} | options)
    with (
        listening() as session,
        Recorder(session, found, files) as recorder,
        connected(session) as other,
    ):
        # A session is open before it has heard of everybody if that takes long.
        for expr in exprs or ("r/**",):
            publisher = other.declare_publisher(expr)
            until_heard(publisher)
            publisher.undeclare()
        yield recorder, other
