"""A node that tests tell what to do, on Eclipse Zenoh's package or on ours, here or elsewhere.

Both packages have the same names, so that one class serves for both sides of every test, and
both describe what they see in the same plain words. As a program it runs nodes in a process of
its own, which can be stopped and killed; each line it reads is a call, each line it writes the
outcome of one:

    python peer.py zenoh
    {"id": 1, "node": "a", "call": "open", "args": [], "options": {"mode": "client"}}
    {"id": 1, "result": "5f2c…"}
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import queue
import random
import sys
import threading
import time
import warnings
from typing import Any

#: How long anything may take that must happen.
SECONDS = 60.0

#: Payloads longer than this are told by their digest.
SHOWN = 256

#: The words of options, by the class that they belong to.
WORDS = {
    "accept_replies": "ReplyKeyExpr",
    "allowed_destination": "Locality",
    "allowed_origin": "Locality",
    "congestion_control": "CongestionControl",
    "consolidation": "ConsolidationMode",
    "priority": "Priority",
    "reliability": "Reliability",
    "target": "QueryTarget",
}

Plain = dict[str, Any]


def large(size: int) -> bytes:
    """Bytes without a pattern, the same wherever they are made."""
    return random.Random(size).randbytes(size)


def shown(payload: Any) -> str | list[object] | None:
    """A payload in plain words."""
    if payload is None:
        return None
    data = payload.to_bytes()
    if len(data) <= SHOWN:
        return str(data.decode("latin-1"))
    return [len(data), hashlib.md5(data).hexdigest()]


def word(value: Any) -> str:
    """The name of a value of an enumeration."""
    return str(value).rpartition(".")[2]


def shown_source(source: Any) -> list[object] | None:
    """Who sent something, in plain words."""
    if source is None:
        return None
    return [str(source.source_id.zid), source.source_id.eid, source.source_sn]


def shown_sample(sample: Any) -> Plain:
    """All there is to see of a sample."""
    return {
        "key": str(sample.key_expr),
        "payload": shown(sample.payload),
        "kind": word(sample.kind),
        "encoding": str(sample.encoding),
        "timestamp": None if sample.timestamp is None else str(sample.timestamp),
        "congestion_control": word(sample.congestion_control),
        "priority": word(sample.priority),
        "express": sample.express,
        "attachment": shown(sample.attachment),
        "source": shown_source(sample.source_info),
    }


def shown_query(query: Any) -> Plain:
    """All there is to see of a question."""
    return {
        "key": str(query.key_expr),
        "parameters": str(query.parameters),
        "payload": shown(query.payload),
        "encoding": None if query.encoding is None else str(query.encoding),
        "attachment": shown(query.attachment),
        "accepts": word(query.accepts_replies()),
        "source": shown_source(query.source_info),
    }


def shown_reply(reply: Any) -> Plain:
    """All there is to see of an answer; errors have no key."""
    if reply.err is not None:
        return {"error": shown(reply.err.payload), "encoding": str(reply.err.encoding)}
    return shown_sample(reply.ok)


def shown_event(event: Any) -> Plain:
    """A session that opened or closed."""
    return {"kind": word(event.kind), "zid": str(event.transport.zid)}


class Peer:
    """One node, and what was declared on it by name."""

    def __init__(self, package: str) -> None:
        """`package`: `zenoh` or `zenlake`."""
        self.package = package
        self.zenoh: Any = importlib.import_module(package)
        self.session: Any = None
        self.things: dict[str, Any] = {}
        self.heard: dict[str, queue.Queue[Any]] = {}
        self.held: list[Any] = []

    # --------------------------------------------------------------------------------- nodes

    def config(self, mode: str, **keys: object) -> Any:
        """A configuration that finds nobody by itself; `a__b` stands for the key `a/b`."""
        made = self.zenoh.Config()
        plain: dict[str, object] = {
            "mode": mode,
            "scouting__multicast__enabled": False,
            "listen__endpoints": [],
            "transport__shared_memory__enabled": False,
            "scouting__delay": 200,
        }
        if self.package == "zenoh":
            # On a busy machine its own queue is full for longer than the 1 ms after which Eclipse
            # drops a sample by default, or the 50 ms after which it drops one in fragments.
            drop = "transport__link__tx__queue__congestion_control__drop__"
            for name in ("wait_before_drop", "max_wait_before_drop_fragments"):
                plain[drop + name] = int(SECONDS * 1_000_000)
        elif "connect__endpoints" in keys:
            # A peer of ours opens when it is connected. Eclipse overlooks that in every third run
            # or so, and waits for all of this time.
            plain["scouting__delay"] = int(SECONDS * 1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, value in {**plain, **keys}.items():
                made.insert_json5(name.replace("__", "/"), json.dumps(value))
        return made

    def open(self, mode: str = "peer", **keys: object) -> str:
        """Open the node; its id."""
        self.session = self.zenoh.open(self.config(mode, **keys))
        return str(self.session.zid())

    def close(self) -> None:
        """Close the node."""
        self.session.close()

    def is_open(self) -> bool:
        """Whether it was opened and not closed."""
        return self.session is not None and not self.session.is_closed()

    def zid(self) -> str:
        """Its id."""
        return str(self.session.zid())

    def neighbours(self) -> list[str]:
        """The ids of the nodes that it has a session with."""
        return sorted(str(one.zid) for one in self.session.info.transports())

    def until_neighbour(self, zid: str) -> None:
        """Wait until there is a session, or a common group, with a node."""
        deadline = time.monotonic() + SECONDS
        while zid not in self.neighbours():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{zid} is not among {self.neighbours()}")
            time.sleep(0.01)

    def until_links(self, count: int) -> None:
        """Wait until there are so many links."""
        deadline = time.monotonic() + SECONDS
        while len(self.links()) != count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"there are {len(self.links())} links, not {count}")
            time.sleep(0.01)

    def watch_neighbours(self, name: str) -> None:
        """Hear of sessions that open and close, those that are open first."""
        self.things[name] = self.session.info.declare_transport_events_listener(
            self._hear(name, shown_event), history=True
        )

    def scout(self, count: int, **keys: object) -> list[list[object]]:
        """The first nodes that a scout finds."""
        hellos: queue.Queue[Any] = queue.Queue()
        scout = self.zenoh.scout(hellos.put, config=self.config("peer", **keys))
        found: dict[str, list[object]] = {}
        while len(found) < count:
            hello = hellos.get(timeout=SECONDS)
            found[str(hello.zid)] = [str(hello.zid), str(hello.whatami), hello.locators]
        scout.stop()
        return sorted(found.values(), key=str)

    def links(self) -> list[str]:
        """The protocols of its links."""
        return sorted(str(link.dst).split("/")[0] for link in self.session.info.links())

    def dropped(self) -> Plain:
        """What was dropped so far, by direction and reason; only ours tells."""
        counts = importlib.import_module("zenlake.node.sessions.counts")
        node = self.session.runtime.node
        total = counts.SessionCounts()
        total.add(node.sessions.past.total)
        for neighbour in node.neighbours:
            total.add(counts.counts_of(neighbour))
        found: Plain = total.dropped()
        return found

    def resources(self) -> int:
        """How many keys its tables know; only ours tells."""
        return len(list(self.session.runtime.node.tables.tree.entries()))

    def storm(self, place: str, count: int, threads: int) -> int:
        """Clients that connect, declare, speak and leave, several at a time; how many did."""
        left = iter(range(count))
        lock = threading.Lock()
        done: list[int] = []

        def come_and_go() -> None:
            while True:
                with lock:
                    number = next(left, None)
                if number is None:
                    return
                config = self.config("client", connect__endpoints=[place])
                session = self.zenoh.open(config)
                session.declare_subscriber(f"storm/{number}", lambda _: None)
                session.liveliness().declare_token(f"storm/alive/{number}")
                session.put(f"storm/{number}", "x")
                session.close()
                done.append(number)

        running = [threading.Thread(target=come_and_go) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return len(done)

    def subscribe_many(self, name: str, prefix: str, count: int) -> None:
        """Declare many subscribers, of which the last one is listened to."""
        for number in range(count - 1):
            # A callback would cost theirs a thread each.
            self.things[f"{name} {number}"] = self.session.declare_subscriber(
                f"{prefix}/{number}", self.zenoh.handlers.RingChannel(1)
            )
        self.subscribe(name, f"{prefix}/{count - 1}")

    # ------------------------------------------------------------------------------- hearing

    def _hear(self, name: str, show: Any) -> Any:
        heard = self.heard[name] = queue.Queue()
        return lambda one: heard.put(show(one))

    def take(self, name: str, count: int = 1) -> list[Any]:
        """The next things that something has heard."""
        deadline = time.monotonic() + SECONDS
        taken: list[Any] = []
        for _ in range(count):
            try:
                taken.append(self.heard[name].get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise TimeoutError(
                    f"{name} heard {len(taken)}: {str(taken)[-500:]}, and no more"
                ) from None
        return taken

    def quiet(self, name: str, seconds: float) -> bool:
        """Whether something hears nothing for a while."""
        try:
            self.heard[name].get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def heard_by(self, name: str) -> int:
        """How much something has heard that was not taken."""
        return self.heard[name].qsize()

    def take_until(self, name: str, key: str) -> list[Any]:
        """The next things up to the one with a certain key, and that one too."""
        taken = self.take(name)
        while taken[-1]["key"] != key:
            taken += self.take(name)
        return taken

    def undeclare(self, name: str) -> None:
        """Undeclare something."""
        self.things.pop(name).undeclare()

    def clear(self) -> None:
        """Undeclare everything."""
        self.let_go()
        for name in reversed(list(self.things)):
            self.undeclare(name)

    def until(self, name: str, matching: bool = True) -> None:
        """Wait until a publisher or querier matches somebody, or nobody."""
        thing = self.things[name]
        changes: queue.Queue[bool] = queue.Queue()
        listener = thing.declare_matching_listener(lambda status: changes.put(status.matching))
        deadline = time.monotonic() + SECONDS
        while thing.matching_status.matching is not matching:
            try:
                changes.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{name} did not become matching={matching}") from None
        listener.undeclare()

    def watch_matching(self, name: str, of: str) -> None:
        """Hear of the changes of a matching status."""
        self.things[name] = self.things[of].declare_matching_listener(
            self._hear(name, lambda status: status.matching)
        )

    def matches(self, name: str) -> bool:
        """The matching status of a publisher or querier."""
        return bool(self.things[name].matching_status.matching)

    # ---------------------------------------------------------------------------- publishing

    def _options(self, options: Plain) -> Plain:
        found: Plain = {}
        for name, value in options.items():
            if name in WORDS:
                found[name] = getattr(getattr(self.zenoh, WORDS[name]), value)
            elif name == "timestamp":
                found[name] = self.session.new_timestamp()
            elif name == "source":
                found["source_info"] = self.zenoh.SourceInfo(self.session.id, value)
            else:
                found[name] = value
        return found

    def _said(self, options: Plain) -> Plain:
        stamp, source = options.get("timestamp"), options.get("source_info")
        return {
            "timestamp": None if stamp is None else str(stamp),
            "source": shown_source(source),
        }

    def subscribe(self, name: str, key: str, **options: object) -> None:
        """Declare a subscriber."""
        self.things[name] = self.session.declare_subscriber(
            key, self._hear(name, shown_sample), **self._options(options)
        )

    def publisher(self, name: str, key: str, **options: object) -> None:
        """Declare a publisher."""
        self.things[name] = self.session.declare_publisher(key, **self._options(options))

    def publish(self, name: str, payload: str | int, **options: object) -> Plain:
        """Put by a publisher; a number is the size of a large payload."""
        found = self._options(options)
        data = large(payload) if isinstance(payload, int) else payload
        self.things[name].put(data, **found)
        return self._said(found)

    def publish_delete(self, name: str, **options: object) -> Plain:
        """Delete by a publisher."""
        found = self._options(options)
        self.things[name].delete(**found)
        return self._said(found)

    def publish_many(self, name: str, count: int) -> None:
        """Put the numbers from 0 up."""
        put = self.things[name].put
        for number in range(count):
            put(str(number))

    def publish_forever(self, name: str, size: int) -> None:
        """Put large payloads until the end of the process."""
        data = large(size)
        while True:
            self.things[name].put(data)

    def put(self, key: str, payload: str, **options: object) -> Plain:
        """Put by the session."""
        found = self._options(options)
        self.session.put(key, payload, **found)
        return self._said(found)

    def delete(self, key: str, **options: object) -> Plain:
        """Delete by the session."""
        found = self._options(options)
        self.session.delete(key, **found)
        return self._said(found)

    # -------------------------------------------------------------------------------- asking

    def queryable(
        self, name: str, key: str, answers: list[Plain] | None = None, **options: object
    ) -> None:
        """Declare a queryable that answers each question alike; without answers it holds them."""
        hear = self._hear(name, shown_query)

        def asked(query: Any) -> None:
            hear(query)
            if answers is None:
                self.held.append(query)
                return
            with query:
                for answer in answers:
                    self._answer(query, dict(answer))

        self.things[name] = self.session.declare_queryable(key, asked, **self._options(options))

    def _answer(self, query: Any, answer: Plain) -> None:
        key = answer.pop("key", query.key_expr)
        if "error" in answer:
            query.reply_err(answer.pop("error"), **answer)
        elif "payload" in answer:
            payload = answer.pop("payload")
            data = large(payload) if isinstance(payload, int) else payload
            query.reply(key, data, **self._options(answer))
        else:
            query.reply_del(key, **self._options(answer))

    def let_go(self) -> None:
        """Finalise the questions that were held."""
        while self.held:
            self.held.pop().drop()

    def get(self, selector: str, **options: object) -> list[Plain]:
        """Ask, and wait for all answers."""
        found = self._options({"timeout": SECONDS, **options})
        return [shown_reply(reply) for reply in self.session.get(selector, **found)]

    def read(self, selector: str) -> dict[str, list[str]]:
        """Ask, and give the encoding and the whole text of each answer by its key."""
        found: dict[str, list[str]] = {}
        for reply in self.session.get(selector, timeout=SECONDS):
            sample = reply.ok
            if sample is not None:
                data = sample.payload.to_bytes()
                if data[:2] == b"\x1f\x8b":
                    data = gzip.decompress(data)
                found[str(sample.key_expr)] = [str(sample.encoding), data.decode()]
        return found

    def querier(self, name: str, key: str, **options: object) -> None:
        """Declare a querier."""
        found = self._options({"timeout": SECONDS, **options})
        self.things[name] = self.session.declare_querier(key, **found)

    def ask(self, name: str, **options: object) -> list[Plain]:
        """Ask by a querier, and wait for all answers."""
        return [shown_reply(one) for one in self.things[name].get(**self._options(options))]

    # ---------------------------------------------------------------------------- liveliness

    def token(self, name: str, key: str) -> None:
        """Be alive under a key."""
        self.things[name] = self.session.liveliness().declare_token(key)

    def alive(self, key: str) -> list[str]:
        """Who is alive."""
        replies = self.session.liveliness().get(key, timeout=SECONDS)
        return sorted(str(reply.ok.key_expr) for reply in replies)

    def until_alive(self, key: str, expected: list[str]) -> None:
        """Ask until certain ones are alive.

        A client of Eclipse's that watches and asks gets an empty answer now and then, though its
        own router knows better; asked again it is right.
        """
        deadline = time.monotonic() + SECONDS
        while (found := self.alive(key)) != expected:
            if time.monotonic() > deadline:
                raise TimeoutError(f"alive: {found}, not {expected}")

    def watch(self, name: str, key: str, history: bool = False) -> None:
        """Hear who comes alive and who dies."""

        def show(sample: Any) -> list[str]:
            return [word(sample.kind), str(sample.key_expr)]

        self.things[name] = self.session.liveliness().declare_subscriber(
            key, self._hear(name, show), history=history
        )
        # A client has been heard when a question that it asked later is answered.
        self.get(f"fence/{name}")


class Program:
    """Runs nodes for whoever writes to its standard input."""

    def __init__(self, package: str) -> None:
        """On one package."""
        self.package = package
        self.nodes: dict[str, Peer] = {}
        self.writing = threading.Lock()

    def run(self) -> None:
        """Serve until the input ends; calls may wait, so each has a thread."""
        for line in sys.stdin:
            request = json.loads(line)
            node = self.nodes.get(request["node"])
            if node is None:
                node = self.nodes[request["node"]] = Peer(self.package)
            threading.Thread(target=self.serve, args=(node, request), daemon=True).start()

    def serve(self, node: Peer, request: Plain) -> None:
        """Make one call and tell the outcome."""
        outcome: Plain = {"id": request["id"]}
        try:
            call = getattr(node, request["call"])
            outcome["result"] = call(*request["args"], **request["options"])
        except BaseException as error:  # a panic of Rust is no Exception
            outcome["error"] = f"{type(error).__name__}: {error}"
        with self.writing:
            print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    Program(sys.argv[1]).run()
