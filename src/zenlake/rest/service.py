"""HTTP of a node as a service: what serves it, and what it counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from zenlake.config.model_web import Rest as RestSettings
from zenlake.config.model_web import place, rest
from zenlake.http.connections import Connections
from zenlake.http.limits import HttpLimits
from zenlake.http.server import HttpServer
from zenlake.http.service import HttpService
from zenlake.http.sockets import hosts_of, listen, refuse_strangers
from zenlake.links.descriptors import most_descriptors
from zenlake.node.inspection import metrics

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.config.shape import Mode
    from zenlake.engine.runtime import Runtime
    from zenlake.node.inspection.metrics import Row
    from zenlake.remote.sockets import RemoteSockets
    from zenlake.rest.keys import Keys
    from zenlake.rest.owner_rights import OwnerRightsTeller
    from zenlake.rest.requests import Door

__all__ = ["RestService", "start"]

QUEUE_BYTES: Final = 1 << 20
"""How much waits for a page that is slow: what it is shown should be of now."""
DECLARATIONS: Final = 1000
"""Declarations and open queries of one page."""


def start(runtime: Runtime) -> RestService:
    """Serve HTTP as the configuration of a node says."""
    service = RestService(runtime)
    service.start()
    return service


class RestService(HttpService[RestSettings]):
    """HTTP of one node."""

    def __init__(self, runtime: Runtime) -> None:
        """Not serving yet."""
        super().__init__(runtime, "rest", "http")
        self._door: Door | None = None
        self._keys: Keys | None = None
        self._sockets: RemoteSockets | None = None
        self._teller: OwnerRightsTeller | None = None

    def _read(self, plugins: dict[str, Any], mode: Mode) -> RestSettings | None:
        return rest(plugins, mode)

    def _serve(self, settings: RestSettings, config: Config) -> HttpServer:
        from zenlake.aio.session import session_beside
        from zenlake.http.users import Users
        from zenlake.remote.sockets import RemoteSockets
        from zenlake.rest.keys import Keys
        from zenlake.rest.owner_rights import OwnerRightsTeller
        from zenlake.rest.pages import Pages
        from zenlake.rest.requests import Door, Places

        host, port = place(settings.http_port)
        users = Users.of_node(self._runtime, config.resolved, settings.tokens_file)
        refuse_strangers("rest", host, settings.allow_anonymous, users.anybody)
        sock = listen(host, port)
        try:
            session = session_beside(self._runtime)
            places = Places(settings.max_requests)
            limits = HttpLimits(
                connections=settings.max_connections,
                buffered_bytes=max(settings.max_buffered, 2 * settings.max_body),
                unsent_bytes=max(settings.max_unsent, 2 * settings.max_answer),
            )
            connections = Connections(limits.within(most_descriptors()), threading.Lock())
            keys = Keys(session, settings, places, connections)
            sockets = RemoteSockets(
                session,
                most=settings.max_streams if settings.page else 0,
                queue_bytes=QUEUE_BYTES,
                max_declarations=DECLARATIONS,
            )
            pages = Pages(
                self._runtime,
                page=settings.page,
                status_file=settings.status_file,
            )
            hosts = hosts_of(host, settings.hosts)
            door = Door(settings, users, hosts, pages.find, keys, sockets, places)
            serving = HttpServer(door, sock, "http", connections, max_message=settings.max_body)
        except BaseException:
            sock.close()
            raise
        self._keys, self._door, self._sockets = keys, door, sockets
        if settings.lake is not None:
            zid = str(session.zid())
            self._teller = OwnerRightsTeller(settings.lake, zid, users)
        return serving

    def _stop(self) -> None:
        teller, self._teller = self._teller, None
        if teller is not None:
            teller.close()
        super()._stop()

    @property
    def _open_sockets(self) -> RemoteSockets | None:
        return self._sockets

    # -------------------------------------------------------------------------- what is shown

    def metrics(self) -> Iterator[Row]:
        """What it counts."""
        door, keys = self._door, self._keys
        if door is None or keys is None:
            return
        for (method, code), number in list(door.answered.items()):
            yield metrics.HTTP_REQUESTS, {"method": method, "code": str(code)}, number
        for why, number in list(door.refused.items()):
            yield metrics.HTTP_REFUSED, {"reason": why}, number
        yield from self._connection_metrics()
        yield metrics.HTTP_STREAMS, {}, keys.streams.open
        yield metrics.HTTP_SKIPPED, {}, keys.streams.missed
        if self._sockets is not None:
            yield from self._sockets.metrics("rest")

    def _shown(self, serving: HttpServer) -> dict[str, object]:
        keys, sockets = self._keys, self._sockets
        if keys is None or sockets is None:
            return {}
        shown: dict[str, object] = {
            "streams": {"open": keys.streams.open, "skipped": keys.streams.missed}
        }
        return shown | {f"clients/{client['uuid']}": client for client in sockets.shown}
