"""HTTP of a node as a service: obeys its part of the configuration, and shows what it counts."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from zenlake.config.model_web import Rest as RestSettings
from zenlake.config.model_web import place, rest
from zenlake.errors import LocalError, ZError
from zenlake.http.server import HttpServer, hosts_of, listen, reason, refuse_strangers
from zenlake.keys import intersects
from zenlake.node.inspection import metrics

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.engine.runtime import Runtime
    from zenlake.node.inspection.metrics import Row
    from zenlake.remote.sockets import RemoteSockets
    from zenlake.rest.keys import Keys
    from zenlake.rest.requests import Door

__all__ = ["RestService", "start"]

log = logging.getLogger("zenlake.rest")

QUEUE_BYTES: Final = 1 << 20
"""How much waits for a page that is slow: what it is shown should be of now."""
DECLARATIONS: Final = 1000
"""Declarations and open queries of one page."""


def start(runtime: Runtime) -> RestService:
    """Serve HTTP as the configuration of a node says."""
    service = RestService(runtime)
    try:
        service.change(runtime.config)
    except ZError:
        if _required(runtime.config):
            raise
    return service


def _required(config: Config) -> bool:
    plugins = json.loads(config.get_json("plugins"))
    return plugins.get("rest", {}).get("__required__") is True


class RestService:
    """HTTP of one node."""

    def __init__(self, runtime: Runtime) -> None:
        """Not serving yet."""
        self._runtime = runtime
        self._lock = threading.Lock()
        self._settings: RestSettings | None = None
        self._serving: HttpServer | None = None
        self._door: Door | None = None
        self._keys: Keys | None = None
        self._sockets: RemoteSockets | None = None
        self._failure = ""

    @property
    def serves(self) -> bool:
        """Whether it listens."""
        return self._serving is not None

    @property
    def url(self) -> str:
        """Where it is, for programs on this machine; empty if it is nowhere."""
        serving = self._serving
        return "" if serving is None else serving.url("http")

    # -------------------------------------------------------------------------- configuration

    def change(self, config: Config) -> None:
        """Serve as a configuration says: anew, if it says something else."""
        wanted = rest(json.loads(config.get_json("plugins")), config.mode)
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
                log.error("no HTTP at %s: %s", wanted.http_port, self._failure)
                raise LocalError(f"plugins/rest: {self._failure}") from error

    def _start(self, settings: RestSettings, config: Config) -> None:
        from zenlake.aio.session import Session
        from zenlake.http.users import Users, Watch
        from zenlake.remote.sockets import RemoteSockets
        from zenlake.rest.keys import Keys
        from zenlake.rest.pages import Pages
        from zenlake.rest.requests import Door

        host, port = place(settings.http_port)
        users = Users(config.resolved, settings.tokens_file, Watch(self._runtime))
        refuse_strangers("rest", host, settings.allow_anonymous, users.anybody)
        sock = listen(host, port)
        try:
            session = Session.beside(self._runtime)
            keys = Keys(session, settings)
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
            door = Door(settings, users, hosts, pages.find, keys, sockets)
            self._serving = HttpServer(door, sock, "http", max_message=settings.max_body)
        except BaseException:
            sock.close()
            raise
        self._keys, self._door, self._sockets = keys, door, sockets
        log.info("HTTP at %s", self._serving.url("http"))

    def _stop(self) -> None:
        serving, sockets = self._serving, self._sockets
        if serving is not None and sockets is not None:
            with contextlib.suppress(TimeoutError):
                serving.call(sockets.end)
            serving.close()
            self._serving = None

    # -------------------------------------------------------------------------- what is shown

    def metrics(self) -> Iterator[Row]:
        """What it counts."""
        door, keys = self._door, self._keys
        if door is None or keys is None:
            return
        answered: Counter[tuple[str, str]] = Counter()
        for (method, code), number in list(door.answered.items()):
            answered[method if method in METHODS else "other", str(code)] += number
        for (method, shown), number in answered.items():
            yield metrics.HTTP_REQUESTS, {"method": method, "code": shown}, number
        for why, number in list(door.refused.items()):
            yield metrics.HTTP_REFUSED, {"reason": why}, number
        yield metrics.HTTP_STREAMS, {}, keys.streams
        yield metrics.HTTP_SKIPPED, {}, keys.skipped
        if self._sockets is not None:
            yield from self._sockets.metrics("rest")

    def documents(self, root: str, asked: str) -> Iterator[tuple[str, object]]:
        """The records below a node's admin space `root` that answer a query, as JSON values."""
        below = f"{root}/status/plugins/rest"
        if not intersects(asked, f"{below}/**"):
            return
        from zenlake import __version__

        serving, keys, sockets = self._serving, self._keys, self._sockets
        records: dict[str, object] = {f"{below}/version": __version__}
        if serving is not None and keys is not None and sockets is not None:
            records[f"{below}/port"] = serving.port
            records[f"{below}/streams"] = {"open": keys.streams, "skipped": keys.skipped}
            for client in sockets.shown:
                records[f"{below}/clients/{client['uuid']}"] = client
        elif self._failure:
            records[f"{below}/failure"] = self._failure
        for key, content in records.items():
            if intersects(asked, key):
                yield key, content

    def close(self) -> None:
        """Serve no more."""
        with self._lock:
            self._stop()


METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
