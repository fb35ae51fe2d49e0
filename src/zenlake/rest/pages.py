"""Pages of the node itself: metrics, health, status, the description of HTTP, and the web page.

They answer GET and HEAD. A key of the same name is reached by POST, which queries too.
What right each asks for is a table of its own (`page_rights`).
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from zenlake.engine.services import running_plugins, service_metrics, service_troubles
from zenlake.http.users import User
from zenlake.node.inspection import view
from zenlake.node.inspection.metrics import MetricSelection, openmetrics
from zenlake.rest.openapi import document
from zenlake.rest.page_rights import ASSETS, PAGES, PUBLIC, SOCKET, demand_page

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime
    from zenlake.rest.requests import Handler

__all__ = ["OWN", "Pages"]

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OWN: Final = ("/metrics", "/health", "/ready", "/status", "/openapi.json")

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: "
    "data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class Page:
    """A page: what gives it, and what right it asks for."""

    __slots__ = ("_give", "_path", "_root", "public")

    def __init__(
        self, path: str, root: str, give: Callable[[Request, User], Awaitable[Response]]
    ) -> None:
        """`give` makes the answer; raises `KeyError` for a path whose right nobody has named."""
        self._path = path
        self._root = root
        self._give = give
        #: Whether those without credentials may see it.
        self.public = PAGES[path] == PUBLIC

    async def __call__(self, request: Request, user: User) -> Response:
        """The answer; raises `Denied` for who may not read the keys that it shows."""
        demand_page(self._path, user, self._root)
        return await self._give(request, user)


class Pages:
    """The pages of one node."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        page: bool,
        status_file: str | None = None,
    ) -> None:
        """`status_file`: what a supervisor writes of the service."""
        self._runtime = runtime
        self._status_file = status_file
        with runtime.locked() as node:
            root = view.root(node)
        static = self._static if page else _nothing
        gives: dict[str, Callable[[Request, User], Awaitable[Response]]] = {
            "/": static,
            ASSETS: static,
            "/metrics": self._metrics,
            "/status": self._status,
            "/health": self._health,
            "/ready": self._ready,
            "/openapi.json": self._openapi,
            SOCKET: _socket,
        }
        #: The pages by path; below `ASSETS` all is one page.
        self.pages = {path: Page(path, root, give) for path, give in gives.items()}

    def find(self, request: Request) -> Handler | None:
        """The page that a request asks for, if it is one."""
        if request.method not in ("GET", "HEAD"):
            return None
        path: str = request.scope["path"]
        return self.pages.get(ASSETS if path.startswith(ASSETS) else path)

    # -------------------------------------------------------------------------------- the node

    async def _metrics(self, request: Request, user: User) -> Response:
        from zenlake.admin.space import version

        runtime = self._runtime
        counted = service_metrics(runtime)
        with runtime.locked() as node:
            uptime = node.now - runtime.started
            text = openmetrics(node, MetricSelection(), version(), uptime, services=counted)
        return Response(text, headers={"content-type": OPENMETRICS})

    async def _health(self, request: Request, user: User) -> Response:
        troubles = ["closed"] if self._runtime.closed else service_troubles(self._runtime)
        # Why it is not well says something of the node: that is for those who may see its status.
        return PlainTextResponse("not well\n" if troubles else "ok\n", 503 if troubles else 200)

    async def _ready(self, request: Request, user: User) -> Response:
        waiting = self._runtime.opening or self._runtime.closed
        return PlainTextResponse("not yet\n" if waiting else "ready\n", 503 if waiting else 200)

    async def _status(self, request: Request, user: User) -> Response:
        from zenlake.admin.space import version

        runtime = self._runtime
        plugins = running_plugins(runtime)
        with runtime.locked() as node:
            root = view.root(node)
            summary = view.summary(node, version(), None, True, plugins)
            uptime = node.now - runtime.started
        services: dict[str, object] = {}
        for service in list(runtime.services.values()):
            for asked in ("**", f"{root}/**"):
                for key, content in service.documents(root, asked):
                    if user.may_read(key):
                        services[key.removeprefix(f"{root}/")] = content
        return JSONResponse(
            {
                "zid": str(summary["zid"]),
                "mode": root.rpartition("/")[2],
                "uptime": uptime,
                "node": summary,
                "services": services,
                "troubles": service_troubles(runtime),
                "service": self._service(),
            }
        )

    def _service(self) -> Any:
        """What a supervisor wrote last of the service that this node is a part of."""
        if self._status_file is None:
            return None
        try:
            return json.loads(Path(self._status_file).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    async def _openapi(self, request: Request, user: User) -> Response:
        return Response(json.dumps(document()), media_type="application/json")

    # -------------------------------------------------------------------------------- the page

    async def _static(self, request: Request, user: User) -> Response:
        path: str = request.scope["path"]
        name = "index.html" if path == "/" else path.removeprefix(ASSETS)
        parts = name.split("/")
        if not all(part and not part.startswith(".") and "\\" not in part for part in parts):
            return await _nothing(request, user)
        file = resources.files("zenlake.web").joinpath(*parts)
        try:
            content = file.read_bytes()
        except (OSError, ValueError):
            return await _nothing(request, user)
        kind = {"js": "text/javascript", "svg": "image/svg+xml"}.get(name.rpartition(".")[2])
        kind = kind or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(
            content,
            headers={
                "content-type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
                "content-security-policy": PAGE_POLICY,
                "cache-control": "no-cache",
            },
        )


async def _socket(request: Request, user: User) -> Response:
    return PlainTextResponse("connect with a WebSocket: this is the remote API\n", 426)


async def _nothing(request: Request, user: User) -> Response:
    return PlainTextResponse(f"there are keys, and {' '.join(OWN)}\n", 404)
