"""The head of an HTTP/1 request, read strictly.

Refused is what two programs could read in two ways: two Host headers, a Content-Length that is
written twice or stands beside Transfer-Encoding, line ends without CR, folded lines, spaces before
a colon, and control characters.
A proxy before this server may read such a request as another one (request smuggling).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from zenlake.http.limits import HttpLimits

__all__ = [
    "CHUNKED",
    "METHODS",
    "BadRequest",
    "RequestHead",
    "check_characters",
    "check_field",
    "read_head",
]

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
"""The methods that a head may have: counters are named after them, so there are no others."""

CHUNKED: Final = -1
"""The length of a body that comes in chunks."""
LONGEST_NUMBER: Final = 18
"""Digits of a Content-Length."""

_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_METHOD: Final = re.compile(rb"[A-Z][A-Z-]{0,31}")
_TARGET: Final = re.compile(rb'[!$-;=?-~"<>]+')
#: The headers of a head, all at once; a line that is no header is left out, and missed by number.
_FIELDS: Final = re.compile(
    rb"^([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([^\r\n]*+)\r\n", re.MULTILINE
)
_METHODS: Final = frozenset(method.encode() for method in METHODS)
#: A host and its port, without a user.
_AUTHORITY: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
MOST_PORT: Final = 65535
_VERSIONS: Final = {b"HTTP/1.1": "1.1", b"HTTP/1.0": "1.0"}
#: Control characters, a CR without LF, an LF without CR.
_ILLEGAL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n")
_CONTROLS: Final = bytes(byte for byte in (*range(32), 127) if byte != 9)
_SINGLE: Final = frozenset(
    (
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"content-type",
        b"authorization",
        b"origin",
        b"expect",
        b"upgrade",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"sec-fetch-dest",
    )
)
"""Headers that a request has at most once: they decide what it is and whether it may ask."""


class BadRequest(Exception):
    """Bytes that are no request that is answered; with the code, and the reason for the client."""

    def __init__(self, code: int, why: str) -> None:
        """`code`: the status code of the answer."""
        super().__init__(why)
        self.code = code

    @property
    def reason(self) -> str:
        """The reason, as counters of refused connections name it."""
        return _REASONS.get(self.code, "malformed")


_REASONS: Final = {408: "slow", 414: "head", 431: "head", 501: "method"}


@dataclass(slots=True)
class RequestHead:
    """The head of a request; nobody changes it."""

    #: One of `METHODS`.
    method: bytes
    #: Path and query, with nothing before them.
    target: bytes
    #: "1.0" or "1.1".
    version: str
    #: Names in small letters.
    headers: list[tuple[bytes, bytes]]
    #: Bytes of the body, or `CHUNKED`.
    length: int
    keep_alive: bool
    wants_websocket: bool
    expects_continue: bool
    host: bytes


def check_field(line: bytes) -> tuple[bytes, bytes]:
    """Return name and value of a header; raises `BadRequest`."""
    name, colon, value = line.partition(b":")
    if not colon or _TOKEN.fullmatch(name) is None:
        raise BadRequest(400, f"{_shown(line)} is no header: write NAME: VALUE in one line")
    return name.lower(), value.strip(b" \t")


def read_head(data: bytes, limits: HttpLimits) -> RequestHead:
    """Read a head that has come whole, with the CRLF of its last line. Raises `BadRequest`."""
    end = data.index(b"\r\n")
    first = data[:end]
    words = first.split(b" ")
    lines = data.count(b"\r\n") - 1
    if len(words) == 3 and len(words[1]) > limits.target_bytes:
        raise BadRequest(
            414,
            f"path and query have {len(words[1])} bytes; at most {limits.target_bytes} may come",
        )
    if lines > limits.headers:
        raise BadRequest(431, f"the request has {lines} headers; at most {limits.headers} may come")
    check_characters(data)
    if len(words) != 3 or _METHOD.fullmatch(words[0]) is None:
        raise BadRequest(400, f"{_shown(first)} is no request line: write GET /path HTTP/1.1")
    method, url, written = words
    version = _VERSIONS.get(written)
    if version is None:
        raise BadRequest(400, f"{_shown(written)} is not spoken here: write HTTP/1.1")
    if method not in _METHODS:
        raise BadRequest(
            501, f"{_shown(method)} is no method here: write one of {', '.join(METHODS)}"
        )
    if _TARGET.fullmatch(url) is None:
        raise BadRequest(400, "the path has letters that must be URL-encoded")
    found: list[tuple[bytes, bytes]] = _FIELDS.findall(data, end + 2)
    if len(found) != lines:
        for line in data[end + 2 : -2].split(b"\r\n"):
            check_field(line)  # one of them is no header, and this says which
        raise BadRequest(400, "the head of the request has a line that is no header")
    single: dict[bytes, bytes] = {}
    connection: list[bytes] = []
    headers: list[tuple[bytes, bytes]] = []
    for written_name, padded in found:
        name, value = written_name.lower(), padded.rstrip(b" \t")
        headers.append((name, value))
        if name in _SINGLE:
            if name in single:
                raise BadRequest(400, f"the header {name.decode()} comes twice; write it once")
            single[name] = value
        elif name == b"connection":
            connection += [word.strip() for word in value.lower().split(b",")]
    host, target = _host_and_target(single, url, version)
    expect = single.get(b"expect")
    if expect is not None and expect.lower() != b"100-continue":
        raise BadRequest(417, f"{_shown(expect)} cannot be expected; only 100-continue can")
    length = _length(single, version)
    websocket = (
        single.get(b"upgrade", b"").lower() == b"websocket"
        and b"upgrade" in connection
        and version == "1.1"
    )
    if websocket and (length or method != b"GET"):
        raise BadRequest(400, "a WebSocket begins with a GET without a body")
    return RequestHead(
        method=method,
        target=target,
        version=version,
        headers=headers,
        length=length,
        keep_alive=version == "1.1" and b"close" not in connection,
        wants_websocket=websocket,
        expects_continue=expect is not None and version == "1.1",
        host=host,
    )


def check_characters(data: bytes) -> None:
    """Raise `BadRequest` for characters that no head has, and for lines that end without CRLF."""
    # Counting is much faster than searching: all but line ends are left when none of them is there.
    ends = data.count(b"\r\n")
    if len(data) - len(data.translate(None, _CONTROLS)) == 2 * ends:
        return
    found = _ILLEGAL.search(data)
    if found is not None:
        what = (
            "a line end that is not CRLF" if found[0] in (b"\r", b"\n") else "a control character"
        )
        raise BadRequest(400, f"the head of the request has {what}; this is HTTP/1.1")


def _host_and_target(single: dict[bytes, bytes], url: bytes, version: str) -> tuple[bytes, bytes]:
    """Return which host is asked, and for which path and query."""
    host = single.get(b"host")
    if host is None and version == "1.1":
        raise BadRequest(400, "the request names no host: write one header Host")
    if url.startswith(b"/"):
        return host or b"", url
    scheme, separator, rest = url.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise BadRequest(400, f"{_shown(url)} is no path: write /path")
    matched = _AUTHORITY.match(rest)
    authority = b"" if matched is None else matched[0]
    target = rest[len(authority) :]
    if (
        matched is None
        or (target and not target.startswith((b"/", b"?")))
        or int(matched[1] or b"0") > MOST_PORT
    ):
        raise BadRequest(400, f"{_shown(url)} names no host, or no port of it: write /path")
    if authority != host:
        raise BadRequest(400, "the request line names another host than Host: write /path")
    return authority, target if target.startswith(b"/") else b"/" + target


def _length(single: dict[bytes, bytes], version: str) -> int:
    coding = single.get(b"transfer-encoding")
    length = single.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise BadRequest(400, "Content-Length beside Transfer-Encoding: write one of them")
        if coding.lower() != b"chunked" or version != "1.1":
            raise BadRequest(400, f"Transfer-Encoding {_shown(coding)}: only chunked is read")
        return CHUNKED
    if length is None:
        return 0
    # `isdigit` of bytes knows ASCII alone, and neither signs nor separators.
    if not length.isdigit() or len(length) > LONGEST_NUMBER:
        raise BadRequest(400, f"Content-Length {_shown(length)} is no number of bytes")
    return int(length)


def _shown(data: bytes) -> str:
    return repr(data[:60].decode("latin-1"))
