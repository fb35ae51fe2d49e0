"""HTTP requests as bytes and what is answered: one request a connection, GET and HEAD only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from zenlake.http.names import host_name

__all__ = ["HttpPage", "HttpRequest", "Refusal", "answer", "parse", "reply"]

MOST: Final = 8192
"""Bytes of a request; a longer one is refused."""

WORDS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The method, the path without its query, and the host that was asked for."""

    method: str
    path: str
    host: str


@dataclass(frozen=True, slots=True)
class HttpPage:
    """What a path gives: a code, what it is, and its text."""

    code: int
    kind: str
    text: str


class Refusal(Exception):
    """A request that is not answered; with the code and the reason."""

    def __init__(self, code: int, why: str) -> None:
        """`why`: in words, for the client."""
        super().__init__(why)
        self.code = code


def parse(data: bytes) -> HttpRequest | None:
    """A request, or None while its head is not complete. Raises `Refusal`."""
    head, separator, _ = data.partition(b"\r\n\r\n")
    if not separator:
        if len(data) >= MOST:
            raise Refusal(431, f"a request has at most {MOST} bytes")
        return None
    try:
        lines = head.decode("ascii").split("\r\n")
        method, target, version = lines[0].split(" ")
    except ValueError:
        raise Refusal(400, "that is no request") from None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise Refusal(400, "that is no request of HTTP/1")
    hosts = []
    for one in lines[1:]:
        name, colon, value = one.partition(":")
        if not colon or name != name.strip():
            raise Refusal(400, "a header has no name")
        if name.lower() == "host":
            hosts.append(value.strip().lower())
    if len(hosts) != 1:
        raise Refusal(400, "a request names one host")
    return HttpRequest(method, target.partition("?")[0], hosts[0])


def answer(
    request: HttpRequest, pages: Mapping[str, Callable[[], HttpPage]], hosts: Collection[str]
) -> HttpPage:
    """The page that a request gets; `hosts`: under which names this service is known.

    A name that others gave to this address is refused, so that a web page in a browser cannot
    read what is here by letting its own name point to it.
    """
    if host_name(request.host) not in hosts:
        return HttpPage(403, TEXT, f"this service is not called '{request.host[:100]}'\n")
    if request.method not in ("GET", "HEAD"):
        return HttpPage(405, TEXT, "only GET and HEAD\n")
    page = pages.get(request.path)
    if page is None:
        return HttpPage(404, TEXT, f"there is {' '.join(pages)}\n")
    return page()


def reply(page: HttpPage, *, body: bool = True) -> bytes:
    """The bytes of an answer; without its body for HEAD."""
    text = page.text.encode()
    head = [
        f"HTTP/1.1 {page.code} {WORDS.get(page.code, 'Error')}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(text)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if page.code == 405:
        head.append("Allow: GET, HEAD")
    return "\r\n".join([*head, "", ""]).encode("ascii") + (text if body else b"")
