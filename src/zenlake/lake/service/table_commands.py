"""Commands that change the typed tables of a running lake, one at a time.

They come over the lake's socket, as those of views and alerts do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, final

from zenlake.errors import LocalError
from zenlake.lake.decode.table_store import FoundTables
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.maintain.table_changes import ChangedTable, TableChanges
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.service.local_server import LocalCaller
from zenlake.lake.table.location import LakeLocation

__all__ = ["TableCommands", "perform"]

log = logging.getLogger("zenlake.lake")


def perform(changes: TableChanges, request: Mapping[str, Any], tasks: Callable[[], Tasks]) -> Any:
    """Do what a request asks for, and return what became of it; `tasks` is asked when needed."""
    action, name = request.get("action"), request.get("name")
    if action == "list":
        return [{"name": one.name, "found": one.found, **one.entry} for one in changes.listed()]
    if not isinstance(name, str):
        raise LocalError("say which table: {'do': 'table', 'action': …, 'name': …}")
    done: ChangedTable
    match action:
        case "add":
            done = changes.add(name, _members(request), tasks())
        case "set":
            done = changes.set(name, _members(request), tasks())
        case "put":  # what HTTP has for both
            known = {one.name for one in changes.listed()}
            change = changes.set if name in known else changes.add
            done = change(name, _members(request), tasks())
        case "rename":
            done = changes.rename(name, _text(request, "to"), tasks())
        case "merge":
            form = request.get("format")
            done = changes.merge(
                name, _text(request, "other"), tasks(), None if form is None else str(form)
            )
        case "rm":
            changes.remove(name, tasks())
            return {"name": name, "removed": True}
        case _:
            raise LocalError(
                f"'{action}' is nothing that can be done to a table; there are list, add, set, "
                "put, rename, merge and rm"
            )
    return asdict(done)


def _members(request: Mapping[str, Any]) -> Mapping[str, Any]:
    given = request.get("table", {})
    if not isinstance(given, dict):
        raise LocalError(f'{given!r} is not an object such as {{"format": "robot/${{id}}/pose"}}')
    return given


def _text(request: Mapping[str, Any], member: str) -> str:
    given = request.get(member)
    if not isinstance(given, str):
        raise LocalError(f"'{request.get('action')}' needs '{member}', the name of a table")
    return given


@final
class TableCommands:
    """Answers requests whose `do` is `table`."""

    def __init__(
        self, place: LakeLocation, config: LakeConfig, found: FoundTables, tasks: Tasks
    ) -> None:
        """`found`: the tables of the running lake, which its pipelines share."""
        self._changes = TableChanges(place, config, found)
        self._tasks = tasks
        self._turn = threading.Lock()
        self._found = found
        self._over = False
        self._problem = ""
        self._thread = threading.Thread(target=self._begin, name="zenlake families", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        """Finish what was cut off, and make tables of keys from before there were families."""
        try:
            with self._turn:
                self._changes.finish(self._tasks)
                if self._found.automatic:
                    made = self._changes.adopt(self._found.store, self._tasks)
                    log.info("tables of keys that there were: %s", ", ".join(made) or "none")
        except Exception as error:  # Spark has ended, or the lake
            if not self._over:
                self._problem = f"tables of keys that there were could not be made: {error}"
                log.warning("%s", self._problem)

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong, a sentence each."""
        return (self._problem,) if self._problem else ()

    def handle(self, request: dict[str, Any], caller: LocalCaller) -> None:
        """Change a table, or list those that there are."""
        if not self._turn.acquire(timeout=0.0 if request.get("action") != "list" else 1.0):
            raise LocalError("another command changes the tables; give yours again when it is over")
        try:
            caller.fact(perform(self._changes, request, lambda: self._tasks))
        finally:
            self._turn.release()

    def close(self) -> None:
        """Wait for the command that is under way."""
        self._over = True
        if self._turn.acquire(timeout=10.0):
            self._turn.release()
