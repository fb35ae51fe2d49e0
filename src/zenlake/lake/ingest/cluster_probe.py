"""Whether the workers of a cluster see the journal and the lake that the driver sees."""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass

from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.table.location import LakeLocation

__all__ = ["Probe", "WorkerView", "probe"]

FOLDER = "_probe"


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What one worker sees."""

    host: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class Probe:
    """Looks for the journal, and for a file that the driver has just put into the lake."""

    lake: str
    journal: str
    journal_id: str
    token: str

    def run(self) -> WorkerView:
        """See, and write beside it."""
        return WorkerView(socket.gethostname(), self._problem())

    def _problem(self) -> str | None:
        try:
            journal = Journal.open(self.journal)
        except Exception as error:
            return f"does not see the journal {self.journal} ({reason_of(error)})"
        if journal.id != self.journal_id:
            return f"sees another journal in {self.journal}"
        try:
            lake = LakeLocation(self.lake)
            if not lake.exists(f"{FOLDER}/{self.token}"):
                return f"does not see the lake {self.lake}, or sees another folder of that name"
            name = f"{FOLDER}/{self.token}-{uuid.uuid4().hex}"
            with lake.filesystem.open_output_stream(lake.path(name)) as out:
                out.write(b"seen")
            lake.remove(name)
        except Exception as error:
            return f"cannot write the lake {self.lake} ({reason_of(error)})"
        return None


def probe(tasks: Tasks, lake: LakeLocation, journal: Journal) -> None:
    """Raise in words what a worker does not see, before any work is sent."""
    token = uuid.uuid4().hex
    lake.make(FOLDER)
    with lake.filesystem.open_output_stream(lake.path(f"{FOLDER}/{token}")) as out:
        out.write(b"here")
    work = Probe(lake.uri, journal.path, journal.id, token)
    try:
        probed = tasks.run([work] * (2 * tasks.parallel), "look for the folders")
    except Exception as error:
        raise LocalError(
            f"the workers cannot run zenlake ({reason_of(error)}); install it on each of them"
        ) from error
    finally:
        lake.remove_folder(FOLDER)
    for seen in probed:
        if seen.problem is not None:
            raise LocalError(
                f"the worker on {seen.host} {seen.problem}; journal and lake must lie where every "
                "worker sees them by the same path: a shared filesystem, or an address like s3://…"
            )
