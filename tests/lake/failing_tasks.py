"""Tasks that fail when a job is too large for them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lake.journals import Here, R
from zenlake.lake.ingest.spark_tasks import Work


def rows_in(items: Sequence[Work[R]]) -> int:
    """How many rows of a journal a job reads."""
    return sum(one.rows for item in items for one in getattr(item, "stretches", ()))


class Weak(Here):
    """Fails when a job reads too many rows."""

    def __init__(self, bears: int, error: BaseException) -> None:
        super().__init__()
        self.bears = bears
        self.error = error
        self.tried: list[int] = []

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        rows = rows_in(items)
        self.tried += [rows] if rows else []
        if rows > self.bears:
            raise self.error
        return super().run(items, what)
