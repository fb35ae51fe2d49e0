"""What lives with a node because its configuration asks for it.

The rooms of services lie above the engine, which must not know them: it knows their names, and
fetches those that are wanted when a node starts.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from zenlake.config.model import Settings

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime


def _admin_space(settings: Settings) -> bool:
    return settings.adminspace.enabled


SERVICES: dict[str, Callable[[Settings], bool]] = {"zenlake.admin": _admin_space}
"""The rooms of services, and whether a configuration wants each. A room has `start(runtime)`."""


def start_services(runtime: Runtime) -> None:
    """Start what the configuration of a node asks for; the node is there, the lock is not held."""
    for room, wanted in SERVICES.items():
        if wanted(runtime.settings):
            import_module(room).start(runtime)
