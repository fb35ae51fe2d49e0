"""A listener of a node for the other parts of the service that it belongs to.

    with listening_for_parts(runtime, "/srv/zenlake/run/router.sock", users): ...

The node's own listeners, users, keys and roles are for neighbours from outside, as its
configuration says. Parts of one service know each other by secrets of their own: only who shows a
user of `users` gets in here, and none of these users gets in anywhere else. The place is told to
nobody: it is not among the locators of the node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zenlake.links.unix import PROTOCOL, listen
from zenlake.transport.auth import Credentials
from zenlake.values.locator import EndPoint

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime
    from zenlake.links.link import LinkListener, UnicastLink

__all__ = ["listening_for_parts"]


@contextmanager
def listening_for_parts(runtime: Runtime, path: str, users: Mapping[str, str]) -> Iterator[None]:
    """Let parts of the same service in at a socket of this path, by name and secret."""
    known = Credentials(users={name.encode(): secret.encode() for name, secret in users.items()})
    loop = runtime.loop

    def accepted(link: UnicastLink) -> None:
        runtime.accept_part(link, known)

    async def open_listener() -> LinkListener:
        listener = await listen(EndPoint.parse(f"{PROTOCOL}/{path}"), loop.loop, accepted)
        os.chmod(path, 0o600)
        return listener

    async def close_listener() -> None:
        listener.close()

    listener = loop.run(open_listener())
    try:
        yield
    finally:
        loop.run(close_listener())
