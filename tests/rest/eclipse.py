"""What Eclipse's REST plugin answers: requests, and its answers as they were recorded.

    python -m tests.rest.eclipse 127.0.0.1:8000 > tests/golden/rest-1x.json

records them anew, from a `zenohd` with the plugins `rest` and `storage_manager` and a storage in
memory of `demo/**`. Zenoh ids and timestamps are written as ZID and TIMESTAMP.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "rest-1x.json"
TEXT = {"content-type": "text/plain"}
JSON = {"content-type": "application/json"}

Request = tuple[str, str, dict[str, str], bytes]

REQUESTS: list[Request] = [
    ("GET", "/demo/none", {}, b""),
    ("GET", "/demo/none?_raw", {}, b""),
    ("GET", "/demo/none", {"accept": "text/html"}, b""),
    ("PUT", "/demo/text", TEXT, b"Hello World!"),
    ("GET", "/demo/text", {}, b""),
    ("GET", "/demo/text", {"accept": "*/*"}, b""),
    ("GET", "/demo/text", {"accept": "application/json"}, b""),
    ("GET", "/demo/text", {"accept": "application/json, text/html"}, b""),
    ("GET", "/demo/text", {"accept": "text/html"}, b""),
    ("GET", "/demo/text", {"accept": "text/html, application/json"}, b""),
    ("GET", "/demo/text", {"accept": "image/png"}, b""),
    ("GET", "/demo/text?_raw", {}, b""),
    ("GET", "/demo/text?_raw=true", {}, b""),
    ("GET", "/demo/text?a=1;_raw", {}, b""),
    ("POST", "/demo/text", TEXT, b"a body"),
    ("POST", "/demo/text", {}, b""),
    ("HEAD", "/demo/text", {}, b""),
    ("PUT", "/demo/json", JSON, b'{"a": [1, 2.50, null]}'),
    ("GET", "/demo/json", {}, b""),
    ("GET", "/demo/json?_raw", {}, b""),
    ("PUT", "/demo/broken", JSON, b"{nope"),
    ("GET", "/demo/broken", {}, b""),
    ("GET", "/demo/broken?_raw", {}, b""),
    ("PUT", "/demo/charset", {"content-type": "text/plain; charset=utf-8"}, "é".encode()),
    ("GET", "/demo/charset", {}, b""),
    ("GET", "/demo/charset?_raw", {}, b""),
    ("PUT", "/demo/bytes", {"content-type": "application/octet-stream"}, b"\x00\xff\xfe"),
    ("GET", "/demo/bytes", {}, b""),
    ("GET", "/demo/bytes?_raw", {}, b""),
    ("GET", "/demo/bytes", {"accept": "text/html"}, b""),
    ("PUT", "/demo/form", {"content-type": "application/x-www-form-urlencoded"}, b"a=1&b=2"),
    ("GET", "/demo/form", {}, b""),
    ("PUT", "/demo/untyped", {}, b"bytes"),
    ("GET", "/demo/untyped", {}, b""),
    ("GET", "/demo/untyped?_raw", {}, b""),
    ("PUT", "/demo/odd", {"content-type": "my/own"}, b"bytes"),
    ("GET", "/demo/odd", {}, b""),
    ("GET", "/demo/odd?_raw", {}, b""),
    ("PUT", "/demo/number", TEXT, b"42"),
    ("GET", "/demo/number", {}, b""),
    ("PUT", "/demo/empty", JSON, b""),
    ("GET", "/demo/empty", {}, b""),
    ("PUT", "/demo/bad-text", TEXT, b"\xff\xfe"),
    ("GET", "/demo/bad-text", {}, b""),
    ("PUT", "/demo/html", {"content-type": "text/html"}, b"<b>bold</b>"),
    ("GET", "/demo/html", {}, b""),
    ("GET", "/demo/html", {"accept": "text/html"}, b""),
    ("GET", "/demo/html?_raw", {}, b""),
    ("PUT", "/demo/sp%20ace/%C3%A9", TEXT, b"x"),
    ("GET", "/demo/sp%20ace/%C3%A9", {}, b""),
    ("PATCH", "/demo/text", TEXT, b"patched"),
    ("GET", "/demo/text", {}, b""),
    ("GET", "/demo/te*t", {}, b""),
    ("GET", "/demo/te$*t", {}, b""),
    ("GET", "/demo/sp%20ace/**", {}, b""),
    ("GET", "/demo/text?_time=[now(-1h)..]", {}, b""),
    ("GET", "/demo/text?_time=nonsense", {}, b""),
    ("PUT", "/demo/te*", TEXT, b"all"),
    ("DELETE", "/demo/text", {}, b""),
    ("GET", "/demo/text", {}, b""),
    ("DELETE", "/demo/never", {}, b""),
    ("GET", "/demo/text/", {}, b""),
    ("GET", "/demo//text", {}, b""),
    ("PUT", "/demo//text", TEXT, b"x"),
    ("DELETE", "/demo//text", {}, b""),
    ("GET", "/demo/%ff", {}, b""),
    ("GET", "/demo/a%23b", {}, b""),
    ("GET", "/demo/a%3Fb", {}, b""),
    ("OPTIONS", "/demo/text", {}, b""),
    (
        "OPTIONS",
        "/demo/text",
        {"origin": "http://127.0.0.1", "access-control-request-method": "PUT"},
        b"",
    ),
    ("TRACE", "/demo/text", {}, b""),
    ("GET", "/@/*/router", {}, b""),
    ("GET", "/@/local/router", {}, b""),
    ("GET", "/@/local/router/status/plugins/rest/**", {}, b""),
    ("GET", "/@/local/router/config/**", {}, b""),
]
EVENTS: list[Request] = [
    ("PUT", "/demo/event", TEXT, b"one\ntwo"),
    ("PUT", "/demo/event", JSON, b'{"n": 1}'),
    ("DELETE", "/demo/event", {}, b""),
]


def answer(place: str, request: Request) -> dict[str, Any]:
    """What a server answers to a request."""
    method, path, headers, body = request
    host, _, port = place.rpartition(":")
    link = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        link.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            link.putheader(name, value)
        if body or method in ("PUT", "PATCH", "POST"):
            link.putheader("content-length", str(len(body)))
        link.endheaders(body or None)
        got = link.getresponse()
        content = got.read()
        kind = got.getheader("content-type")
        origin = got.getheader("access-control-allow-origin")
        return {"status": got.status, "type": kind, "origin": origin, "body": shown(content)}
    finally:
        link.close()


def shown(content: bytes) -> str:
    """Bytes as a text of JSON, without what differs from run to run."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(content).decode()
    text = re.sub(r"[0-9]{15,20}/[0-9a-f]{16,32}", "TIMESTAMP", text)
    return re.sub(r"\b[0-9a-f]{28,32}\b", "ZID", text)


