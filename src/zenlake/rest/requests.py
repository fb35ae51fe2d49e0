"""What every HTTP request goes through before it reaches keys or pages, and what is counted.

WebSockets go through the same: they are requests that ask for more.

Host, origin, credentials, and how many there are at a time are checked in this order. Credentials
are never logged, and a token in a URL is not looked at.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from zenlake.config.model_web import Rest as RestSettings
from zenlake.errors import LocalError, ZError
from zenlake.http.heads import heads_of
from zenlake.http.names import may_connect, origin_allowed
from zenlake.http.users import Denied, User, Users
from zenlake.remote.sockets import POLICY, RemoteSockets, credentials_of

__all__ = ["SOCKET", "Door", "RequestRefused"]

log = logging.getLogger("zenlake.rest")

SOCKET: Final = "/@ws"
"""Where the web page opens its WebSocket."""
METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # What was published is shown, never run.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
)
"""The headers of every answer that does not say otherwise."""


_REASONS: Final = {401: "unknown", 403: "access", 429: "guessing"}
_ADVICE: Final = {
    401: {"www-authenticate": 'Bearer, Basic realm="zenlake", charset="UTF-8"'},
    429: {"retry-after": "1"},
}


class RequestRefused(Exception):
    """A request that gets a code and a reason."""

    def __init__(self, code: int, why: str) -> None:
        """`why`: for the one who asked."""
        super().__init__(why)
        self.code = code


Handler = Callable[[Request, User], Awaitable[Response]]


class Door:
    """The ASGI application: names, users and limits, then what the request is for."""

    def __init__(
        self,
        settings: RestSettings,
        users: Users,
        hosts: frozenset[str],
        pages: Callable[[Request], Handler | None],
        keys: Handler,
        sockets: RemoteSockets,
    ) -> None:
        """`pages` gives the handler of a page of the node itself; all else is `keys`."""
        self.settings = settings
        self.users = users
        self.hosts = hosts
        self._pages = pages
        self._keys = keys
        self._sockets = sockets
        self._running = 0
        #: How many requests were answered, by method and code.
        self.answered: Counter[tuple[str, int]] = Counter()
        #: How many were refused, by reason.
        self.refused: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        request = Request(scope, receive)
        response = await self._answer(request)
        said = {name for name, _ in response.raw_headers}
        response.raw_headers += [one for one in SECURITY if one[0] not in said]
        self._allow_origin(request, response)
        self.answered[request.method, response.status_code] += 1
        try:
            await response(scope, receive, send)
        except (OSError, RuntimeError) as error:
            # Who asked has gone meanwhile: the server says so by whatever its loop raises.
            self.refused["gone"] += 1
            log.debug("%s %s: not answered: %s", request.method, request.url.path[:200], error)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket: the web page's way to the bus."""
        await receive()  # websocket.connect
        asked = HTTPConnection(scope)
        try:
            if scope["path"] != SOCKET or not self.settings.page:
                raise RequestRefused(404, f"the WebSocket of the web page is at {SOCKET}")
            self._check_names(asked)
            offered = scope.get("subprotocols", [])
            shown, protocol = credentials_of(heads_of(scope).get("authorization", ""), offered)
            user = self.users.of(shown, _address(asked))
        except (Denied, RequestRefused) as refused:
            if isinstance(refused, Denied):
                self.refused[_REASONS.get(refused.code, "access")] += 1
            await send({"type": "websocket.close", "code": POLICY, "reason": str(refused)})
            return
        await self._sockets.serve(user, protocol, scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            self._check_names(request)
            self._check_site(request)
            if request.method == "OPTIONS":
                return _options(request)
            page = self._pages(request)
            if page is not None and getattr(page, "public", False):
                # Those who look whether it is well are answered however many others ask.
                return await page(request, User(None, None))
            shown = heads_of(request.scope).get("authorization", "")
            user = self.users.of(shown, _address(request))
            if self._running >= self.settings.max_requests:
                self.refused["busy"] += 1
                raise RequestRefused(503, f"{self._running} requests are being answered; try again")
            self._running += 1
            try:
                return await (page or self._keys)(request, user)
            finally:
                self._running -= 1
        except Denied as denied:
            self.refused[_REASONS.get(denied.code, "access")] += 1
            if denied.code == 403 and self.users.watch is not None:
                self.users.watch.denied(_address(request), denied)
            return _text(denied.code, str(denied), _ADVICE.get(denied.code))
        except RequestRefused as refused:
            retry = {"retry-after": "1"} if refused.code == 503 else None
            return _text(refused.code, str(refused), retry)
        except LocalError as error:
            return _text(400, str(error))
        except ZError as error:
            return _text(500, str(error))
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            return _text(500, "that went wrong in zenlake itself; its log has the reason")

    def _check_names(self, asked: HTTPConnection) -> None:
        heads = heads_of(asked.scope)
        origin = heads.get("origin")
        host = heads.get("host", "")
        why = may_connect(origin, host, self.hosts, self.settings.cors_origins)
        if why:
            self.refused["name"] += 1
            raise RequestRefused(403, why)

    def _check_site(self, request: Request) -> None:
        """Refuse images, scripts and forms of other pages; a link that is followed is no such."""
        heads = heads_of(request.scope)
        if heads.get("sec-fetch-site") != "cross-site" or "origin" in heads:
            return
        if request.method != "GET" or heads.get("sec-fetch-mode") != "navigate":
            self.refused["name"] += 1
            raise RequestRefused(403, "a page of another site may not ask")

    def _allow_origin(self, request: Request, response: Response) -> None:
        origin = heads_of(request.scope).get("origin")
        allowed = self.settings.cors_origins
        if origin is None or not allowed:
            return
        response.headers.add_vary_header("Origin")
        if not origin_allowed(origin, "", allowed):
            return
        response.headers["access-control-allow-origin"] = "*" if "*" in allowed else origin
        response.headers["access-control-expose-headers"] = "zenlake-truncated, retry-after"


def _options(request: Request) -> Response:
    """The answer to a browser that asks whether it may ask; who may is in its headers."""
    headers = {"allow": f"OPTIONS, {METHODS}"}
    if "access-control-request-method" in heads_of(request.scope):
        headers["access-control-allow-methods"] = METHODS
        headers["access-control-allow-headers"] = "authorization, content-type, last-event-id"
        headers["access-control-max-age"] = "600"
    return Response(headers=headers)


def _address(asked: HTTPConnection) -> str:
    client = asked.scope.get("client")
    return "" if client is None else str(client[0])


def _text(code: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", code, headers)
