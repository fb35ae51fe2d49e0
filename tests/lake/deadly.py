"""Decoders that end their process, and workers that die of them."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn

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


class DeadlyEncoding(Deadly):
    """The same for an encoding of its own, as packages name their decoders."""

    encodings = ("application/x-deadly",)


class Processes(Here):
    """Does each task in a process of its own, which may end; `fatal`: rows that no task survives
    which writes them to `samples`."""

    def __init__(self, *fatal: int) -> None:
        super().__init__()
        self.fatal = fatal
        self.deaths = 0

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        done: list[R] = []
        for number, item in enumerate(items):
            read, write = os.pipe()
            child = os.fork()
            if not child:
                self._end_as(item, write)
            os.close(write)
            with os.fdopen(read, "rb") as result:
                plain = result.read()
            os.waitpid(child, 0)
            if not plain:
                self.deaths += 1
                subject = str(getattr(item, "subject", ""))
                failure = JobFailure(Cause.DIED, "a process died", number, 4)
                raise WorkFailed(failure, what, subject)
            done.append(pickle.loads(plain))
        return done

    def _end_as(self, item: Work[R], write: int) -> NoReturn:
        """Do a task in this process, and end the process."""
        skips = getattr(item, "skips", {}).get("samples", {})
        left = {offset for offsets in skips.values() for offset in offsets}
        try:
            for one in getattr(item, "stretches", ()):
                start = one.starts.get("samples", one.end)
                if any(start <= offset < one.end for offset in {*self.fatal} - left):
                    os.kill(os.getpid(), signal.SIGKILL)
            plain = pickle.dumps(item.run())
            with os.fdopen(write, "wb") as result:
                result.write(plain)
        finally:
            os._exit(1)


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
