"""What an advanced subscriber does with its decisions: deliver, ask, and keep the time."""

from __future__ import annotations

import time
from asyncio import TimerHandle
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Final, final

from zenlake.api.reply import Reply
from zenlake.engine.channel import Channel
from zenlake.engine.runtime import Runtime
from zenlake.errors import ZError
from zenlake.ext.config import Miss
from zenlake.node.advanced import Ask, Missed, Sources
from zenlake.node.entities import ReplySink, SampleSink
from zenlake.node.queries.gets import NONE, Get
from zenlake.node.sample import Sample
from zenlake.routing.queries import ALL
from zenlake.wire.codec_network import Responder
from zenlake.wire.codec_zenoh import Del, Err, Put

if TYPE_CHECKING:
    from zenlake.node.programs.local import Local

#: The loop is not woken for time more often than this, in seconds.
FINEST: Final = 0.001


class Following(SampleSink):
    """Follows the publishers of a key.

    Samples come from the loop thread and from publishers of this very session. Decisions
    are taken under a lock; what they deliver leaves outside of it, by one thread at a time, so
    that order is kept and a callback may do anything.
    """

    def __init__(
        self, runtime: Runtime, sources: Sources, channel: Channel, destination: int
    ) -> None:
        """`destination`: who may be asked for the past."""
        self._runtime = runtime
        self._sources = sources
        self._channel = channel
        self._destination = destination
        self._guard = Lock()
        self._leaving: deque[Sample | Missed] = deque()
        self._moving = False
        self._acting = False
        #: How many sources there were when the time was last looked at.
        self._kept = 0
        self._gets: set[Get] = set()
        self._timer: TimerHandle | None = None
        self._ended = False
        #: Who is told of samples that are missed.
        self.misses: list[Channel] = []

    # ------------------------------------------------------------------------------- hearing

    def push(self, sample: Sample) -> None:
        """A sample came by itself."""
        with self._guard:
            if self._ended:
                return
            self._sources.heard(sample, time.monotonic())
            self._collect()
        self._move()

    def commit(self) -> None:
        """Wake the threads that wait for the samples."""
        self._channel.commit()
        if self._channel.is_full():
            self._channel.wait_for_room()

    def end(self) -> None:
        """There will be no more; what is held is let go."""
        with self._guard:
            if self._ended:
                return
            self._ended = True
            self._sources.end()
            self._collect()
        self._move()
        self._channel.commit()
        self._channel.end()
        for channel in list(self.misses):
            channel.end()
        self._runtime.loop.soon(self._cancel)

    def begin(self) -> None:
        """Ask for the past."""
        with self._guard:
            self._sources.begin()
        self.act()

    def beat(self, key: str, payload: bytes) -> None:
        """A publisher says which number it used last."""
        if len(payload) == 4:
            with self._guard:
                self._sources.beat(key, int.from_bytes(payload, "little"), time.monotonic())
                self._collect()
            self._move()

    def token(self, key: str, alive: bool) -> None:
        """A publisher came, or went."""
        with self._guard:
            if alive:
                self._sources.appeared(key, time.monotonic())
            else:
                self._sources.disappeared(key, time.monotonic())
                self._kept = -1
            self._collect()
        self._move()

    def replied(self, sample: Sample) -> None:
        """A sample came as a reply."""
        with self._guard:
            self._sources.replied(sample, time.monotonic())
            self._collect()
        self._move()
        self._channel.commit()

    def over(self, ask: Ask, get: Get | None) -> None:
        """A query has been answered to the end."""
        with self._guard:
            if get is not None:
                self._gets.discard(get)
            if self._ended:
                return
            self._sources.over(ask, time.monotonic())
            self._collect()
        self._move()
        self._channel.commit()

    # ------------------------------------------------------------------------------ delivering

    def _collect(self) -> None:
        """Take what was decided; the lock is held."""
        sources = self._sources
        if sources.delivered:
            self._leaving.extend(sources.delivered)
            sources.delivered.clear()
        if sources.missed:
            self._leaving.extend(sources.missed)
            sources.missed.clear()
        # The time is looked at again when there is a new source whose time it keeps.
        if (
            not self._acting
            and not self._ended
            and (sources.requests or len(sources) != self._kept)
        ):
            self._acting = True
            self._runtime.loop.soon(self.act)

    def _move(self) -> None:
        """Hand over what is leaving, unless another thread does so already."""
        while True:
            with self._guard:
                if self._moving or not self._leaving:
                    return
                self._moving = True
                leaving = list(self._leaving)
                self._leaving.clear()
            try:
                for one in leaving:
                    if isinstance(one, Missed):
                        self._tell(Miss(one))
                    else:
                        self._channel.push(one, len(one.content()))
            finally:
                self._moving = False

    def _tell(self, miss: Miss) -> None:
        for channel in list(self.misses):
            channel.push(miss, 0)
            channel.commit()

    # -------------------------------------------------------------------------- asking and time

    def act(self) -> None:
        """Ask what is to be asked, and have the next deadline kept."""
        with self._guard:
            self._acting = False
            asked = list(self._sources.requests)
            self._sources.requests.clear()
            if self._ended:
                return
        for ask in asked:
            self._ask(ask)
        if self._runtime.on_loop():
            self._arm()

    def _ask(self, ask: Ask) -> None:
        parameters = f"{ask.parameters};_anyke" if ask.parameters else "_anyke"
        answers = HistoryReplies(self, ask)
        try:
            with self._runtime.locked() as node:
                get = node.local.get(
                    ask.key,
                    parameters,
                    answers,
                    target=ALL,
                    consolidation=NONE,
                    any_key=True,
                    timeout=node.settings.query_timeout,
                    destination=self._destination,
                )
                answers.get = get
                with self._guard:
                    if not get.over:
                        self._gets.add(get)
        except ZError:
            if not self._runtime.closed:
                raise

    def _arm(self) -> None:
        """Have the next deadline kept; on the loop thread."""
        with self._guard:
            if self._ended:
                return
            self._kept = len(self._sources)
            deadline = self._sources.deadline()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline < float("inf"):
            delay = max(FINEST, deadline - time.monotonic())
            self._timer = self._runtime.loop.loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._runtime.closed:
            return
        with self._guard:
            if self._ended:
                return
            self._sources.tick(time.monotonic())
        self.act()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def withdraw(self, local: Local) -> None:
        """Ask no more; the node's lock is held."""
        with self._guard:
            gets = list(self._gets)
            self._gets.clear()
        for get in gets:
            local.cancel(get)


@final
class HistoryReplies(ReplySink):
    """The replies to one query about the past."""

    def __init__(self, following: Following, ask: Ask) -> None:
        """For the one who asked."""
        self._following = following
        self._ask = ask
        self.get: Get | None = None

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """One reply; errors say that a node has nothing to give."""
        if not isinstance(body, Err):
            sample = Reply(key, body, responder, qos).ok
            if sample is not None:
                self._following.replied(sample)

    def end(self) -> None:
        """There will be no more."""
        self._following.over(self._ask, self.get)


@final
class Beats(SampleSink):
    """The heartbeats of publishers."""

    def __init__(self, following: Following) -> None:
        """For the one who follows them."""
        self._following = following

    def push(self, sample: Sample) -> None:
        """One beat."""
        if sample.is_put:
            self._following.beat(str(sample.key_expr), sample.content())


@final
class Tokens(SampleSink):
    """The lives and deaths of publishers."""

    def __init__(self, following: Following) -> None:
        """For the one who follows them."""
        self._following = following

    def push(self, sample: Sample) -> None:
        """One came or went."""
        self._following.token(str(sample.key_expr), sample.is_put)
