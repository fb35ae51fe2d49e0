"""The HTTP server of `zenlake up`: metrics, health and status."""

from __future__ import annotations

import errno
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import typer

from zenlake.cli.anonymous import AnonymousPort, refuse_others

if TYPE_CHECKING:
    from zenlake.http.connections import Connections
    from zenlake.supervise.output import Output
    from zenlake.supervise.status_server import StatusServer
    from zenlake.supervise.supervisor import Supervisor

__all__ = ["http_place", "serve_status"]


def http_place(
    text: str, allowed: Collection[AnonymousPort] | None = None
) -> tuple[str, int] | None:
    """Return host and port of `--http`; None where it says that nothing is served.

    Raise for an address that other machines reach, unless `allowed` names this port.
    """
    if text in ("none", "no", "off"):
        return None
    host, _, port = text.rpartition(":")
    host = host.removeprefix("http://").strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(
            f"'{text}' is no place; write one like 127.0.0.1:7780, or none", param_hint="--http"
        )
    refuse_others(AnonymousPort.HTTP, host, allowed)
    return host, int(port)


def serve_status(
    supervisor: Supervisor, output: Output, host: str, port: int
) -> StatusServer | None:
    """The HTTP server; on another port if this one is taken, or none, which is told."""
    from zenlake.http.connections import Connections
    from zenlake.supervise.requests import LIMITS
    from zenlake.supervise.status_server import StatusServer
    from zenlake.supervise.throttle import Line

    connections = Connections(LIMITS)
    pages = _pages(supervisor, connections)
    for attempt in (port, 0):
        try:
            server = StatusServer(host, attempt, pages, connections)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno != errno.EADDRINUSE or attempt == 0:
                supervisor.reports.http_failure = f"{host}:{attempt}: {reason}"
                words = f"no metrics over HTTP: {supervisor.reports.http_failure}"
                output.write_line(Line(time.time(), words))
                return None
        else:
            supervisor.reports.http = server.url
            if attempt != port:
                words = f"port {port} is taken; metrics and status are at {server.url}"
                output.write_line(Line(time.time(), words, bad=False))
            return server
    return None


def _pages(supervisor: Supervisor, connections: Connections) -> dict[str, Any]:
    from zenlake.supervise.openmetrics import joined, openmetrics
    from zenlake.supervise.requests import TEXT, HttpPage
    from zenlake.supervise.status import Health

    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    def health() -> HttpPage:
        status = supervisor.status
        words = "; ".join(status.reasons) or str(status.health)
        return HttpPage(200 if status.alive else 503, TEXT, f"{words}\n")

    def ready() -> HttpPage:
        status = supervisor.status
        well = status.health is Health.WELL
        words = "; ".join(status.reasons) or str(status.health)
        return HttpPage(200 if well else 503, TEXT, f"{words}\n")

    return {
        "/metrics": lambda: HttpPage(
            200,
            kind,
            joined(openmetrics(supervisor.status, dict(connections.refused)), supervisor.metrics()),
        ),
        "/health": health,
        "/ready": ready,
        "/status": lambda: HttpPage(200, "application/json", supervisor.status.to_json() + "\n"),
    }
