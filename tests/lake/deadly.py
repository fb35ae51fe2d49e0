"""Decoders that end their process, and workers that die of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from tests.lake.journals import Here, R
from zenlake.lake.ingest.failure_reason import Cause, JobFailure, WorkFailed
from zenlake.lake.ingest.spark_tasks import Work

POISON = b"poison"


class Died(BaseException):
    """What the end of a worker is to a test without one."""


class Deadly:
    """Ends its process at one payload."""

    encodings: tuple[str, ...] = ()

    def decode(self, payload: bytes, schema: str, type: object) -> Mapping[str, object]:
        if payload == POISON:
            self.die()
        return {"n": int(payload)}

    def die(self) -> None:
        os._exit(9)


class Dying(Deadly):
    """The same for workers that are none: `Mortals` sees it."""

    def die(self) -> None:
        raise Died


class Mortals(Here):
    """Dies of each task as a worker of Spark does; `sick`: of all of these jobs, whatever is in."""

    def __init__(self) -> None:
        super().__init__(4)
        self.sick: set[str] = set()
        self.deaths = 0

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        done: list[R] = []
        for number, item in enumerate(items):
            try:
                if what in self.sick:
                    raise Died
                done += super().run([item], what)
            except Died:
                self.deaths += 1
                subject = str(getattr(item, "subject", ""))
                failure = JobFailure(Cause.DIED, "a Python worker of Spark died", number, 4)
                raise WorkFailed(failure, what, subject) from None
        return done
