"""The server of the remote API: WebSockets on a port of their own, and who is connected."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from zenlake.config.model_remote import RemoteApi as RemoteSettings
from zenlake.config.model_remote import remote_api
from zenlake.config.model_web import place
from zenlake.errors import LocalError, ZError
from zenlake.keys import intersects
from zenlake.node.inspection import metrics
from zenlake.rest.names import ANY, host_name, origin_allowed
from zenlake.rest.service import HttpServer, hosts_of, listen, reason, refuse_strangers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from zenlake.aio.session import Session
    from zenlake.config import Config
    from zenlake.engine.runtime import Runtime
    from zenlake.node.inspection.metrics import Row
    from zenlake.remote.client import RemoteClient
    from zenlake.rest.users import User, Users

__all__ = ["RemoteApiService", "start"]

log = logging.getLogger("zenlake.remote")

POLICY: Final = 1008
OLD: Final = 1003
BUSY: Final = 1013
BEARER: Final = "zenlake.bearer."
"""How a browser shows a token, which cannot set headers: as a name of a sub-protocol."""


def start(runtime: Runtime) -> RemoteApiService:
    """Serve the remote API as the configuration of a node says."""
    service = RemoteApiService(runtime)
    try:
        service.change(runtime.config)
    except ZError:
        plugins = json.loads(runtime.config.get_json("plugins"))
        if plugins.get("remote_api", {}).get("__required__") is True:
            raise
    return service


class RemoteApiService:
    """The remote API of one node."""

    def __init__(self, runtime: Runtime) -> None:
        """Not serving yet."""
        self._runtime = runtime
        self._lock = threading.Lock()
        self._settings: RemoteSettings | None = None
        self._serving: HttpServer | None = None
        self._door: _Door | None = None
        self._failure = ""

    @property
    def url(self) -> str:
        """Where it is, for programs on this machine; empty if it is nowhere."""
        return "" if self._serving is None else self._serving.url("ws")

    @property
    def clients(self) -> list[dict[str, object]]:
        """Who is connected."""
        door = self._door
        return [] if door is None else [one.shown() for one in list(door.clients.values())]

    def change(self, config: Config) -> None:
        """Serve as a configuration says: anew, if it says something else."""
        wanted = remote_api(json.loads(config.get_json("plugins")), config.mode)
        with self._lock:
            if wanted == self._settings and self._serving is not None:
                return
            self._stop()
            self._settings = wanted
            self._failure = ""
            if wanted is None:
                return
            try:
                self._start(wanted, config)
            except (ZError, OSError, ImportError) as error:
                self._failure = reason(error)
                log.error("no remote API at %s: %s", wanted.websocket_port, self._failure)
                raise LocalError(f"plugins/remote_api: {self._failure}") from error

    def _start(self, settings: RemoteSettings, config: Config) -> None:
        from zenlake.aio.session import Session
        from zenlake.rest.users import Users, Watch

        host, port = place(settings.websocket_port)
        users = Users(config.resolved, settings.tokens_file, Watch(self._runtime))
        refuse_strangers("remote_api", host, settings.allow_anonymous, users.anybody)
        secure = settings.secure_websocket
        pair = None if secure is None else (secure.certificate_path, secure.private_key_path)
        sock = listen(host, port)
        try:
            session = Session.beside(self._runtime)
            self._door = _Door(session, settings, users, hosts_of(host, settings.hosts))
            self._serving = HttpServer(self._door, sock, "remote", pair, settings.max_message)
        except BaseException:
            sock.close()
            raise
        log.info("remote API at %s", self._serving.url("ws"))

    def _stop(self) -> None:
        serving, door = self._serving, self._door
        if serving is not None and door is not None:
            with contextlib.suppress(TimeoutError):
                serving.call(door.end)
            serving.close()
            self._serving = None

    def metrics(self) -> Iterator[Row]:
        """What it counts."""
        door = self._door
        if door is None:
            return
        yield metrics.REMOTE_CLIENTS, {}, len(door.clients)
        for why, number in list(door.refused.items()):
            yield metrics.REMOTE_REFUSED, {"reason": why}, number
        dropped = door.dropped.copy()
        for client in list(door.clients.values()):
            dropped.update(client.outgoing.dropped)
        for kind, number in dropped.items():
            yield metrics.REMOTE_DROPPED, {"kind": kind}, number

    def documents(self, root: str, asked: str) -> Iterator[tuple[str, object]]:
        """The records below a node's admin space `root` that answer a query, as JSON values."""
        below = f"{root}/status/plugins/remote_api"
        if not intersects(asked, f"{below}/**"):
            return
        from zenlake import __version__

        records: dict[str, object] = {f"{below}/version": __version__}
        if self._serving is not None and self._door is not None:
            records[f"{below}/port"] = self._serving.port
            records[f"{below}/refused"] = dict(self._door.refused)
            for client in self.clients:
                records[f"{below}/clients/{client['uuid']}"] = client
        elif self._failure:
            records[f"{below}/failure"] = self._failure
        for key, content in records.items():
            if intersects(asked, key):
                yield key, content

    def close(self) -> None:
        """Serve no more; all clients are gone."""
        with self._lock:
            self._stop()


