"""Which hosts and origins a request may name.

Any web page can let its own name point to 127.0.0.1 (DNS rebinding), or send requests
there from another origin. So a request must name a host that this node is known by; and one that
a browser sends for a page of another origin is refused, unless that origin is configured.

A browser says so in `Origin`, or for a GET that cannot read its answer (an image, a frame) in
`Sec-Fetch-Site`. It sends the latter to `https` and to this machine alone; elsewhere only
`Referer` is left, which a page can suppress.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

__all__ = ["ANY", "host_name", "may_connect", "origin_allowed", "site_refusal"]

ANY = "*"
RUN_OR_EMBEDDED: Final = frozenset(
    ("script", "style", "worker", "sharedworker", "serviceworker", "object", "embed", "frame")
) | {"iframe", "audioworklet", "paintworklet", "manifest", "xslt"}
"""Values of `Sec-Fetch-Dest` with which browsers fetch something to run or to embed it."""


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


def site_refusal(method: str, heads: Mapping[str, str], *, is_page: bool) -> str:
    """Why a request of a page, for its site or its use, is refused; nothing if it is not.

    A link to a page may be followed. A link to a key may not: following it asks queryables, or SQL.
    The value of a key is run by no page, of ours neither: anybody may publish it.

    Args:
        method: The method of the request.
        heads: Its headers by name, in small letters.
        is_page: Whether it asks for a page of ours, and not for a key.
    """
    if not is_page and heads.get("sec-fetch-dest") in RUN_OR_EMBEDDED:
        return "the value of a key is not for a page to run or embed"
    if "origin" in heads:
        return ""
    site = heads.get("sec-fetch-site")
    if site is None:
        return "" if is_page and method == "GET" else _referred(heads)
    if site in ("none", "same-origin"):
        return ""
    followed = (
        method == "GET"
        and heads.get("sec-fetch-mode") == "navigate"
        and heads.get("sec-fetch-dest") == "document"
    )
    if not followed:
        return "a page of another site may not ask; add its origin to plugins/rest/cors_origins"
    return "" if is_page else "a link of another site leads to a key; open the address by hand"


def _referred(heads: Mapping[str, str]) -> str:
    """Why a request is refused that a browser sent for a page elsewhere, by the page it names."""
    scheme, separator, rest = heads.get("referer", "").partition("://")
    if not separator or scheme not in ("http", "https"):
        return ""
    if rest.partition("/")[0].lower() == heads.get("host", "").strip().lower():
        return ""
    return "a page of another site may not ask; add its origin to plugins/rest/cors_origins"
