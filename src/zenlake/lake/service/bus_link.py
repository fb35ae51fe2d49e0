"""A lake's session on the bus, and whether it is connected.

    with BusLink(config) as link: ...link.session, link.state()

Opening waits for nobody: the router may come later than the lake, or again, and rows flow into the
tables meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self, final

import zenlake
from zenlake.lake.model.status import BusStatus

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config

__all__ = ["BusLink"]


@final
class BusLink:
    """The session of a lake."""

    def __init__(self, config: Config) -> None:
        """Begin to connect; `config` says where, and as whom."""
        # Of no patience and no failure: `open` returns at once, and the node goes on trying.
        config.insert_json5("connect/timeout_ms", "1")
        config.insert_json5("connect/exit_on_failure", "false")
        self.session: Session = zenlake.open(config)
        self._state = BusStatus(since=time.time())

    def state(self) -> BusStatus:
        """Whether it is connected, since when, and why not."""
        with self.session.runtime.locked() as node:
            connected = bool(node.by_zid)
            tried = [endpoint.error for endpoint in node.plan.endpoints if endpoint.error]
        reason = "" if connected else (tried or [self._state.reason])[0]
        if (connected, reason) != (self._state.connected, self._state.reason):
            same = connected == self._state.connected
            self._state = BusStatus(connected, self._state.since if same else time.time(), reason)
        return self._state

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
