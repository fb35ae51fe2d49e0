"""What the handlers of a client's messages share: declarations, queries, tasks, and answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from zenlake.errors import LocalError, ZError
from zenlake.http.shares import Holding
from zenlake.remote.messages import RemoteMessage, encode
from zenlake.remote.outgoing import Outgoing
from zenlake.transport.drops import DropLog

if TYPE_CHECKING:
    from zenlake.aio.querier import Replies
    from zenlake.aio.query import Query

__all__ = ["ClientState"]


class ClientState:
    """All that lives as long as a client's socket."""

    def __init__(
        self, queue_bytes: int, max_declarations: int, lost: DropLog, held: Holding
    ) -> None:
        """`queue_bytes` may wait for the client; it may have `max_declarations`, gets included.

        `lost` counts what finds no room; `held` is this client's part in what waits for all.
        """
        self.outgoing = Outgoing(queue_bytes, lost, held)
        self._most = max_declarations
        #: Declarations by kind and id: what ends each, and its key.
        self._entities: dict[str, dict[int, tuple[Any, str]]] = {
            kind: {}
            for kind in ("publisher", "subscriber", "queryable", "querier", "token", "listener")
        }
        #: Gets whose replies are not all there.
        self.gets: dict[int, Replies] = {}
        #: Queries that the client has not answered, the oldest first.
        self.queries: OrderedDict[int, Query] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, sequence: int, name: str, **body: Any) -> None:
        """Send a message that answers the one with this sequence number."""
        self.outgoing.add(encode(name, sequence, **body))

    def ok(self, message: RemoteMessage) -> None:
        """Send Ok, if an answer to `message` is wanted."""
        if message.sequence is not None:
            self.answer(message.sequence, "Ok", number=message.kind.number)

    def reply(self, name: str, message: RemoteMessage, **body: Any) -> None:
        """Send a message of kind `name`, if an answer to `message` is wanted."""
        if message.sequence is not None:
            self.answer(message.sequence, name, **body)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task that ends with the client."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def check_new(self, kind: str, id: int) -> None:
        """Raise `LocalError` if an id is taken, or the client has as much as it may."""
        if id in self._entities[kind]:
            raise LocalError(f"{kind} {id} is declared already")
        total = sum(len(one) for one in self._entities.values()) + len(self.gets)
        if total >= self._most:
            raise LocalError(f"{total} declarations and queries: plugins/remote_api allows no more")

    def add(self, kind: str, id: int, entity: Any, key: str) -> None:
        """Keep what was declared under an id."""
        self._entities[kind][id] = (entity, key)

    def keys(self, kind: str) -> dict[str, str]:
        """The keys of what was declared, by id."""
        return {str(id): key for id, (_, key) in list(self._entities[kind].items())}

    def entity(self, kind: str, id: int) -> Any:
        """What was declared under an id."""
        declared = self._entities[kind].get(id)
        if declared is None:
            raise LocalError(f"there is no {kind} {id}")
        return declared[0]

    async def undeclare(self, kind: str, message: RemoteMessage) -> None:
        """Undeclare what the message names, and answer it."""
        id = message.body["id"]
        entity = self.entity(kind, id)
        del self._entities[kind][id]
        await entity.undeclare()
        self.ok(message)

    async def forward_events(
        self, listener: AsyncIterable[Any], encoded: Callable[[Any], bytes]
    ) -> None:
        """Send every event of a listener, as `encoded` writes it."""
        async for event in listener:
            await self.outgoing.room()
            self.outgoing.add(encoded(event))

    async def close(self) -> None:
        """End all that it declared."""
        self.outgoing.close()
        for declared in self._entities.values():
            for entity, _ in list(declared.values()):
                with contextlib.suppress(ZError):
                    await entity.undeclare()
            declared.clear()
        for query in list(self.queries.values()):
            with contextlib.suppress(ZError):
                await query.drop()
        self.queries.clear()
        self.gets.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
