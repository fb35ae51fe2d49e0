"""Recorders in this process, and waiting for what they must do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zenlake
from tests.api.sessions import SECONDS, connected, listening
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder


def until(holds: Callable[[], object], what: str = "") -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what or "it did not happen"
        time.sleep(0.005)


def until_rows(recorder: Recorder, count: int) -> None:
    """Wait until so many rows are durable, in all partitions together."""
    until(lambda: sum(recorder.watermark().offsets) >= count, f"{recorder.watermark()}")


def until_heard(publisher: Any) -> None:
    """Wait until somebody listens."""
    until(lambda: publisher.matching_status.matching, "nobody listens")


@contextmanager
def recording(
    path: Path, *exprs: str, **options: Any
) -> Iterator[tuple[Recorder, zenlake.Session]]:
    """A recorder with a session of its own, and another session connected to that."""
    found = Options(exprs or ("r/**",), str(path), **{"name": "j", "fsync": "5ms"} | options)
    with (
        listening() as session,
        Recorder(session, found) as recorder,
        connected(session) as other,
    ):
        yield recorder, other
