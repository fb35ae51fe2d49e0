"""Which hosts and origins a request may name.

Any web page can let its own name point to 127.0.0.1 (DNS rebinding), or send requests
there from another origin. So a request must name a host that this node is known by; and one that
a browser sends for a page of another origin is refused, unless that origin is configured.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["ANY", "host_name", "may_connect", "origin_allowed"]

ANY = "*"


def host_name(host: str) -> str:
    """The name in a Host header, without its port, in small letters."""
    name = host.strip().lower()
    if name.endswith("]"):
        return name
    front, colon, port = name.rpartition(":")
    return front if colon and port.isdecimal() else name


def origin_allowed(origin: str, host: str, allowed: Collection[str]) -> bool:
    """Whether a page of `origin` may read what is answered under the name `host`."""
    if ANY in allowed or origin in allowed:
        return True
    scheme, separator, authority = origin.partition("://")
    return (
        bool(separator)
        and scheme in ("http", "https")
        and authority.lower() == host.strip().lower()
    )


def may_connect(
    origin: str | None, host: str, hosts: Collection[str], allowed: Collection[str]
) -> str:
    """Why a request is refused for its names; nothing if it is not."""
    if host_name(host) not in hosts:
        return f"this node is not called '{host[:100]}'; add the name to plugins/rest/hosts"
    if origin is not None and not origin_allowed(origin, host, allowed):
        return f"pages of '{origin[:100]}' may not ask; add it to plugins/rest/cors_origins"
    return ""
