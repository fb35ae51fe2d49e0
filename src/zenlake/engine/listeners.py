"""Where a node listens: opened at the start, and changed while it runs."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import AbstractEventLoop

from zenlake.config.model import Settings
from zenlake.engine.multicast import is_group
from zenlake.errors import LinkError
from zenlake.links.link import LinkListener, OnLink
from zenlake.links.options import shown
from zenlake.links.registry import listen
from zenlake.values.locator import EndPoint

log = logging.getLogger("zenlake.engine")


def _places(settings: Settings) -> list[EndPoint]:
    """The endpoints that somebody may come to: a multicast group is joined instead."""
    return [endpoint for endpoint in settings.listen.endpoints if not is_group(endpoint)]


class Listeners:
    """The endpoints that a node listens on; lives on the loop."""

    def __init__(self, on_link: OnLink) -> None:
        """Nowhere yet; `on_link` is given whoever comes."""
        self._on_link = on_link
        self._places: dict[str, LinkListener] = {}

    async def open(self, loop: AbstractEventLoop, settings: Settings) -> None:
        """Listen where the configuration says; raises if it must be and cannot."""
        for endpoint in _places(settings):
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
        pause = listening.retry.period_init_ms / 1000
        while True:
            try:
                place = await listen(endpoint, loop, self._on_link, settings.transport.link)
            except LinkError:
                if patience >= 0 and time.monotonic() + pause > deadline:
                    raise
            else:
                self._places[str(endpoint)] = place
                return
            await asyncio.sleep(pause)
            pause = min(
                pause * listening.retry.period_increase_factor,
                listening.retry.period_max_ms / 1000,
            )

    async def change(self, loop: AbstractEventLoop, settings: Settings) -> None:
        """Listen where a new configuration says; those who came the old way stay.

        What cannot be listened on is told, and left out.
        """
        wanted = {str(endpoint): endpoint for endpoint in _places(settings)}
        for text in [text for text in self._places if text not in wanted]:
            self._places.pop(text).close()
        for text, endpoint in wanted.items():
            if text not in self._places:
                try:
                    await self.add(endpoint, loop, settings)
                except LinkError as error:
                    log.warning("not listening on %s: %s", shown(endpoint), error)

    def locators(self) -> tuple[str, ...]:
        """Where others reach the node."""
        return tuple(text for place in self._places.values() for text in place.locators())

    def close(self) -> None:
        """Take nobody new."""
        for place in self._places.values():
            place.close()
