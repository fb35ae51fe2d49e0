"""A server of a node as a service: obeys the configuration of its plugin, or says why it cannot."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from zenlake.config.plugins import REQUIRED
from zenlake.errors import LocalError, ZError
from zenlake.http.server import HttpServer, reason
from zenlake.keys import intersects
from zenlake.node.inspection import metrics

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.config.shape import Mode
    from zenlake.engine.runtime import Runtime
    from zenlake.node.inspection.metrics import Row

__all__ = ["HttpService", "OpenSockets"]

log = logging.getLogger("zenlake.http")

Settings = TypeVar("Settings")


class OpenSockets(Protocol):
    """The WebSockets that a server has open."""

    def end(self) -> Coroutine[Any, Any, None]:
        """Tell all clients that the node ends."""


class HttpService(ABC, Generic[Settings]):
    """The server of one plugin: started, changed and stopped by the configuration of a node."""

    def __init__(self, runtime: Runtime, plugin: str, scheme: str) -> None:
        """Not serving yet; `plugin` names its part of the configuration, `scheme` its URLs."""
        self._runtime = runtime
        self._plugin = plugin
        self._scheme = scheme
        self._lock = threading.Lock()
        self._settings: Settings | None = None
        self._serving: HttpServer | None = None
        self._failure = ""

    # ------------------------------------------------------------------ what each server adds

    @abstractmethod
    def _read(self, plugins: dict[str, Any], mode: Mode) -> Settings | None:
        """The settings of the plugin; None where it is not configured."""

    @abstractmethod
    def _serve(self, settings: Settings, config: Config) -> HttpServer:
        """Start to serve; raises `ZError`, `OSError`, or `ImportError` without the extra."""

    @property
    @abstractmethod
    def _open_sockets(self) -> OpenSockets | None:
        """The WebSockets to end before the server."""

    @abstractmethod
    def _shown(self, serving: HttpServer) -> dict[str, object]:
        """What the admin space shows of a server that runs, by name."""

    # ------------------------------------------------------------------------------- its life

    @property
    def serves(self) -> bool:
        """Whether it listens."""
        return self._serving is not None

    def troubles(self) -> list[str]:
        """Why it does not listen, if it should."""
        return [f"plugins/{self._plugin}: {self._failure}"] if self._failure else []

    @property
    def url(self) -> str:
        """Where it is, for programs on this machine; empty if it is nowhere."""
        serving = self._serving
        return "" if serving is None else serving.url(self._scheme)

    def start(self) -> None:
        """Serve as the node is configured; a failure is logged, and raised if it is required."""
        config = self._runtime.config
        try:
            self.change(config)
        except ZError:
            if self._plugins(config).get(self._plugin, {}).get(REQUIRED) is True:
                raise

    def change(self, config: Config) -> None:
        """Serve as a configuration says: anew, if it says something else."""
        wanted = self._read(self._plugins(config), config.mode)
        with self._lock:
            if wanted == self._settings and self._serving is not None:
                return
            self._stop()
            self._settings = wanted
            self._failure = ""
            if wanted is None:
                return
            try:
                self._serving = self._serve(wanted, config)
            except (ZError, OSError, ImportError) as error:
                self._failure = reason(error)
                log.error("plugins/%s is not served: %s", self._plugin, self._failure)
                raise LocalError(f"plugins/{self._plugin}: {self._failure}") from error
            log.info("plugins/%s is served at %s", self._plugin, self.url)

    def close(self) -> None:
        """Serve no more; all clients are gone."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        serving, sockets = self._serving, self._open_sockets
        if serving is None:
            return
        if sockets is not None:
            with contextlib.suppress(TimeoutError):
                serving.call(sockets.end)
        serving.close()
        self._serving = None

    def _connection_metrics(self) -> Iterator[Row]:
        """Yield what its connections hold, and why connections were refused."""
        serving = self._serving
        if serving is None:
            return
        at, connections = {"at": self._plugin}, serving.connections
        yield metrics.HTTP_CONNECTIONS, at, connections.places.taken
        yield metrics.HTTP_BUFFERED, at, connections.memory.taken
        yield metrics.HTTP_UNSENT, at, connections.answers.taken
        for why, number in list(connections.refused.items()):
            yield metrics.HTTP_CUT, {**at, "reason": why}, number

    @staticmethod
    def _plugins(config: Config) -> dict[str, Any]:
        plugins: dict[str, Any] = json.loads(config.get_json("plugins"))
        return plugins

    def documents(self, root: str, asked: str) -> Iterator[tuple[str, object]]:
        """The records below a node's admin space `root` that answer a query, as JSON values."""
        below = f"{root}/status/plugins/{self._plugin}"
        if not intersects(asked, f"{below}/**"):
            return
        from zenlake import __version__

        serving = self._serving
        records: dict[str, object] = {"version": __version__}
        if serving is not None:
            records["port"] = serving.port
            records["connections"] = serving.connections.shown()
            records |= self._shown(serving)
        elif self._failure:
            records["failure"] = self._failure
        for name, content in records.items():
            if intersects(asked, f"{below}/{name}"):
                yield f"{below}/{name}", content
