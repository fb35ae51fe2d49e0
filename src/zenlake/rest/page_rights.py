"""Which right each page of a node asks for: the right to read the keys that it shows.

A page that is not named here is not served. Public is what tells nobody anything about the node:
whether it is well, the description of HTTP, and the files of the web page, which asks with the
rights of its user.
"""

from __future__ import annotations

from typing import Final

from zenlake.http.users import User

__all__ = ["ASSETS", "PAGES", "PUBLIC", "SOCKET", "demand_page"]

PUBLIC: Final = "public"
"""For everybody, also without credentials."""
USERS: Final = "users"
"""For every user: it shows no keys."""
SOCKET: Final = "/@ws"
"""Where the web page opens its WebSocket."""
ASSETS: Final = "/@web/"
"""Below it are the files of the web page."""

PAGES: Final = {
    "/": PUBLIC,
    ASSETS: PUBLIC,
    "/health": PUBLIC,
    "/ready": PUBLIC,
    "/openapi.json": PUBLIC,
    # Not a page but a hint; each message of the WebSocket is judged by itself.
    SOCKET: USERS,
    "/metrics": "metrics",
    # Of what services show below that key, each has what they may read.
    "/status": "",
}
"""The key of each page, below `@/ZID/WHATAMI` of the node; or for whom it is without one."""


def demand_page(page: str, user: User, root: str) -> None:
    """Raise `Denied` for a user who may not ask for the key of a page, or not read it.

    Args:
        page: Its path, one of `PAGES`.
        user: Who asks.
        root: The admin space of the node: `@/ZID/WHATAMI`.
    """
    below = PAGES[page]
    if below not in (PUBLIC, USERS):
        user.demand_read(f"{root}/{below}" if below else root)
