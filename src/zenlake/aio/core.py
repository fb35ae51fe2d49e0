"""What is declared on a session knows of it: the node, the blocking session, tasks, sending."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from zenlake.api.core import SessionCore as BlockingCore
from zenlake.engine.tasks import (
    YIELD,
    TimeSlice,
    join_tasks,
    publish,
    wait_for_local_room,
    would_block,
)
from zenlake.node.entities import Publication
from zenlake.wire.codec_network import Push

__all__ = ["AwaitingCore", "Sending", "SessionTasks"]


class Sending:
    """Sends what a session publishes: waits for room, and lets other tasks run in between."""

    def __init__(self) -> None:
        """One for a session."""
        self.share = TimeSlice()

    async def send(self, publication: Publication, push: Push) -> None:
        """Publish anything."""
        await self.yield_to_loop()
        if would_block(publication):
            await publish(publication, push)
        else:
            publication.publish(push)
        if publication.locals:
            await wait_for_local_room(publication)

    async def yield_to_loop(self) -> None:
        """Let other tasks of the loop run, if this one has run long."""
        share = self.share
        share.left -= 1
        if share.left <= 0 and share.spent():
            await YIELD


class SessionTasks:
    """Tasks that call coroutine functions, and what lives as long as they do."""

    def __init__(self) -> None:
        """No task runs yet."""
        self._tasks: dict[asyncio.Task[None], object] = {}

    def start(self, work: Coroutine[Any, Any, None], owner: object) -> None:
        """Have a task run until it is done, or the session is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = owner
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    async def end(self) -> None:
        """Cancel all tasks but the one that asks for it, and wait for their end."""
        # A callback may close its own session: it is not made to wait for itself.
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await join_tasks(tasks)


class AwaitingCore:
    """The base of an awaiting session. Its attributes are for zenlake, and no part of the API."""

    def __init__(self, core: BlockingCore) -> None:
        """Around a blocking session, on whose loop its tasks run."""
        self.core = core
        self.runtime = core.runtime
        self.sending = Sending()
        self.tasks = SessionTasks()
