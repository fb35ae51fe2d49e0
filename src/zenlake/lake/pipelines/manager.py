"""The pipeline of a running lake: found in a folder, run, and loaded again when its files change.

    pipelines = Pipelines(place, spark, folder, complain)
    service.on_status(pipelines.problems, stopped=pipelines.stopped)

The files are looked at every second. New ones are analysed beside the flows that run, and replace
them if Spark understands all of them; else the flows go on as they were, and the status says what
is wrong, with the file and the line. A lake that starts with files that are wrong runs the last
ones that were right.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from zenlake.errors import LocalError, ZError
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.pipelines.project import Project, open_project
from zenlake.lake.pipelines.publishing import PublishedTables
from zenlake.lake.pipelines.runner import PipelineRunner
from zenlake.lake.pipelines.state import PipelineState, pipelines_folder
from zenlake.lake.pipelines.tables import PipelineTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenlake.api.session import Session
    from zenlake.lake.model.status import FlowStatus
    from zenlake.lake.table.location import LakeLocation

__all__ = ["Pipelines"]

log = logging.getLogger("zenlake.lake")

LOOK_SECONDS: Final = 1.0
"""Between two looks at the files and the flows."""


class PipelineCaller(Protocol):
    """A program on this machine that asked for something."""

    def fact(self, fact: object) -> None:
        """Send it a fact."""


@final
class Pipelines:
    """Runs the pipeline in a folder for as long as a lake runs."""

    def __init__(
        self,
        place: LakeLocation,
        spark: SparkSession,
        folder: Path,
        complain: Callable[[str], None],
        database: str = "lake",
        session: Session | None = None,
    ) -> None:
        """`folder`: where the files are; it may appear later. `database`: for names of tables.

        `session`: the bus, if the lake is on one.
        """
        self._published = PublishedTables(session)
        self._place = place
        self._spark = spark
        self._folder = folder
        self._complain = complain
        self._database = database
        self._runner: PipelineRunner | None = None
        self._held = ExitStack()
        self._seen = ""
        self._problem = ""
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="zenlake pipelines", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop all flows; they go on when the lake runs again."""
        self._over.set()
        self._thread.join(60.0)
        with self._lock:
            if self._runner is not None:
                self._runner.close()
            self._runner = None
            self._published.close()
            self._held.close()

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the files, and what a changed definition means."""
        runner = self._runner
        notes = () if runner is None else tuple(runner.notes)
        return (self._problem, *notes) if self._problem else notes

    def stopped(self) -> Mapping[str, str]:
        """Return why flows do not go on, by name."""
        runner = self._runner
        return {} if runner is None else runner.stopped()

    def handle(self, request: dict[str, Any], caller: PipelineCaller) -> None:
        """Answer a program on this machine."""
        action = request.get("action")
        if action == "list":
            caller.fact({"found": self.facts(), "problem": self._problem})
        elif action == "reset":
            names = [str(name) for name in request.get("names", ())]
            with self._lock:
                runner = self._demanded()
                runner.restart(names)
            caller.fact({"reset": names})
        else:
            raise LocalError(f"pipelines have no action '{action}'; there are list and reset")

    def facts(self) -> list[dict[str, Any]]:
        """Return what can be said of each flow and materialized view."""
        runner = self._runner
        if runner is None:
            return []
        return runner.facts()

    def flows(self) -> list[FlowStatus]:
        """Return what a status shows of each flow and materialized view."""
        runner = self._runner
        return [] if runner is None else runner.flows()

    def _demanded(self) -> PipelineRunner:
        if self._runner is None:
            raise LocalError(self._problem or f"there are no files of a pipeline in {self._folder}")
        return self._runner

    # --- on a thread of its own -------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                with self._lock:
                    self._look()
            except Exception as error:
                if self._over.is_set():
                    return
                log.exception("the pipelines of the lake failed")
                self._say(f"pipelines: {reason_of(error)}")

    def _look(self) -> None:
        if self._folder.is_dir():
            try:
                project = open_project(self._folder)
                seen = project.fingerprint()
            except (OSError, LocalError) as error:
                self._say(str(error))
            else:
                if seen != self._seen:
                    self._seen = seen
                    self._load(project)
        if self._runner is not None:
            self._runner.look(time.monotonic())

    def _load(self, project: Project) -> None:
        if not project.files() and self._runner is None:
            return
        try:
            self._replace(project)
        except ZError as error:
            self._say(f"pipeline '{project.name}': {error}")
            if self._runner is None:
                self._start_last_good(project)
        else:
            self._problem = ""

    def _replace(self, project: Project, good: Project | None = None) -> None:
        """Run these files in the place of those that run. Raises, and changes nothing, if one of
        them is wrong; `good`: a copy of older files, which runs in their place.
        """
        state = PipelineState(pipelines_folder(self._place.uri) / project.name)
        runner = PipelineRunner(
            good or project, self._tables(), state, self._complain, self._published
        )
        runner.load()
        old = self._runner
        if old is None or old.project.name != project.name:
            held = ExitStack()
            held.enter_context(state.locked())
            self._held.close()
            self._held = held
        if old is not None:
            old.close()
        self._runner = runner
        if good is None:
            state.set_source(str(project.folder))
            state.keep_good(project.folder, project.files())
        runner.start()
        for note in runner.notes:
            self._complain(note)

    def _start_last_good(self, project: Project) -> None:
        state = PipelineState(pipelines_folder(self._place.uri) / project.name)
        if not state.good().is_dir():
            return
        good = Project(state.good(), project.name, project.configuration)
        try:
            self._replace(project, good)
        except ZError as error:
            self._complain(f"the last good files of '{project.name}' do not run either: {error}")

    def _tables(self) -> PipelineTables:
        return PipelineTables(self._place, self._spark, self._database)

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._complain(problem)
        self._problem = problem
