"""Requests for the status of a service and what is answered: one a connection, GET and HEAD.

How a request is read, and what is refused of it, is the same for every HTTP port
(`zenlake.http.request_parser`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from zenlake.http.limits import HttpLimits
from zenlake.http.names import may_connect, site_refusal
from zenlake.http.request_head import RequestHead

__all__ = ["LIMITS", "HttpPage", "answer", "reply"]

HEAD_BYTES: Final = 8192
"""Bytes of a request for a page; a longer one is refused."""
TARGET_BYTES: Final = 2048
"""Bytes of its path and query."""
CONNECTIONS: Final = 16
"""Requests that are answered at a time; others are told to come later."""
REQUEST_SECONDS: Final = 5.0
"""Seconds from a connection to the last byte of its answer."""

LIMITS: Final = HttpLimits(
    head_bytes=HEAD_BYTES,
    target_bytes=TARGET_BYTES,
    head_seconds=REQUEST_SECONDS,
    connections=CONNECTIONS,
)

TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpPage:
    """What a path gives: a code, what it is, and its text."""

    code: int
    kind: str
    text: str


def answer(
    request: RequestHead, pages: Mapping[str, Callable[[], HttpPage]], hosts: Collection[str]
) -> HttpPage:
    """The page that a request gets; `hosts`: under which names this service is known.

    A name that others gave to this address is refused, so that a web page in a browser cannot
    read what is here by letting its own name point to it.
    """
    heads = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
    method, host = request.method.decode("ascii"), request.host.decode("latin-1")
    path = request.target.decode("ascii").partition("?")[0]
    page = pages.get(path)
    why = may_connect(heads.get("origin"), host, hosts, ()) or site_refusal(
        method, heads, is_page=page is not None
    )
    if why:
        # There is nothing to configure here: what is advised concerns the ports of a node.
        return HttpPage(403, TEXT, f"{why.partition('; ')[0]}\n")
    if method not in ("GET", "HEAD"):
        return HttpPage(405, TEXT, "only GET and HEAD\n")
    if page is None:
        return HttpPage(404, TEXT, f"there is {' '.join(pages)}\n")
    return page()


def reply(page: HttpPage, *, body: bool = True) -> bytes:
    """The bytes of an answer; without its body for HEAD."""
    text = page.text.encode()
    head = [
        f"HTTP/1.1 {page.code} {HTTPStatus(page.code).phrase}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(text)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; sandbox",
        "Connection: close",
    ]
    if page.code == 405:
        head.append("Allow: GET, HEAD")
    return "\r\n".join([*head, "", ""]).encode("ascii") + (text if body else b"")
