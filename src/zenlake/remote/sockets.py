"""The WebSockets of clients that were admitted: as ASGI hands them over, each with its client.

Who may connect is decided before, by the server that a socket came to: the remote API's own, or
that of HTTP, whose web page speaks the remote API too.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from zenlake.http.connections import seat_of
from zenlake.http.shares import Holding, Shares, holder_of
from zenlake.node.inspection import metrics
from zenlake.remote.client import RemoteClient

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from zenlake.aio.session import Session
    from zenlake.http.users import User
    from zenlake.node.inspection.metrics import Row

__all__ = ["POLICY", "RemoteSockets", "credentials_of"]

AWAY: Final = 1001
POLICY: Final = 1008
OLD: Final = 1003
BUSY: Final = 1013
BEARER: Final = "zenlake.bearer."
"""How a browser shows a token, which cannot set headers: as a name of a sub-protocol."""
BEARER64: Final = "zenlake.bearer64."
"""The same in URL-safe base64, for tokens with letters that no such name may have."""


def credentials_of(authorization: str, protocols: Iterable[str]) -> tuple[str, str]:
    """The credentials that a client shows, and the sub-protocol that is agreed on.

    Args:
        authorization: the header of that name, or nothing.
        protocols: the sub-protocols that it offers; one may be a token.
    """
    agreed = ""
    for name in protocols:
        token = _token(name)
        if token is not None:
            authorization = f"Bearer {token}"
        if not agreed or token is None:
            agreed = name
    return authorization, agreed


def _token(protocol: str) -> str | None:
    """The token that is the name of a sub-protocol, if it is one."""
    if protocol.startswith(BEARER):
        return protocol.removeprefix(BEARER)
    if not protocol.startswith(BEARER64):
        return None
    written = protocol.removeprefix(BEARER64)
    try:
        return base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()
    except ValueError:
        return ""


class RemoteSockets:
    """The clients that are connected to one server, and what those missed that are gone."""

    def __init__(
        self, session: Session, *, most: int, queue_bytes: int, max_declarations: int
    ) -> None:
        """At most `most` clients, and three quarters of one address; else bounds of each."""
        self._session = session
        self._places = Shares(most)
        self._queue_bytes = queue_bytes
        self._max_declarations = max_declarations
        self.clients: dict[str, RemoteClient] = {}
        #: How many were refused, by reason.
        self.refused: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    @property
    def shown(self) -> list[dict[str, object]]:
        """Who is connected, for the admin space."""
        return [one.shown() for one in list(self.clients.values())]

    def metrics(self, at: str) -> Iterator[Row]:
        """What is counted; `at`: the plugin whose server it is."""
        yield metrics.REMOTE_CLIENTS, {"at": at}, len(self.clients)
        for why, number in list(self.refused.items()):
            yield metrics.REMOTE_REFUSED, {"at": at, "reason": why}, number
        dropped = self._dropped.copy()
        for client in list(self.clients.values()):
            dropped.update(client.outgoing.dropped)
        for kind, number in dropped.items():
            yield metrics.REMOTE_DROPPED, {"at": at, "kind": kind}, number

    async def serve(
        self, user: User, protocol: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Accept a socket and serve its client until it is gone; `protocol` is agreed on."""
        accepted: dict[str, Any] = {"type": "websocket.accept"}
        if protocol:
            accepted["subprotocol"] = protocol
        await send(accepted)
        host, port = scope.get("client") or ("", 0)
        holder = holder_of(host)
        if not self._places.take(holder):
            self.refused["busy"] += 1
            await send({"type": "websocket.close", "code": BUSY, "reason": "too many clients"})
            return
        try:
            seat = seat_of(scope)
            held = Holding(seat.answers, seat.holder)
            await self._serve(user, host, port, held, receive, send)
        finally:
            self._places.give_back(holder)

    async def _serve(
        self, user: User, host: str, port: int, held: Holding, receive: Receive, send: Send
    ) -> None:
        client = RemoteClient(
            self._session,
            user,
            str(uuid.uuid4()),
            host,
            port,
            self._queue_bytes,
            self._max_declarations,
            held,
        )
        self.clients[client.uuid] = client
        me = asyncio.current_task()
        assert me is not None
        self._tasks.add(me)
        writing = asyncio.ensure_future(_write(client, send))
        try:
            await _read(client, receive, send)
        except asyncio.CancelledError:
            if not self._ended:
                raise
            with contextlib.suppress(Exception):
                await send({"type": "websocket.close", "code": AWAY, "reason": "the node ends"})
        finally:
            self._tasks.discard(me)
            self.clients.pop(client.uuid, None)
            writing.cancel()
            await client.close()
            self._dropped.update(client.outgoing.dropped)
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await writing

    async def end(self) -> None:
        """End every client, and tell it so."""
        self._ended = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(client: RemoteClient, receive: Receive, send: Send) -> None:
    """Do what a client says, until it is gone."""
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            return
        data = event.get("bytes")
        if data:
            await client.hear(data)
        elif (event.get("text") or "").lstrip().startswith("{"):
            why = "this is the protocol before 1.5: use zenoh-ts 1.5 or newer"
            await send({"type": "websocket.close", "code": OLD, "reason": why})
            return


async def _write(client: RemoteClient, send: Send) -> None:
    """Send what waits for a client, as fast as it takes it."""
    outgoing = client.outgoing
    while True:
        message = await outgoing.take()
        if message is None:
            return
        await send({"type": "websocket.send", "bytes": message})
        outgoing.done(message)
