"""Outboxes that wait to be flushed by the loop: asked for once, however many threads ask.

Threads that publish put batches into the outboxes of a node (see `shared`). What they do not write
themselves they leave here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenlake.engine.loop import Loop
    from zenlake.engine.multicast import MulticastPump
    from zenlake.engine.polling import SocketPoller
    from zenlake.engine.pump import Pump
    from zenlake.engine.shared import SharedOutbox
    from zenlake.transport.outbox import Outbox


class Flushing:
    """The outboxes of one node, with who flushes each."""

    def __init__(self, loop: Loop, poller: SocketPoller | None) -> None:
        """`poller`: threads that read the links in the loop's place, which then looks often."""
        self._loop = loop
        self._poller = poller
        self._pumps: dict[int, Pump | MulticastPump] = {}
        self._dirty: list[SharedOutbox] = []
        #: Outboxes that somebody looks at soon anyway.
        self._later: list[SharedOutbox] = []
        #: Whether the loop was asked to flush them.
        self._asked = False

    def add(self, outbox: SharedOutbox, pump: Pump | MulticastPump) -> None:
        """From now on `pump` flushes this outbox."""
        self._pumps[id(outbox)] = pump

    def remove(self, outbox: SharedOutbox) -> None:
        """It is flushed no more."""
        self._pumps.pop(id(outbox), None)

    def pump_of(self, outbox: Outbox) -> Pump | MulticastPump | None:
        """Who flushes an outbox."""
        return self._pumps.get(id(outbox))

    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._dirty and not self._later

    def soon(self, outbox: SharedOutbox) -> None:
        """Have an outbox flushed by the loop; from any thread."""
        self._dirty.append(outbox)
        # First appended, then looked: whoever clears the flag looks at the list after that.
        if not self._asked:
            self._asked = True
            if self._loop.is_current():
                self._loop.loop.call_soon(self._flush)
            else:
                self._loop.soon(self._flush)

    def _flush(self) -> None:
        self._asked = False
        while self._dirty:
            pump = self.pump_of(self._dirty.pop())
            if pump is not None:
                pump.flush()

    def later(self, outbox: SharedOutbox) -> bool:
        """Have an outbox flushed within a millisecond, if the loop looks as often; any thread."""
        poller = self._poller
        if poller is None or not poller.hot:
            return False
        self._later.append(outbox)
        # Looked at again: when the loop no longer looks, it has looked at the list after that.
        return poller.hot

    def flush_later(self) -> None:
        """Flush what was left for later; on the loop thread."""
        while self._later:
            outbox = self._later.pop()
            outbox.later = False
            pump = self.pump_of(outbox)
            if pump is not None:
                pump.flush()
