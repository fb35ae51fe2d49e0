"""Flushing outboxes on the loop: requested once, however many threads request it.

Threads that publish fill the outboxes of a node (see `shared`). What they do not write themselves
they leave to the loop, in one of two ways:

    soon    the loop is woken, and flushes in its next round
    later   the loop checks every millisecond anyway while a thread polls the sockets in its place
            (see `polling`): the outbox is put on a list and no one is woken

A `FlushRequest` (see `flush_request`) is the state of one outbox, guarded by the outbox's lock.
`Flushing` is the queue of one node. Its lists are appended to by any thread and popped by the loop;
both are one step of the interpreter. No request is lost between two steps: a thread first appends
and then reads `_requested` (or `poller.hot`), the loop first clears the flag and then reads the
list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from zenlake.engine.shared import SharedOutbox
from zenlake.transport.outbox import Outbox

if TYPE_CHECKING:
    from zenlake.engine.loop import EventLoop


class Flushable(Protocol):
    """Writes an outbox into its link: the pump of a link, or of a group."""

    def flush(self) -> None:
        """Write what waits; on the loop thread."""


class LoopCheck:
    """Whether the loop checks by itself (`hot`), because it leaves the sockets to a thread."""

    def __init__(self) -> None:
        """It waits until it is woken."""
        self.hot = False


class Flushing:
    """The outboxes of one node that the loop is to flush, and the pump of each."""

    def __init__(self, loop: EventLoop, poller: LoopCheck | None) -> None:
        """`poller`: while it is hot the loop checks every millisecond."""
        self._loop = loop
        self._poller = poller
        self._pumps: dict[int, Flushable] = {}
        #: Outboxes to be flushed in the loop's next round, and by its next check.
        self._soon: list[Outbox] = []
        self._later: list[Outbox] = []
        #: Whether the loop may check by itself (`later`).
        self.looks = poller is not None
        #: Whether the loop was woken for `_soon`.
        self._requested = False

    def add(self, outbox: SharedOutbox, pump: Flushable) -> None:
        """From now on `pump` flushes this outbox."""
        self._pumps[id(outbox)] = pump

    def remove(self, outbox: SharedOutbox) -> None:
        """Flush this outbox no more."""
        self._pumps.pop(id(outbox), None)

    def pump_of(self, outbox: Outbox) -> Flushable | None:
        """The pump that flushes an outbox."""
        return self._pumps.get(id(outbox))

    def is_idle(self) -> bool:
        """Whether no outbox waits to be flushed."""
        return not self._soon and not self._later

    def soon(self, outbox: Outbox) -> None:
        """Have an outbox flushed in the loop's next round; from any thread."""
        self._soon.append(outbox)
        if not self._requested:
            self._requested = True
            if self._loop.is_current():
                self._loop.loop.call_soon(self._flush)
            else:
                self._loop.soon(self._flush)

    def flush_now(self) -> None:
        """Flush what waits for the loop's next round before something long; on the loop thread."""
        if self._soon:
            self._write()

    def _flush(self) -> None:
        self._requested = False
        self._write()

    def _write(self) -> None:
        while self._soon:
            pump = self.pump_of(self._soon.pop())
            if pump is not None:
                pump.flush()

    def later(self, outbox: Outbox) -> bool:
        """Have an outbox flushed by the loop's next check; False: it does not check. Any thread."""
        poller = self._poller
        if poller is None or not poller.hot:
            return False
        self._later.append(outbox)
        # Read again: the loop clears `hot` first and then flushes the list a last time.
        return poller.hot

    def flush_later(self) -> None:
        """Flush what was left to this check; on the loop thread."""
        while self._later:
            outbox = self._later.pop()
            assert isinstance(outbox, SharedOutbox)
            outbox.request.later = False
            pump = self.pump_of(outbox)
            if pump is not None:
                pump.flush()
