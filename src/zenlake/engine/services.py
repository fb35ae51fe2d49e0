"""Services that live with a node because its configuration asks for them.

The rooms of services lie above the engine, which must not know them: it knows their names, and
imports those that are wanted when a node starts.

A room of SERVICES has `start(runtime)`, called on the loop before the node connects. A room of
HEARING or SERVING has `start(runtime)` too, called where waiting is allowed; what it returns is a
`RunningService`. One of HEARING is started before the first neighbour is let in, so that it misses
nothing; one of SERVING lets programs in by itself, and is started when the node is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from zenlake.config.model import Settings
from zenlake.errors import LocalError

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.node.inspection.metrics import Row


class RunningService(Protocol):
    """A service of a running node."""

    def change(self, config: Config) -> None:
        """Obey another configuration; raises `ZError` if it cannot."""

    def documents(self, root: str, selector: str) -> Iterator[tuple[str, object]]:
        """Its records below the admin space of the node that answer a query: key, JSON value."""

    def metrics(self) -> Iterator[Row]:
        """What it counts."""

    @property
    def serves(self) -> bool:
        """Whether it does what it is for; not, if it is switched off or could not start."""

    def troubles(self) -> list[str]:
        """Why it does not do what it is for, in sentences; empty: it does."""

    def close(self) -> None:
        """End it; the node is open still."""


class Served(Protocol):
    """A running node, as far as its services go."""

    settings: Settings
    services: dict[str, RunningService]


def _admin_space(settings: Settings) -> bool:
    return settings.adminspace.enabled


def _storages(settings: Settings) -> bool:
    return "storage_manager" in settings.plugins  # type: ignore[operator]


def _remote(settings: Settings) -> bool:
    return "remote_api" in settings.plugins  # type: ignore[operator]


def _rest(settings: Settings) -> bool:
    return "rest" in settings.plugins  # type: ignore[operator]


SERVICES: dict[str, Callable[[Settings], bool]] = {"zenlake.admin": _admin_space}
"""Rooms that are started with the node, and whether a configuration wants each."""

SessionServices = dict[str, tuple[str, Callable[[Settings], bool]]]
"""Rooms: what of the configuration they obey, and whether it wants them."""
HEARING: SessionServices = {
    "zenlake.storage_manager": ("plugins/storage_manager", _storages),
}
SERVING: SessionServices = {
    "zenlake.rest": ("plugins/rest", _rest),
    "zenlake.remote": ("plugins/remote_api", _remote),
}
SESSION_SERVICES: SessionServices = HEARING | SERVING


def start_services(runtime: Served) -> None:
    """Start what the configuration of a node asks for; the node is there, the lock is not held."""
    for room, wanted in SERVICES.items():
        if wanted(runtime.settings):
            import_module(room).start(runtime)


def start_session_services(runtime: Served, rooms: SessionServices) -> None:
    """Start those of these rooms that are wanted; may wait for disks, so never on the loop."""
    for room, (_, wanted) in rooms.items():
        if wanted(runtime.settings):
            runtime.services[room] = import_module(room).start(runtime)


def refuse_session_services(runtime: Served) -> None:
    """Refuse a configuration that asks for what cannot live on a program's own loop."""
    for obeyed, wanted in SESSION_SERVICES.values():
        if wanted(runtime.settings):
            raise LocalError(
                f"'{obeyed}' needs threads of its own, and a session on your own loop has "
                "none: open it with zenlake.open(config), or run `zenlake router`"
            )


def running_plugins(runtime: Served) -> dict[str, object] | None:
    """The services that serve, as Eclipse's nodes show plugins: by id, with name and path.

    What a plugin's library is there, a room is here.
    """
    return {
        name: {"name": name, "path": room}
        for room, service in list(runtime.services.items())
        if service.serves and room in SESSION_SERVICES
        for name in (SESSION_SERVICES[room][0].rpartition("/")[2],)
    } or None


def service_metrics(runtime: Served) -> list[Row]:
    """What the services of a node count; the node's lock is not held."""
    return [row for service in list(runtime.services.values()) for row in service.metrics()]


def service_troubles(runtime: Served) -> list[str]:
    """Why services of a node do not do what they are for; empty: all do."""
    return [
        trouble for service in list(runtime.services.values()) for trouble in service.troubles()
    ]


def change_services(runtime: Served, path: str, config: Config) -> bool:
    """Let a service obey a change at `path` of the configuration; False if no service does."""
    for room, (obeyed, _) in SESSION_SERVICES.items():
        if path == obeyed or path.startswith(f"{obeyed}/"):
            service = runtime.services.get(room)
            if service is None:
                service = runtime.services[room] = import_module(room).start(runtime)
            service.change(config)
            return True
    return False