def events(place: str, pause: float = 0.0) -> list[str]:
    """The lines of a stream of events while something is put and deleted, after a pause.

    Eclipse's plugin needs one: it answers before it has subscribed.
    """
    host, _, port = place.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(
            b"GET /demo/event HTTP/1.1\r\nHost: " + place.encode() + b"\r\n"
            b"Accept: text/event-stream\r\n\r\n"
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += link.recv(1 << 16)
        time.sleep(pause)
        for one in EVENTS:
            answer(place, one)
        heard = head.partition(b"\r\n\r\n")[2]
        while heard.count(b"data:") < len(EVENTS) or not heard.endswith(b"\n\r\n"):
            heard += link.recv(1 << 16)
    lines = [line for line in heard.decode().splitlines() if not re.fullmatch("[0-9a-fA-F]+", line)]
    kind = next(line for line in head.decode().splitlines() if line.lower().startswith("content-t"))
    return [kind.lower(), *(shown(line.encode()) for line in lines if line and line[0] != ":")]


def recorded(place: str) -> dict[str, Any]:
    """All requests with their answers."""
    found = []
    for request in REQUESTS:
        method, path, headers, body = request
        if method == "GET":
            time.sleep(0.15)  # a storage stores when it gets to it
        told = {"method": method, "path": path, "headers": headers, "body": shown(body)}
        found.append({"request": told, "answer": answer(place, request)})
    return {"requests": found, "events": events(place, 0.5)}


if __name__ == "__main__":
    print(json.dumps(recorded(sys.argv[1]), indent=1, ensure_ascii=False))
