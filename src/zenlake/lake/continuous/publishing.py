"""Results on the bus: `view/NAME/…` and `alert/NAME/…`, and a token for as long as one runs.

A result is in the table already when it is published, and will not be found again: it must not be
lost on its way. It waits while the lake has no router, and for a router that does not read; and
what went over a link that broke soon after is published again when there is another, because
nobody knows whether it came. So who hears results may hear one twice, as after a death.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import ZError
from zenlake.lake.model.json_values import plain
from zenlake.routing.regions import CLIENT
from zenlake.values import CongestionControl

if TYPE_CHECKING:
    from zenlake.api.session import Session

__all__ = ["JSON", "RECENT", "Result", "ResultPublisher", "RouterLink"]

log = logging.getLogger("zenlake.lake")

JSON: Final = "application/json"
MOST: Final = 10_000
"""Results that wait for a router, and results that may be published again; older ones are not."""

RECENT: Final = 30.0
"""Seconds within which it is noticed that a link is broken: three times a lease."""


Result = tuple[str, str]
"""A key and its value as JSON."""


@final
class RouterLink:
    """Where the puts of a lake go, and whether some of them may have been lost."""

    def __init__(self, session: Session) -> None:
        """`session`: the bus."""
        self._session = session
        self._links: set[Any] = set(session.info.links())
        self.was_broken = False
        """True after a link broke, until the caller sets it to False."""

    def look(self) -> bool:
        """Note links that broke; return True if puts go anywhere."""
        links = set(self._session.info.links())
        self.was_broken = self.was_broken or bool(self._links - links)
        self._links = links
        # Routers and peers need nobody else.
        return bool(links) or self._session.runtime.node.settings.mode != CLIENT

    def put(self, key: str, payload: str | bytes, encoding: str = JSON) -> bool:
        """Put a value; waits for a router that does not read. Return False if it was refused."""
        try:
            self._session.put(
                key, payload, encoding=encoding, congestion_control=CongestionControl.BLOCK
            )
        except ZError as error:
            log.debug("%s was not published: %s", key, error)
            return False
        return True


@final
class ResultPublisher:
    """Publishes what one view or alert finds; for any number of threads."""

    def __init__(
        self,
        session: Session | None,
        root: str,
        clock: Callable[[], float] = time.monotonic,
        may_put: Callable[[str], bool] = lambda key: True,
        unsent: Iterable[Result] = (),
    ) -> None:
        """`root`: `view/NAME` or `alert/NAME`; without a session nothing is published.

        `may_put` says of a key whether the owner may put it now, `unsent` is what an earlier
        publisher of the same results could not send.
        """
        self.root = root
        self.published = 0
        self.lost = 0
        #: Results that the owner may not put under their keys.
        self.denied = 0
        self._may_put = may_put
        self._over = False
        self._link = None if session is None else RouterLink(session)
        self._session = session
        self._clock = clock
        self._token = None if session is None else session.liveliness().declare_token(root)
        self._lock = threading.Lock()
        self._waiting: deque[Result] = deque(unsent)
        self._recent: deque[tuple[float, str, str]] = deque(maxlen=MOST)

    @property
    def waiting(self) -> int:
        """How many results wait for a router."""
        return len(self._waiting)

    def unsent(self) -> list[Result]:
        """Return what waits, and what may have been lost with a link."""
        with self._lock:
            is_broken = self._link is not None and self._link.was_broken
            again = [(key, text) for _, key, text in self._recent] if is_broken else []
            return [*again, *self._waiting][-MOST:]

    def put(self, subject: str, result: Mapping[str, Any]) -> None:
        """Publish one result, now or when there is a router; the table has it in any case."""
        if self._link is None:
            return
        key = f"{self.root}/{subject}" if subject else self.root
        text = json.dumps(plain(dict(result)), ensure_ascii=False)
        with self._lock:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append((key, text))
            self._send(self._link)

    def look(self) -> None:
        """Publish what waited for a router, and what may have been lost with a link."""
        # Who looks after all views and alerts calls this, and waits for no put: it calls again.
        if self._link is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._send(self._link)
        finally:
            self._lock.release()

    def _send(self, link: RouterLink) -> None:
        if not link.look() or self._over:
            return
        now = self._clock()
        if link.was_broken:
            # However long there was no link: what counts is what was under way when it broke.
            link.was_broken = False
            again = [(key, text) for _, key, text in self._recent]
            self._recent.clear()
            self._waiting.extendleft(reversed(again))
        while self._recent and self._recent[0][0] < now - RECENT:
            self._recent.popleft()
        while self._waiting:
            key, text = self._waiting[0]
            if not self._may_put(key):
                self._waiting.popleft()
                self.denied += 1
                continue
            if not link.put(key, text):
                return
            self._waiting.popleft()
            self._recent.append((now, key, text))
            self.published += 1

    def close(self) -> None:
        """Publish no more, and take back the token that says that the view or alert runs."""
        self._over = True
        if self._token is not None and self._session is not None and not self._session.is_closed():
            self._token.undeclare()
        self._token = None
