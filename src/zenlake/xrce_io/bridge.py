"""The outside of a broker: a session of Zenoh 1.x.

What sessions of 2018 publish is put there, what they want is subscribed to, a pulled selection is
a query, and whether there are subscribers is told to publishers, so that they can sleep. A sample
from outside is never put there again, so two routers with bridges make no loop: what one of them
puts reaches the sessions of the other, and ends there.

Everything here runs on the broker's own thread, but for callbacks of the session, which hand over.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from zenlake.api.session import Session
from zenlake.errors import ZError
from zenlake.handlers import Callback
from zenlake.keys import KeyExpr
from zenlake.keys.matching import intersects
from zenlake.node.incidents import DENIED
from zenlake.routing.policy.messages import (
    DECLARE_QUERYABLE,
    DECLARE_SUBSCRIBER,
    DELETE,
    EGRESS,
    INGRESS,
    LIVELINESS_TOKEN,
    PUT,
    QUERY,
    REPLY,
    kinds_of_query,
)
from zenlake.routing.policy.policy import Policy
from zenlake.values import (
    CongestionControl,
    EntityGlobalId,
    Locality,
    Priority,
    Reliability,
    SampleKind,
    SourceInfo,
)
from zenlake.xrce.member import Member
from zenlake.xrce.names import Name
from zenlake.xrce.outside import Outside
from zenlake.xrce.routing import spaced
from zenlake.xrce.tables import INVALID, OK, OTHER, Subscription
from zenlake.xrce_io.facts import facts
from zenlake.xrce_io.rights import DeviceRights
from zenlake.xrce_io.translate import is_key, key_exprs

if TYPE_CHECKING:
    from zenlake.api.reply import Reply
    from zenlake.xrce_io.brokering import RunningBroker

log = logging.getLogger("zenlake.xrce")

#: What the conduits of 2018 are in 1.x, and the other way round.
PRIORITIES: Final = {
    0: Priority.DATA, 1: Priority.REAL_TIME, 2: Priority.INTERACTIVE_HIGH,
    3: Priority.DATA_LOW, 4: Priority.BACKGROUND,
}  # fmt: skip
CONDUITS: Final = {
    Priority.REAL_TIME: 1, Priority.INTERACTIVE_HIGH: 2, Priority.INTERACTIVE_LOW: 2,
    Priority.DATA_HIGH: 0, Priority.DATA: 0, Priority.DATA_LOW: 3, Priority.BACKGROUND: 4,
}  # fmt: skip
#: Publishers and queryables that are declared at most; what is beyond is put without one.
DECLARED_MAX: Final = 4096
#: Sources of samples have numbers from here on: one for each session and path.
FIRST_EID: Final = 0x8000_0000
#: Seconds in which a query for a pull is answered.
PULL_TIMEOUT: Final = 5.0
#: Paths that are subscribed to outside; what devices want beyond is not heard there.
WANTED_MAX: Final = 65536
#: Queries for devices that are under way, and samples and bytes that one of them may bring.
ASKING_MAX: Final = 1024
REPLIES_MAX: Final = 16384
REPLIES_BYTES: Final = 1 << 24
#: Samples, and their bytes, that wait for the broker's thread.
INCOMING_MAX: Final = 65536
INCOMING_BYTES: Final = 1 << 26


class Bridge(Outside):
    """A session of 1.x on behalf of all sessions of a broker."""

    wide = True

    def __init__(
        self, session: Session, prefix: str = "", deletes: str = "drop", username: str = ""
    ) -> None:
        """`prefix`: put before every key; `deletes`: what a deletion is, `drop` or `empty`.

        `username`: who devices are to the rules of access control.
        """
        self._session = session
        self.rights = DeviceRights(username, self._policy, self._denied)
        self._prefix = prefix + "/" if prefix else ""
        self._deletes = deletes
        self.running: RunningBroker | None = None
        #: Ordered, as numbers below: the oldest gives way.
        self._publishers: OrderedDict[tuple[str, bool, int], Any] = OrderedDict()
        self._matching: dict[str, tuple[Any, Any]] = {}
        self._wanted: dict[str, list[Any]] = {}
        self._exprs: dict[str, list[str]] = {}
        self._owners: dict[str, str] = {}
        self._tokens: dict[bytes, Any] = {}
        self._durable: dict[str, Any] = {}
        #: Numbers of the samples of each (session, path), for who keeps a ledger.
        self._numbers: OrderedDict[tuple[bytes, str], list[int]] = OrderedDict()
        self._next_eid = 1
        self.dropped_deletes = 0
        self.failed = 0
        #: Samples of our own devices that came back: another bridge gave them back to 1.x.
        self.looped = 0
        #: Paths, queries and replies beyond the bounds; and samples of 1.x that came too fast.
        self.refused = 0
        self.overrun = 0
        self._asking = 0
        # One is counted by the thread of the session, the other by that of the broker.
        self._came_bytes = 0
        self._taken_bytes = 0
        self._admin = session.declare_queryable(
            f"@/{session.zid()}/z18/**", Callback(self._asked_about), complete=True
        )

    def close(self) -> None:
        """Undeclare everything."""
        for thing in (
            *(one for both in self._matching.values() for one in both),
            *self._publishers.values(), *self._tokens.values(),
            *self._durable.values(), *(one for many in self._wanted.values() for one in many),
            self._admin,
        ):  # fmt: skip
            self._undeclare(thing)

    def _policy(self) -> Policy:
        return self._session.runtime.node.policy

    def _denied(self, key: str, why: str) -> None:
        """Have operators know; on any thread, so it is done on the broker's."""

        def note() -> None:
            with self._session.runtime.locked() as node:
                node.incidents.add(DENIED, node.moment(), peer="z18", key=key, reason=why)

        if self.running is not None and self.running.waiting < INCOMING_MAX:
            self._later(note)

    def _undeclare(self, thing: Any) -> None:
        try:
            thing.undeclare()
        except ZError as error:
            log.debug("undeclaring: %s", error)

    def remember(self) -> None:
        """Answer for values that an earlier run has left."""
        if self.running is None:
            return
        for path, _, _ in self.running.broker.values.matching("**"):
            if path not in self._durable and len(self._durable) < DECLARED_MAX and is_key(path):
                self._answer_for(path)

    def _later(self, work: Callable[[], None]) -> None:
        if self.running is not None:
            self.running.call(work)

    # ------------------------------------------------------------------------------- from 2018

    def refuses(self, name: Name) -> int:
        """Why a name of 2018 cannot be a key now: it is none, or the session of 1.x is gone."""
        if not is_key(name.path):
            return INVALID
        return OTHER if self._session.is_closed() else OK

    def published(
        self, path: str, payload: bytes, reliable: bool, conduit: int, durability: int,
        source: bytes, sn: int,
    ) -> None:  # fmt: skip
        """Put a sample of a session."""
        if not self.rights.may(INGRESS, PUT, self._prefix + path):
            return
        try:
            publisher = self._publishers.get((path, reliable, conduit))
            if publisher is None and reliable and not conduit and path in self._matching:
                publisher = self._matching[path][0]
            if publisher is None:
                publisher = self._publisher(path, reliable, conduit)
            if durability and path not in self._durable and len(self._durable) < DECLARED_MAX:
                self._answer_for(path)
            info = self._numbered(source, path) if reliable else None
            publisher.put(payload, source_info=info)
        except ZError as error:
            self.failed += 1
            log.warning("'%s' of session %s is not put: %s", path, source.hex(), error)

    def _publisher(self, path: str, reliable: bool, conduit: int) -> Any:
        if len(self._publishers) >= DECLARED_MAX:
            self._undeclare(self._publishers.popitem(last=False)[1])
        made = self._declared(path, reliable, conduit)
        self._publishers[path, reliable, conduit] = made
        return made

    def _declared(self, path: str, reliable: bool, conduit: int) -> Any:
        return self._session.declare_publisher(
            self._prefix + path,
            reliability=Reliability.RELIABLE if reliable else Reliability.BEST_EFFORT,
            congestion_control=CongestionControl.BLOCK if reliable else CongestionControl.DROP,
            priority=PRIORITIES.get(conduit, Priority.DATA),
        )

    def _numbered(self, source: bytes, path: str) -> SourceInfo:
        """The reliable samples of a session on a path, counted: a gap would be a loss."""
        numbers = self._numbers.get((source, path))
        if numbers is None:
            if len(self._numbers) >= DECLARED_MAX * 4:
                self._numbers.popitem(last=False)
            numbers = [self._next_eid, 0]
            self._next_eid += 1
            self._numbers[source, path] = numbers
        sn, numbers[1] = numbers[1], numbers[1] + 1
        return SourceInfo(
            EntityGlobalId(self._session.zid(), FIRST_EID | numbers[0]), sn & 0xFFFF_FFFF
        )

    def wanted(self, path: str, wanted: bool) -> None:
        """Subscribe to what the first session wants, or no longer when the last one left."""
        self._owners.clear()
        if not wanted:
            self._exprs.pop(path, None)
            for subscriber in self._wanted.pop(path, ()):
                self._undeclare(subscriber)
            return
        if not is_key(path):
            return
        if len(self._wanted) >= WANTED_MAX:
            self.refused += 1
            return
        try:
            exprs = [
                expr
                for expr in key_exprs(path)
                if self.rights.may(INGRESS, DECLARE_SUBSCRIBER, self._prefix + expr)
            ]
            self._exprs[path] = exprs
            self._wanted[path] = [
                self._session.declare_subscriber(
                    self._prefix + expr,
                    Callback(lambda sample: self._came(path, sample)),
                    allowed_origin=Locality.REMOTE,
                )
                for expr in exprs
            ]
        except ZError as error:
            self.failed += 1
            log.warning("'%s' is not subscribed to: %s", path, error)

    def publishing(self, path: str, publishing: bool) -> bool:
        """Watch whether a path has subscribers in 1.x."""
        if not publishing:
            for one in reversed(self._matching.pop(path, ())):
                self._undeclare(one)
            return False
        if not is_key(path) or not self.rights.may(INGRESS, PUT, self._prefix + path):
            return False
        if not self.rights.may(EGRESS, DECLARE_SUBSCRIBER, self._prefix + path):
            return True  # who listens is not told: what is published is put in any case
        if len(self._matching) >= DECLARED_MAX:
            self.refused += 1
            return True  # nobody watches: what is published is put in any case
        try:
            # Apart from those that come with samples, which make room for each other.
            publisher = self._declared(path, True, 0)
            listener = publisher.declare_matching_listener(
                Callback(lambda status: self._listened(path, bool(status.matching)))
            )
            self._matching[path] = (publisher, listener)
            return bool(publisher.matching_status.matching)
        except ZError as error:
            log.warning("whether there are subscribers to '%s' is not known: %s", path, error)
            return True

    def _listened(self, path: str, listened: bool) -> None:
        running = self.running
        if running is not None:
            self._later(lambda: running.broker.routing.listened(path, listened))

    def ask(self, member: Member, one: Subscription, most: int | None) -> bool:
        """A selection is pulled: ask everybody."""
        running = self.running
        if running is None or one.name is None or not is_key(one.name.path):
            return False
        chosen = one.chosen
        text = chosen.text.partition("?{")[2].removesuffix("}") if chosen is not None else ""
        parameters = f"pred={_quoted(text)}" if text else ""

        def answered(values: list[tuple[str, bytes]]) -> None:
            running.broker.routing.answered(member, one, values, most, running.now())

        self._get(key_exprs(spaced(one.space, one.name.path)), parameters, answered)
        return True

    def children(self, member: Member, one: Subscription, most: int | None) -> bool:
        """Ask 1.x for `path/*`, for a session that wants the names below a path."""
        running = self.running
        if running is None or one.name is None or one.space == 1:
            return False
        above = spaced(one.space, one.name.path) + "/"
        if not is_key(above + "*"):
            return False

        def named(values: list[tuple[str, bytes]]) -> None:
            names = {
                path[len(above) :].split("/")[0] for path, _ in values if path.startswith(above)
            }
            running.broker.routing.named(member, one, names, most, running.now())

        self._get([above + "*"], "", named)
        return True

    def late(self, member: Member, one: Subscription) -> None:
        """Ask storages and other brokers, for a session that wants last values by tag."""
        running = self.running
        if running is None or one.name is None or not is_key(one.name.path):
            return

        def remembered(values: list[tuple[str, bytes]]) -> None:
            running.broker.routing.remembered(member, one, values, running.now())

        self._get(key_exprs(spaced(one.space, one.name.path)), "", remembered)

    def _get(
        self, exprs: list[str], parameters: str,
        done: Callable[[list[tuple[str, bytes]]], None],
    ) -> None:  # fmt: skip
        """Ask everybody for some keys; `told` gets paths and payloads on the broker's thread."""
        values: list[tuple[str, bytes]] = []
        kinds = kinds_of_query(parameters)
        exprs = [
            expr
            for expr in exprs
            if all(self.rights.may(INGRESS, kind, self._prefix + expr) for kind in kinds)
        ]
        waiting = len(exprs)
        size = 0
        if self._asking >= ASKING_MAX or not exprs:
            self.refused += bool(exprs)
            self._later(lambda: done(values))
            return
        self._asking += 1

        def replied(reply: Reply) -> None:
            nonlocal size
            sample = reply.ok
            if len(values) >= REPLIES_MAX or size > REPLIES_BYTES:
                self.refused += 1
                return
            if sample is not None and sample.kind is SampleKind.PUT:
                key = str(sample.key_expr)
                if not self.rights.may(EGRESS, REPLY, key):
                    return
                path = key.removeprefix(self._prefix)
                if not any(chunk.startswith("@") for chunk in path.split("/")):
                    payload = sample.payload.to_bytes()
                    size += len(payload)
                    values.append((path, payload))

        def ended() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._later(answered)

        def answered() -> None:
            self._asking -= 1
            done(values)

        for expr in exprs:
            asked = self.rights.restricted(self._prefix + expr, parameters)
            selector = f"{self._prefix}{expr}" + (f"?{asked}" if asked else "")
            try:
                self._session.get(
                    selector, Callback(replied, ended), timeout=PULL_TIMEOUT,
                    allowed_destination=Locality.ANY,
                )  # fmt: skip
            except ZError as error:
                log.warning("'%s' is not asked for: %s", selector, error)
                ended()

    def came(self, pid: bytes) -> None:
        """A session opened: it is alive."""
        key = f"{self._prefix}z18/session/{pid.hex()}"
        if not self.rights.may(INGRESS, LIVELINESS_TOKEN, key):
            return
        try:
            self._tokens[pid] = self._session.liveliness().declare_token(key)
        except ZError as error:
            log.warning("session %s has no token: %s", pid.hex(), error)

    def went(self, pid: bytes) -> None:
        """A session closed."""
        token = self._tokens.pop(pid, None)
        if token is not None:
            self._undeclare(token)
        for key in [key for key in self._numbers if key[0] == pid]:
            del self._numbers[key]

    # -------------------------------------------------------------------------------- from 1.x

    def _came(self, wanted: str, sample: Any) -> None:
        """A sample for one of our subscribers; on a thread of the session."""
        path = str(sample.key_expr).removeprefix(self._prefix)
        if any(chunk.startswith("@") for chunk in path.split("/")):
            return
        info = sample.source_info
        if info is not None and self._is_ours(info.source_id):
            self.looped += 1
            return
        if sample.kind is not SampleKind.PUT and self._deletes != "empty":
            self.dropped_deletes += 1
            return
        kind = PUT if sample.kind is SampleKind.PUT else DELETE
        if not self.rights.may(EGRESS, kind, str(sample.key_expr)):
            return
        payload = sample.payload.to_bytes() if sample.kind is SampleKind.PUT else b""
        reliable = sample.congestion_control is CongestionControl.BLOCK
        conduit = CONDUITS.get(sample.priority, 0)
        running = self.running
        if running is None:
            return
        waiting = self._came_bytes - self._taken_bytes
        if running.waiting >= INCOMING_MAX or waiting > INCOMING_BYTES:
            self.overrun += 1
            return
        self._came_bytes += len(payload)
        self._later(lambda: self._inject(wanted, path, payload, reliable, conduit))

    def _is_ours(self, source: EntityGlobalId) -> bool:
        return source.zid == self._session.zid() and source.eid >= FIRST_EID

    def _inject(self, wanted: str, path: str, payload: bytes, reliable: bool, conduit: int) -> None:
        """Give a sample to the sessions, once: several of our subscribers may have heard it."""
        self._taken_bytes += len(payload)
        owner = self._owners.get(path)
        if owner is None:
            owner = next(
                (
                    one
                    for one, exprs in self._exprs.items()
                    if any(intersects(expr, path) for expr in exprs)
                ),
                wanted,
            )
            if len(self._owners) > 65536:
                self._owners.clear()
            self._owners[path] = owner
        if owner == wanted and self.running is not None:
            self.running.broker.routing.inject(path, payload, reliable, conduit, self.running.now())

    def _answer_for(self, path: str) -> None:
        """Answer questions about a durable resource with its last value."""
        if not self.rights.may(INGRESS, DECLARE_QUERYABLE, self._prefix + path):
            return

        def asked(query: Any) -> None:
            running = self.running
            if running is None or not self.rights.may(EGRESS, QUERY, str(query.key_expr)):
                query.drop()
                return

            def answer() -> None:
                for at, _, payload in running.broker.values.matching(path):
                    if self.rights.may(INGRESS, REPLY, self._prefix + at):
                        query.reply(self._prefix + at, payload)
                query.drop()

            self._later(answer)

        self._durable[path] = self._session.declare_queryable(
            self._prefix + path, Callback(asked), complete=False
        )

    # ----------------------------------------------------------------------------- admin space

    def _asked_about(self, query: Any) -> None:
        """Show the broker to an operator: counters, sessions, properties."""
        if self.running is None:
            return
        self._later(lambda: self._show(query))

    def _show(self, query: Any) -> None:
        running = self.running
        assert running is not None
        above = f"@/{self._session.zid()}/z18"
        bridged = {
            "dropped_deletes": self.dropped_deletes,
            "failed": self.failed,
            "looped": self.looped,
            "bridge_refused": self.refused,
            "overrun": self.overrun,
            "denied": self.rights.stopped,
        }
        for key, content in facts(running, bridged):
            if KeyExpr(f"{above}/{key}").intersects(query.key_expr):
                query.reply(
                    f"{above}/{key}", json.dumps(content).encode(), encoding="application/json"
                )
        query.drop()


def _quoted(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_-.'<>() " else f"%{ord(c):02x}" for c in text)


__all__ = ["Bridge"]