class _Door:
    """The ASGI application: who may connect, and a `RemoteClient` for each who does."""

    def __init__(
        self, session: Session, settings: RemoteSettings, users: Users, hosts: frozenset[str]
    ) -> None:
        self._session = session
        self._settings = settings
        self._users = users
        self._hosts = hosts
        self.clients: dict[str, RemoteClient] = {}
        self.refused: Counter[str] = Counter()
        #: What clients missed that are gone.
        self.dropped: Counter[str] = Counter()
        self._sockets: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await _no_page(send)
            return
        await receive()  # websocket.connect
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            peer = (scope.get("client") or ("", 0))[0]
            user, protocol = self._admit(headers, scope.get("subprotocols", []), peer)
        except _NotAdmitted as refused:
            self.refused[refused.kind] += 1
            log.info("a client was refused: %s", refused)
            await send({"type": "websocket.close", "code": POLICY, "reason": str(refused)})
            return
        accepted: dict[str, Any] = {"type": "websocket.accept"}
        if protocol:
            accepted["subprotocol"] = protocol
        await send(accepted)
        if len(self.clients) >= self._settings.max_clients:
            self.refused["busy"] += 1
            await send({"type": "websocket.close", "code": BUSY, "reason": "too many clients"})
            return
        await self._serve(user, scope, receive, send)

    def _admit(self, headers: dict[str, str], protocols: list[str], peer: str) -> tuple[User, str]:
        """The user, and the sub-protocol that is agreed on; raises `_NotAdmitted`."""
        from zenlake.rest.users import Denied

        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in self._hosts:
            raise _NotAdmitted("name", "this node has another name; see plugins/remote_api/hosts")
        if origin is not None and not self._origin_allowed(origin, host):
            raise _NotAdmitted("origin", "see plugins/remote_api/origins")
        shown = headers.get("authorization", "")
        protocol = ""
        for name in protocols:
            if name.startswith(BEARER):
                shown = f"Bearer {name.removeprefix(BEARER)}"
            if not protocol or not name.startswith(BEARER):
                protocol = name
        try:
            return self._users.of(shown, peer), protocol
        except Denied as denied:
            raise _NotAdmitted("user", str(denied)) from denied

    def _origin_allowed(self, origin: str, host: str) -> bool:
        allowed = self._settings.origins
        if ANY in allowed or origin_allowed(origin, host, allowed):
            return True
        # A page that this machine serves, on whatever port: others' names are not its.
        _, _, authority = origin.partition("://")
        return host_name(authority) in self._hosts

    async def _serve(self, user: User, scope: Scope, receive: Receive, send: Send) -> None:
        from zenlake.remote.client import RemoteClient

        peer = scope.get("client") or ("", 0)
        settings = self._settings
        client = RemoteClient(
            self._session,
            user,
            str(uuid.uuid4()),
            f"{peer[0]}:{peer[1]}",
            settings.queue_bytes,
            settings.max_declarations,
        )
        self.clients[client.uuid] = client
        me = asyncio.current_task()
        assert me is not None
        self._sockets.add(me)
        writing = asyncio.ensure_future(_write(client, send))
        try:
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
        finally:
            self._sockets.discard(me)
            self.clients.pop(client.uuid, None)
            writing.cancel()
            await client.close()
            self.dropped.update(client.outgoing.dropped)
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await writing

    async def end(self) -> None:
        """End every client."""
        sockets = list(self._sockets)
        for task in sockets:
            task.cancel()
        await asyncio.gather(*sockets, return_exceptions=True)


class _NotAdmitted(Exception):
    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


async def _write(client: RemoteClient, send: Send) -> None:
    """Send what waits for a client, as fast as it takes it."""
    outgoing = client.outgoing
    while True:
        message = await outgoing.take()
        if message is None:
            return
        await send({"type": "websocket.send", "bytes": message})
        outgoing.done(message)


async def _no_page(send: Send) -> None:
    head = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 426, "headers": head})
    text = b"this is the remote API: connect with a WebSocket (zenoh-ts)\n"
    await send({"type": "http.response.body", "body": text})
