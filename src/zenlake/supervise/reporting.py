"""What a supervised router tells its supervisor: a line a second, and its metrics when asked.

Lines on the standard output are JSON objects: `{"report": …}` by itself, `{"metrics": …}` for each
line `metrics` on the standard input. When that ends the supervisor is gone, and the router stops.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from zenlake.admin.space import version
from zenlake.engine.services import service_metrics
from zenlake.node.inspection.metrics import MetricSelection, openmetrics
from zenlake.node.inspection.view import sessions
from zenlake.node.sessions.counts import SessionCounts, counts_of

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.engine.runtime import Runtime
    from zenlake.supervise.recording import Recording

__all__ = ["report_until"]

EVERY: Final = 1.0


def report_until(over: threading.Event, session: Session, recording: Recording | None) -> None:
    """Report until `over` is set; a second thread answers what is asked."""
    writing = threading.Lock()
    runtime = session.runtime
    threading.Thread(
        target=_answer, args=(runtime, writing), name="zenlake answering", daemon=True
    ).start()
    while True:
        _say(writing, {"report": _report(runtime, recording)})
        if over.wait(EVERY):
            return


def _report(runtime: Runtime, recording: Recording | None) -> dict[str, Any]:
    total = SessionCounts()
    with runtime.locked() as node:
        total.add(node.sessions.past.total)
        for neighbour in node.neighbours:
            if neighbour.face is not None:
                total.add(counts_of(neighbour))
        many = len(sessions(node))
        stamps = node.stamps
        future = (0, 0) if stamps is None else (stamps.replaced, stamps.dropped)
    drops: dict[str, int] = {}
    for direction, counts in (("received", total.rx_dropped), ("sent", total.tx_dropped)):
        for (reason, _), number in counts.items():
            name = f"{reason} ({direction})"
            drops[name] = drops.get(name, 0) + number
    return {
        "sessions": many,
        "drops": drops,
        "future_replaced": future[0],
        "future_dropped": future[1],
        "journals": [] if recording is None else recording.report(),
        "troubles": [
            trouble
            for service in list(runtime.services.values())
            if service is not recording
            for trouble in service.troubles()
        ],
    }


def _answer(runtime: Runtime, writing: threading.Lock) -> None:
    for line in sys.stdin:
        if line.strip() == "metrics" and not runtime.closed:
            counted = service_metrics(runtime)
            with runtime.locked() as node:
                uptime = node.now - runtime.started
                text = openmetrics(node, MetricSelection(), version(), uptime, services=counted)
            _say(writing, {"metrics": text})
    os.kill(os.getpid(), signal.SIGTERM)


def _say(writing: threading.Lock, fact: dict[str, Any]) -> None:
    line = json.dumps(fact) + "\n"
    with writing:
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError:
            os.kill(os.getpid(), signal.SIGTERM)
