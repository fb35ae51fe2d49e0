"""A node that tests tell what to do, with advanced publishers and subscribers; see `peer`."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
import warnings
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, cast

from tests.interop.peer import Peer, Plain, Program, shown_sample, word
from tests.interop.processes import Elsewhere, Process

ROOT = Path(__file__).parent.parent.parent


def shown_stack(stack: Any, names: Plain) -> list[list[str]] | None:
    """Where times were taken, and by whom: nodes by their names, custom stamps by their text."""
    if stack is None:
        return None
    found: list[list[str]] = []
    for record in stack.records:
        stamp = record.timestamp()
        who = bytes(stamp).decode() if record.is_custom else str(stamp).partition("/")[2]
        found.append([word(record.point), str(names.get(who, who))])
    return found


class Advanced(Peer):
    """One node, and what was declared on it by name."""

    def __init__(self, package: str) -> None:
        """`package`: `zenoh` or `zenlake`."""
        super().__init__(package)
        self.ext: Any = importlib.import_module(f"{package}.ext")

    # ------------------------------------------------------------------------------ advanced

    def advanced_publisher(self, name: str, key: str, **options: Any) -> list[object]:
        """Declare an advanced publisher; its id."""
        found: Plain = {"publisher_detection": options.get("detection")}
        if "cache" in options:
            found["cache"] = self.ext.CacheConfig(options["cache"])
        if "numbered" in options:
            found["sample_miss_detection"] = self.ext.MissDetectionConfig(**options["numbered"])
        made = self.ext.declare_advanced_publisher(self.session, key, **found)
        self.things[name] = made
        return [str(made.id.zid), made.id.eid]

    def advanced_subscriber(self, name: str, key: str, **options: Any) -> list[object]:
        """Declare an advanced subscriber that reports what it misses; its id."""
        found: Plain = {"subscriber_detection": options.get("detection")}
        if "history" in options:
            found["history"] = self.ext.HistoryConfig(**options["history"])
        if "period" in options:
            period = timedelta(seconds=options["period"])
            found["recovery"] = self.ext.RecoveryConfig(periodic_queries=period)
        elif "recovery" in options:
            found["recovery"] = self.ext.RecoveryConfig(heartbeat=True)
        made = self.ext.declare_advanced_subscriber(
            self.session, key, self._hear(name, shown_sample), **found
        )
        self.things[name] = made
        misses = self._hear(f"{name} misses", self._shown_miss)
        self.things[f"{name} misses"] = made.sample_miss_listener(misses)
        return [str(made.id.zid), made.id.eid]

    def _shown_miss(self, miss: Any) -> list[object]:
        return [str(miss.source.zid), miss.source.eid, miss.nb]

    def detect(self, name: str, of: str) -> None:
        """Hear which publishers an advanced subscriber detects."""
        show = self._hear(name, lambda sample: [word(sample.kind), str(sample.key_expr)])
        self.things[name] = self.things[of].detect_publishers(show, history=True)

    def say(self, name: str, *payloads: str) -> None:
        """Put by an advanced publisher."""
        for payload in payloads:
            self.things[name].put(payload)

    def pretend(self, key: str, of: str, sn: int, payload: str) -> None:
        """Put under a number of an advanced publisher: those before it are lost on the way."""
        source = self.zenoh.SourceInfo(self.things[of].id, sn)
        self.session.put(key, payload, source_info=source)

    # ---------------------------------------------------------------------------- time stacks

    def open_custom(self, text: str, mode: str = "peer", **keys: object) -> str:
        """Open the node with a clock of its own."""
        self.session = self.zenoh.open(
            self.config(mode, **keys), timestamp_callback=lambda context: text.encode()
        )
        return str(self.session.zid())

    def _points(self, points: str) -> Any:
        builder = self.zenoh.TimestampInstrumentationBuilder()
        for point in ("send", "route", "receive"):
            builder = getattr(builder, f"set_{point}")(point in points)
        return builder.build()

    def hear_stacks(self, name: str, key: str, names: Plain) -> None:
        """Subscribe to the times of samples."""
        show = self._hear(name, lambda sample: shown_stack(sample.timestamp_stack, names))
        self.things[name] = self.session.declare_subscriber(key, show)

    def put_stack(self, key: str, points: str) -> None:
        """Put a value that has its times taken."""
        self.session.put(key, "x", timestamp_instrumentation=self._points(points))

    def answer_stacks(self, name: str, key: str, reply: str, names: Plain) -> None:
        """Answer questions, and hear of their times."""
        show = self._hear(name, lambda query: shown_stack(query.timestamp_stack, names))

        def answer(query: Any) -> None:
            show(query)
            with query:
                query.reply(reply, "y")
                query.reply_err("bad")

        self.things[name] = self.session.declare_queryable(key, answer)

    def get_stacks(self, key: str, points: str, names: Plain) -> list[Any]:
        """Ask, and see the times of the answers."""
        replies = self.session.get(key, timestamp_instrumentation=self._points(points))
        return [shown_stack(one.result.timestamp_stack, names) for one in replies]

    # --------------------------------------------------------------------------------- values

    def put_value(self, key: str, text: str) -> None:
        """Put a value that an expression says, serialised."""
        names = {**vars(self.ext), "ZBytes": self.zenoh.ZBytes}
        self.session.put(key, self.ext.z_serialize(eval(text, names)))

    def hear_values(self, name: str, key: str, expected: dict[str, list[str]]) -> None:
        """Subscribe to serialised values; what type and value is expected under each key."""
        names = {**vars(self.ext), "ZBytes": self.zenoh.ZBytes}

        def show(sample: Any) -> list[object]:
            tp, text = (eval(one, dict(names)) for one in expected[str(sample.key_expr)])
            value = self.ext.z_deserialize(tp, sample.payload)
            return [str(sample.key_expr), value == text or repr(value) == repr(text)]

        self.things[name] = self.session.declare_subscriber(key, self._hear(name, show))


class AdvancedProgram(Program):
    """Runs such nodes for whoever writes to its standard input."""

    def run(self) -> None:
        """Serve until the input ends; calls may wait, so each has a thread."""
        for line in sys.stdin:
            request = json.loads(line)
            name = request["node"]
            if name not in self.nodes:
                self.nodes[name] = Advanced(self.package)
            arguments = (self.nodes[name], request)
            threading.Thread(target=self.serve, args=arguments, daemon=True).start()


class AdvancedProcess(Process):
    """A process that runs such nodes of one package."""

    def __init__(self, package: str) -> None:
        """Start it."""
        self.package = package
        self.running = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.interop.advanced", package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.waiting: dict[int, Future[Any]] = {}
        self.next = 0
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> Self:
        return self

    def advanced(self, name: str) -> Advanced:
        """A node of that process, to be used as if it were here."""
        return cast(Advanced, Elsewhere(self, name))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    AdvancedProgram(sys.argv[1]).run()
