"""The server of the remote API: WebSockets on a port of their own, and who is connected."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from zenlake.config.model_remote import RemoteApi as RemoteSettings
from zenlake.config.model_remote import remote_api
from zenlake.config.model_web import place
from zenlake.http.connections import Connections
from zenlake.http.few_lines import bounded_log
from zenlake.http.heads import heads_of
from zenlake.http.limits import HttpLimits
from zenlake.http.names import ANY, host_name, origin_allowed, site_refusal
from zenlake.http.server import HttpServer
from zenlake.http.service import HttpService
from zenlake.http.sockets import hosts_of, listen, refuse_strangers
from zenlake.links.descriptors import most_descriptors
from zenlake.remote.sockets import POLICY, RemoteSockets, credentials_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from zenlake.config import Config
    from zenlake.config.shape import Mode
    from zenlake.engine.runtime import Runtime
    from zenlake.http.users import User, Users
    from zenlake.node.inspection.metrics import Row

__all__ = ["RemoteApiService", "start"]

log = bounded_log("zenlake.remote.service")


def start(runtime: Runtime) -> RemoteApiService:
    """Serve the remote API as the configuration of a node says."""
    service = RemoteApiService(runtime)
    service.start()
    return service


class RemoteApiService(HttpService[RemoteSettings]):
    """The remote API of one node."""

    def __init__(self, runtime: Runtime) -> None:
        """Not serving yet."""
        super().__init__(runtime, "remote_api", "ws")
        self._sockets: RemoteSockets | None = None

    @property
    def clients(self) -> list[dict[str, object]]:
        """Who is connected."""
        return [] if self._sockets is None else self._sockets.shown

    def _read(self, plugins: dict[str, Any], mode: Mode) -> RemoteSettings | None:
        return remote_api(plugins, mode)

    def _serve(self, settings: RemoteSettings, config: Config) -> HttpServer:
        from zenlake.aio.session import session_beside
        from zenlake.http.users import Users

        host, port = place(settings.websocket_port)
        users = Users.of_node(self._runtime, config.resolved, settings.tokens_file)
        refuse_strangers("remote_api", host, settings.allow_anonymous, users.anybody)
        secure = settings.secure_websocket
        pair = None if secure is None else (secure.certificate_path, secure.private_key_path)
        sock = listen(host, port)
        try:
            sockets = RemoteSockets(
                session_beside(self._runtime),
                most=settings.max_clients,
                queue_bytes=settings.queue_bytes,
                max_declarations=settings.max_declarations,
            )
            door = _Door(sockets, settings, users, hosts_of(host, settings.hosts))
            limits = HttpLimits(
                connections=settings.max_connections,
                buffered_bytes=max(settings.max_buffered, 2 * settings.max_message),
                unsent_bytes=max(settings.max_unsent, 2 * settings.queue_bytes),
            )
            connections = Connections(limits.within(most_descriptors()))
            serving = HttpServer(door, sock, "remote", connections, pair, settings.max_message)
        except BaseException:
            sock.close()
            raise
        self._sockets = sockets
        return serving

    @property
    def _open_sockets(self) -> RemoteSockets | None:
        return self._sockets

    def metrics(self) -> Iterator[Row]:
        """What it counts."""
        if self._sockets is not None:
            yield from self._sockets.metrics("remote_api")
        yield from self._connection_metrics()

    def _shown(self, serving: HttpServer) -> dict[str, object]:
        if self._sockets is None:
            return {}
        shown: dict[str, object] = {"refused": dict(self._sockets.refused)}
        return shown | {f"clients/{client['uuid']}": client for client in self.clients}


class _Door:
    """The ASGI application: who may connect; the sockets of those who may are served elsewhere."""

    def __init__(
        self,
        sockets: RemoteSockets,
        settings: RemoteSettings,
        users: Users,
        hosts: frozenset[str],
    ) -> None:
        self._sockets = sockets
        self._settings = settings
        self._users = users
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            with contextlib.suppress(OSError, RuntimeError):  # who asked may have gone meanwhile
                await _no_page(send)
            return
        await receive()  # websocket.connect
        headers = heads_of(scope)
        try:
            peer = (scope.get("client") or ("", 0))[0]
            user, protocol = self._admit(headers, scope.get("subprotocols", []), peer)
        except _NotAdmitted as refused:
            self._sockets.refused[refused.kind] += 1
            log.info("a client was refused: %s", refused)
            await send({"type": "websocket.close", "code": POLICY, "reason": str(refused)})
            return
        await self._sockets.serve(user, protocol, scope, receive, send)

    def _admit(self, headers: dict[str, str], protocols: list[str], peer: str) -> tuple[User, str]:
        """The user, and the sub-protocol that is agreed on; raises `_NotAdmitted`."""
        from zenlake.http.users import Denied

        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in self._hosts:
            raise _NotAdmitted("name", "this node has another name; see plugins/remote_api/hosts")
        foreign = origin is not None and not self._origin_allowed(origin, host)
        if foreign or site_refusal("", headers, is_page=False):
            raise _NotAdmitted("origin", "see plugins/remote_api/origins")
        shown, protocol = credentials_of(headers.get("authorization", ""), protocols)
        try:
            return self._users.of(shown, peer), protocol
        except Denied as denied:
            raise _NotAdmitted("user", str(denied)) from denied

    def _origin_allowed(self, origin: str, host: str) -> bool:
        allowed = self._settings.origins
        if ANY in allowed or origin_allowed(origin, host, allowed):
            return True
        # A page that this machine serves, on whatever port: this one serves none, so that a page
        # which uses it is always at another. Others' names are not this machine's.
        _, _, authority = origin.partition("://")
        return host_name(authority) in self._hosts


class _NotAdmitted(Exception):
    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


async def _no_page(send: Send) -> None:
    head = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 426, "headers": head})
    text = b"this is the remote API: connect with a WebSocket (zenoh-ts)\n"
    await send({"type": "http.response.body", "body": text})
