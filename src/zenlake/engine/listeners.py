"""The listeners of a node: opened at the start, and changed while it runs."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import AbstractEventLoop
from typing import Final

from zenlake.config.model import Settings
from zenlake.engine.multicast import is_group
from zenlake.engine.settings import backoff_of
from zenlake.errors import LinkError
from zenlake.links.link import LinkListener, OnLink, UnicastLink
from zenlake.links.options import shown
from zenlake.links.registry import listen
from zenlake.values.locator import EndPoint

log = logging.getLogger("zenlake.engine")

EARLY_LINKS: Final = 1024
"""Links that may wait until the node lets them in; others are closed, and try again."""


def _endpoints(settings: Settings) -> list[EndPoint]:
    """The endpoints to listen on; a multicast group is joined instead."""
    return [endpoint for endpoint in settings.listen.endpoints if not is_group(endpoint)]


class Listeners:
    """The endpoints that a node listens on; lives on the loop."""

    def __init__(self, on_link: OnLink) -> None:
        """None yet; `on_link` is given every link that comes, from `serve` on."""
        self._on_link = on_link
        self._listeners: dict[str, LinkListener] = {}
        self._serving = False
        #: Links that came before `serve`.
        self._early: list[UnicastLink] = []

    def _accepted(self, link: UnicastLink) -> None:
        if self._serving:
            self._on_link(link)
        elif len(self._early) < EARLY_LINKS:
            self._early.append(link)
        else:
            link.close()

    @property
    def waiting(self) -> int:
        """The number of links that came and were not handed over yet."""
        return len(self._early)

    def serve(self) -> None:
        """Hand over the links that came, and those that come from now on."""
        self._serving = True
        early, self._early = self._early, []
        for link in early:
            self._on_link(link)

    async def open(self, loop: AbstractEventLoop, settings: Settings) -> None:
        """Listen where the configuration says; raises if `exit_on_failure` is set and one fails."""
        for endpoint in _endpoints(settings):
            try:
                await self.add(endpoint, loop, settings)
            except LinkError as error:
                if settings.listen.exit_on_failure:
                    raise
                log.warning("not listening on %s: %s", shown(endpoint), error)

    async def add(self, endpoint: EndPoint, loop: AbstractEventLoop, settings: Settings) -> None:
        """Listen on one more endpoint, trying again for as long as the configuration says."""
        listening = settings.listen
        patience = listening.timeout_ms / 1000
        deadline = time.monotonic() + patience
        retry = backoff_of(listening.retry)
        pause = retry.after(0.0)
        while True:
            try:
                listener = await listen(endpoint, loop, self._accepted, settings.transport.link)
            except LinkError:
                if patience >= 0 and time.monotonic() + pause > deadline:
                    raise
            else:
                self._listeners[str(endpoint)] = listener
                return
            await asyncio.sleep(pause)
            pause = retry.after(pause)

    async def change(self, loop: AbstractEventLoop, settings: Settings) -> None:
        """Listen where a new configuration says; links that were accepted before stay.

        An endpoint that cannot be listened on is logged and left out.
        """
        wanted = {str(endpoint): endpoint for endpoint in _endpoints(settings)}
        for text in [text for text in self._listeners if text not in wanted]:
            self._listeners.pop(text).close()
        for text, endpoint in wanted.items():
            if text not in self._listeners:
                try:
                    await self.add(endpoint, loop, settings)
                except LinkError as error:
                    log.warning("not listening on %s: %s", shown(endpoint), error)

    def locators(self) -> tuple[str, ...]:
        """The locators at which the node is reached."""
        return tuple(text for one in self._listeners.values() for text in one.locators())

    def close(self) -> None:
        """Accept no more links."""
        for listener in self._listeners.values():
            listener.close()
        for link in self._early:
            link.close()
