"""The conditions under which `open` returns, and the error if they do not hold in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.errors import LinkError

if TYPE_CHECKING:
    from zenlake.engine.running_node import RunningNode


def named(endpoint: str, error: str) -> str:
    """An error with its endpoint in front; errors of links name it themselves."""
    return error if error.startswith(endpoint) else f"{endpoint}: {error}"


class Opening:
    """What `open` waits for, and how long."""

    def __init__(self, runtime: RunningNode) -> None:
        """Of a node that has been started."""
        self._runtime = runtime
        settings = runtime.settings
        conditions = settings.open.return_conditions
        wanted = len(runtime.node.settings.connect)
        self._client = settings.mode == "client"
        self._scouting = runtime.scouting() and conditions.connect_scouted
        self._declares = conditions.declares
        #: How many sessions there must be.
        self._wanted = 1 if self._client else wanted
        #: With endpoints and no patience, one round through all of them is enough.
        self._one_round = bool(wanted) and settings.connect.timeout_ms == 0
        #: How many seconds to wait; None: for ever.
        self.patience: float | None = settings.scouting.delay / 1000
        if self._client and not wanted:
            self.patience = settings.scouting.timeout / 1000
        elif self._client and self._one_round:
            self.patience = settings.transport.unicast.open_timeout / 1000
        elif self._client:
            patience = settings.connect.timeout_ms / 1000
            self.patience = None if patience < 0 else patience
        elif not wanted and not self._scouting:
            self.patience = 0.0

    def ready(self) -> bool:
        """Whether `open` may return; the node's lock is held."""
        node = self._runtime.node
        opened = len(node.by_zid)
        if self._client:
            if opened:
                return True
            return self._one_round and all(endpoint.error for endpoint in node.plan.endpoints)
        if opened < self._wanted or (self._scouting and not opened):
            return False
        return not self._declares or node.sessions.settled()

    def check(self) -> None:
        """Raise if sessions are missing that must be there; the node's lock is held."""
        runtime = self._runtime
        if runtime.settings.connect.exit_on_failure and len(runtime.node.by_zid) < self._wanted:
            raise LinkError(self._failure())

    def _failure(self) -> str:
        """What was tried, and how it went."""
        runtime = self._runtime
        tried = [
            named(endpoint.text, endpoint.error or "no answer yet")
            for endpoint in runtime.node.plan.endpoints
            if not endpoint.attempt or not self._is_open(endpoint.attempt)
        ]
        if tried:
            return "no session could be opened; tried " + "; ".join(tried)
        scouting = runtime.settings.scouting
        if not runtime.scouting():
            return (
                "nobody to connect to: no endpoint is configured and multicast scouting is off; "
                "set connect/endpoints, e.g. ['tcp/localhost:7447']"
            )
        return (
            f"nobody was found: scouted {scouting.multicast.address} on interface "
            f"{scouting.multicast.interface} for {scouting.timeout} ms; "
            "start a router or peer, or set connect/endpoints"
        )

    def _is_open(self, attempt: int) -> bool:
        neighbours = self._runtime.node.neighbours
        return any(n.attempt == attempt and n.is_open() for n in neighbours)
