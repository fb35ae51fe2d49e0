"""What every HTTP request goes through before it reaches keys or pages, and what is counted.

WebSockets go through the same: they are requests that ask for more.

Host, origin, credentials, and how many there are at a time are checked in this order. Credentials
are never logged, and a token in a URL is not looked at.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from zenlake.config.model_web import Rest as RestSettings
from zenlake.errors import LocalError, ZError
from zenlake.http.connections import Seat, seat_of
from zenlake.http.faults import FAILED
from zenlake.http.few_lines import bounded_log
from zenlake.http.heads import heads_of
from zenlake.http.limits import SMALL_ANSWER_BYTES
from zenlake.http.names import may_connect, origin_allowed, site_refusal
from zenlake.http.shares import Shares, holder_of
from zenlake.http.users import Denied, User, Users
from zenlake.remote.sockets import POLICY, RemoteSockets, credentials_of
from zenlake.rest.page_rights import SOCKET
from zenlake.routing.policy.policy import Policy

__all__ = ["Door", "Places", "RequestRefused", "address_of", "no_room"]

log = bounded_log("zenlake.rest.requests")

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


STRANGER: Final = User(None, Policy)
"""Who asks for a page that all may see."""
_REASONS: Final = {401: "unknown", 403: "access", 429: "guessing"}
_ADVICE: Final = {
    401: {"www-authenticate": 'Bearer, Basic realm="zenlake", charset="UTF-8"'},
    429: {"retry-after": "1"},
}


class RequestRefused(Exception):
    """A request that gets a code and a sentence."""

    def __init__(self, code: int, why: str, reason: str = "") -> None:
        """`why`: for the one who asked; `reason`: as it is counted, if it is."""
        super().__init__(why)
        self.code = code
        self.reason = reason


def no_room(answers: Shares, size: int) -> RequestRefused:
    """Return the refusal of an answer of so many bytes, for which there is no room."""
    if size > answers.most_of_one:
        return RequestRefused(
            413,
            f"the answer has {size} bytes or more, and one address may have {answers.most_of_one} "
            "(plugins/rest/max_unsent): ask for less",
            "memory",
        )
    return RequestRefused(
        503,
        f"answers that wait for clients hold {answers.taken} bytes of {answers.most} "
        "(plugins/rest/max_unsent): take what you asked for, or try again",
        "memory",
    )


Handler = Callable[[Request, User], Awaitable[Response]]


class Places:
    """The requests that are being answered: how many at a time, of all and of one address."""

    def __init__(self, most: int) -> None:
        """At most `most`."""
        self._shares = Shares(most)

    @property
    def taken(self) -> int:
        """How many requests are being answered."""
        return self._shares.taken

    @contextlib.contextmanager
    def place(self, request: Request) -> Iterator[None]:
        """Hold a place while a request is answered; raises `RequestRefused` where none is free."""
        shares, holder = self._shares, holder_of(address_of(request))
        why = shares.refusal(holder)
        if why:
            whose = "" if why == "all" else "of your address "
            number = shares.taken if why == "all" else shares.most_of_one
            raise RequestRefused(
                503,
                f"{number} requests {whose}are being answered; try again",
                "busy" if why == "all" else why,
            )
        shares.take(holder)
        try:
            yield
        finally:
            shares.give_back(holder)


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
        places: Places,
    ) -> None:
        """`pages` gives the handler of a page of the node itself; all else is `keys`.

        A key takes its place by itself, once the body of its request has come.
        """
        self.settings = settings
        self.users = users
        self.hosts = hosts
        self._pages = pages
        self._keys = keys
        self._sockets = sockets
        self.places = places
        #: How many requests were answered, by method (one of those that are served) and code.
        self.answered: Counter[tuple[str, int]] = Counter()
        #: How many were refused, by reason.
        self.refused: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        request = Request(scope, receive)
        response = self._with_room(seat_of(scope), await self._answer(request))
        said = {name for name, _ in response.raw_headers}
        response.raw_headers += [one for one in SECURITY if one[0] not in said]
        self._allow_origin(request, response)
        self.answered[request.method, response.status_code] += 1
        try:
            await response(scope, receive, send)
        except (OSError, RuntimeError) as error:
            # Who asked has gone meanwhile: the server says so by whatever its loop raises.
            self.refused["gone"] += 1
            log.debug("%s %.200s: not answered: %s", request.method, scope["path"], error)

    def _with_room(self, seat: Seat, response: Response) -> Response:
        """Hold the bytes of an answer until it is sent, or return a refusal if there is no room."""
        size = len(getattr(response, "body", b""))
        if size <= SMALL_ANSWER_BYTES:
            seat.making.force(0)
            return response
        if seat.making.hold(size):
            return response
        seat.making.force(0)
        return self._refusal(no_room(seat.answers, size))

    def _refusal(self, refused: RequestRefused) -> Response:
        if refused.reason:
            self.refused[refused.reason] += 1
        retry = {"retry-after": "1"} if refused.code == 503 else None
        return _text(refused.code, str(refused), retry)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket: the web page's way to the bus."""
        await receive()  # websocket.connect
        asked = HTTPConnection(scope)
        try:
            if scope["path"] != SOCKET or not self.settings.page:
                raise RequestRefused(404, f"the WebSocket of the web page is at {SOCKET}")
            self._check_names(asked)
            self._check_site("", asked, is_page=False)
            offered = scope.get("subprotocols", [])
            shown, protocol = credentials_of(heads_of(scope).get("authorization", ""), offered)
            user = self.users.of(shown, address_of(asked))
        except (Denied, RequestRefused) as refused:
            if isinstance(refused, Denied):
                self.refused[_REASONS.get(refused.code, "access")] += 1
            elif refused.reason:
                self.refused[refused.reason] += 1
            await send({"type": "websocket.close", "code": POLICY, "reason": str(refused)})
            return
        await self._sockets.serve(user, protocol, scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            self._check_names(request)
            page = self._pages(request)
            self._check_site(request.method, request, is_page=page is not None)
            if request.method == "OPTIONS":
                return _options(request)
            if page is not None and getattr(page, "public", False):
                # Those who look whether it is well are answered however many others ask.
                return await page(request, STRANGER)
            shown = heads_of(request.scope).get("authorization", "")
            user = self.users.of(shown, address_of(request))
            if page is None:
                return await self._keys(request, user)
            with self.places.place(request):
                return await page(request, user)
        except Denied as denied:
            self.refused[_REASONS.get(denied.code, "access")] += 1
            if denied.code == 403 and self.users.watch is not None:
                self.users.watch.denied(address_of(request), denied)
            return _text(denied.code, str(denied), _ADVICE.get(denied.code))
        except RequestRefused as refused:
            return self._refusal(refused)
        except LocalError as error:
            return _text(400, str(error))
        except ZError as error:
            return _text(500, str(error))
        except Exception:
            log.exception("%s %.200s", request.method, request.scope["path"])
            return _text(500, FAILED)

    def _check_names(self, asked: HTTPConnection) -> None:
        heads = heads_of(asked.scope)
        origin = heads.get("origin")
        host = heads.get("host", "")
        why = may_connect(origin, host, self.hosts, self.settings.cors_origins)
        if why:
            raise RequestRefused(403, why, "name")

    def _check_site(self, method: str, asked: HTTPConnection, *, is_page: bool) -> None:
        """Refuse images, frames, scripts and forms of other pages, and links of theirs to keys."""
        why = site_refusal(method, heads_of(asked.scope), is_page=is_page)
        if why:
            raise RequestRefused(403, why, "name")

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


def address_of(asked: HTTPConnection) -> str:
    """Return the address that a request or WebSocket came from."""
    client = asked.scope.get("client")
    return "" if client is None else str(client[0])


def _text(code: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", code, headers)
