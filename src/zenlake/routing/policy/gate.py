"""The gate of a neighbour: all that is decided about its messages in one flow.

What does not depend on time or size is decided once for a kind and a key and remembered as a
`Ruling`, so that a message costs one look-up. Access is asked first, then the size, then the
clocks: a message that is refused or too large takes no other's turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from zenlake.errors import KeyExprError
from zenlake.keys.matching import check
from zenlake.keys.readable import ReadableKeys
from zenlake.records import record
from zenlake.routing.policy.access import Access, Explanation, is_write_of_many
from zenlake.routing.policy.downsampling import Downsampler, Timer
from zenlake.routing.policy.low_pass import NO_LIMIT, Limit, LowPass
from zenlake.routing.policy.messages import (
    EGRESS,
    INGRESS,
    KINDS,
    UNFILTERED,
    PolicyVerdict,
    attachment_size,
    is_undeclaration,
    kind_of,
    payload_size,
    refusal_of,
)
from zenlake.routing.policy.qos_overwrite import Overwrite
from zenlake.wire.codec_network import Push, Request, Response
from zenlake.wire.message import Message

__all__ = ["Interceptors", "PolicyAccount", "PolicyCounters", "PolicyGate", "WritableKeys"]

REMEMBERED: Final = 2 << 20
"""What the keys with remembered rulings may cost a neighbour in one flow, in bytes or so."""
RULING_COST: Final = 200
_ALL: Final = (1 << len(KINDS)) - 1


@final
class PolicyCounters:
    """How many messages were stopped, by reason, and how many were changed."""

    __slots__ = ("denied", "downsampled", "overwritten", "too_large")

    def __init__(self) -> None:
        """Start at zero."""
        self.denied: int = 0
        self.downsampled: int = 0
        self.too_large: int = 0
        self.overwritten: int = 0

    def add(self, other: PolicyCounters) -> None:
        """Count what another has counted as well."""
        self.denied += other.denied
        self.downsampled += other.downsampled
        self.too_large += other.too_large
        self.overwritten += other.overwritten

    def to_dict(self) -> dict[str, int]:
        """The counts by reason."""
        return {
            "denied": self.denied,
            "downsampled": self.downsampled,
            "too_large": self.too_large,
            "overwritten": self.overwritten,
        }


@final
class Ruling:
    """What holds for messages of one kind on one key, whenever they come."""

    __slots__ = ("allowed", "limit", "overwrites", "timers")

    def __init__(
        self, allowed: bool, limit: int, timers: list[Timer], overwrites: list[Overwrite]
    ) -> None:
        """`limit`: the most bytes, or `NO_LIMIT`."""
        self.allowed: bool = allowed
        self.limit: int = limit
        self.timers: list[Timer] = timers
        self.overwrites: list[Overwrite] = overwrites


@record(frozen=True, slots=True)
class PolicyAccount:
    """All that a gate has to say about one kind of message on one key."""

    #: None: access is not limited.
    access: Explanation | None
    limit: Limit | None
    timers: tuple[Timer, ...]
    overwrites: tuple[Overwrite, ...]

    def sentences(self) -> list[str]:
        """Everything, one line each; empty if the message passes as it is."""
        sentences = [] if self.access is None else [self.access.sentence()]
        if self.limit is not None:
            sentences.append(self.limit.sentence())
        sentences.extend(timer.sentence() for timer in self.timers)
        sentences.extend(overwrite.sentence() for overwrite in self.overwrites)
        return sentences


@final
class PolicyGate:
    """What is done to the messages of one neighbour in one flow."""

    __slots__ = (
        "_access",
        "_cost",
        "_downsamplers",
        "_flow",
        "_low_pass",
        "_overwrites",
        "_rulings",
        "counters",
        "kinds",
        "rewrites",
        "stopped",
    )

    def __init__(
        self,
        flow: int,
        access: Access | None,
        low_pass: LowPass,
        downsamplers: list[Downsampler],
        overwrites: list[Overwrite],
    ) -> None:
        """`access`: None if nothing can be refused."""
        self._flow: int = flow
        self._access: Access | None = access
        self._low_pass: LowPass = low_pass
        self._downsamplers: list[Downsampler] = downsamplers
        self._overwrites: list[Overwrite] = overwrites
        self._rulings: list[dict[str, Ruling]] = [{} for _ in KINDS]
        self._cost: int = 0
        self.counters: PolicyCounters = PolicyCounters()
        #: Called with each message that is stopped: its reason, kind and key.
        self.stopped: Callable[[str, int, str], None] | None = None
        kinds = low_pass.kinds | (_ALL if access is not None else 0)
        for downsampler in downsamplers:
            kinds |= downsampler.kinds
        #: A bit for each kind that may be stopped here, and for each that may be changed.
        self.kinds: int = kinds
        self.rewrites: int = 0
        for overwrite in overwrites:
            self.rewrites |= overwrite.kinds

    def is_idle(self) -> bool:
        """Whether it would let everything pass as it is."""
        return not self.kinds and not self.rewrites

    def judge(self, message: Message, key: str, now: float) -> PolicyVerdict:
        """What to do with a message; `key` is its whole key, empty if it names none."""
        kind = kind_of(message)
        if kind == UNFILTERED or not self.kinds >> kind & 1:
            return PolicyVerdict.PASS
        if not key and is_undeclaration(message):
            # It takes back what was declared under its number; what was refused has none.
            return PolicyVerdict.PASS
        size = 0
        if self._low_pass.kinds >> kind & 1:
            size = payload_size(message) + attachment_size(message)
        return PolicyVerdict.PASS if self.passes(kind, key, size, now) else refusal_of(message)

    def concerns(self, kinds: int) -> bool:
        """Whether it may stop or change messages of one of these kinds, a bit for each."""
        return (self.kinds | self.rewrites) & kinds != 0

    def is_free(self, kind: int, key: str) -> bool:
        """Whether all messages of a kind on a key pass as they are, whatever their size and time.

        Then they need not be checked one by one.
        """
        if not (self.kinds | self.rewrites) >> kind & 1:
            return True
        ruling = self._rulings[kind].get(key)
        if ruling is None:
            ruling = self._rule(kind, key)
        return (
            ruling.allowed
            and ruling.limit == NO_LIMIT
            and not ruling.timers
            and not ruling.overwrites
        )

    def lets(self, kind: int, key: str) -> bool:
        """Whether something that has no size and keeps no time passes: a declaration."""
        return not self.kinds >> kind & 1 or self.passes(kind, key, 0, 0.0)

    def passes(self, kind: int, key: str, size: int, now: float) -> bool:
        """Whether a message passes; `size`: its payload and attachment. Stops are counted."""
        ruling = self._rulings[kind].get(key)
        if ruling is None:
            ruling = self._rule(kind, key)
        if not ruling.allowed:
            self.counters.denied += 1
            return self._stop("denied", kind, key)
        if ruling.limit != NO_LIMIT and size > ruling.limit:
            self.counters.too_large += 1
            return self._stop("too large", kind, key)
        for timer in ruling.timers:
            if not timer.passes(now):
                self.counters.downsampled += 1
                return self._stop("downsampled", kind, key)
        return True

    def permits(self, kind: int, key: str) -> bool:
        """Whether rules of access control let something pass that is also of another kind."""
        ruling = self._rulings[kind].get(key)
        if ruling is None:
            ruling = self._rule(kind, key)
        if ruling.allowed:
            return True
        self.counters.denied += 1
        return self._stop("denied", kind, key)

    def _stop(self, reason: str, kind: int, key: str) -> bool:
        stopped = self.stopped
        if stopped is not None:
            stopped(reason, kind, key)
        return False

    def qos(self, message: Message, key: str, reliable: bool) -> int:
        """The QoS byte that a put, delete or query leaves with; -1 for other messages."""
        if not isinstance(message, (Push, Request, Response)):
            return -1
        kind = kind_of(message)
        before = message.qos
        if not self.rewrites >> kind & 1:
            return before
        ruling = self._rulings[kind].get(key)
        if ruling is None:
            ruling = self._rule(kind, key)
        if not ruling.overwrites:
            return before
        byte = before
        size = payload_size(message)
        for overwrite in ruling.overwrites:
            byte = overwrite.changed(byte, size, reliable)
        if byte != before:
            self.counters.overwritten += 1
        return byte

    def explain(self, kind: int, key: str) -> PolicyAccount:
        """What the gate would do and why; nothing is counted, and no clock moves."""
        access = None if self._access is None else self._access.explain(self._flow, kind, key)
        if not _is_canonical(key):
            return PolicyAccount(access, None, (), ())
        timers, overwrites = self._rules_of(kind, key)
        return PolicyAccount(
            access, self._low_pass.limit_of(kind, key), tuple(timers), tuple(overwrites)
        )

    def writable(self, kind: int, key: str, size: int) -> WritableKeys | None:
        """Return which keys a write of many may change that rules of access control deny.

        None for any other message. `size`: its payload and attachment.
        """
        access = self._access
        if access is None or not is_write_of_many(kind, key) or not _is_canonical(key):
            return None
        if access.permits(self._flow, kind, key):
            return None
        return WritableKeys(access, self._low_pass, self._flow, kind, size)

    def _rules_of(self, kind: int, key: str) -> tuple[list[Timer], list[Overwrite]]:
        timers: list[Timer] = []
        for downsampler in self._downsamplers:
            if downsampler.kinds >> kind & 1:
                timer = downsampler.timer_of(key)
                if timer is not None:
                    timers.append(timer)
        changes = [
            overwrite
            for overwrite in self._overwrites
            if overwrite.kinds >> kind & 1 and overwrite.concerns(key)
        ]
        return timers, changes

    def _rule(self, kind: int, key: str) -> Ruling:
        """Decide about a kind and a key for the first time."""
        if _is_canonical(key):
            access = self._access
            allowed = access is None or access.permits(self._flow, kind, key)
            limit = self._low_pass.limit_of(kind, key) if allowed else None
            timers, changes = self._rules_of(kind, key)
            ruling = Ruling(allowed, NO_LIMIT if limit is None else limit.size, timers, changes)
        else:
            # No rule can speak of it, so where rules decide it does not pass.
            ruling = Ruling(self._access is None, NO_LIMIT, [], [])
        # A neighbour that talks of ever new keys only makes itself wait.
        self._cost += len(key) + RULING_COST
        if self._cost > REMEMBERED:
            for rulings in self._rulings:
                rulings.clear()
            self._cost = len(key) + RULING_COST
        self._rulings[kind][key] = ruling
        return ruling


def _is_canonical(key: str) -> bool:
    try:
        check(key)
    except KeyExprError:
        return False
    return True


@final
class WritableKeys:
    """The keys to which a neighbour may write a value, by the rules of one moment.

    Any thread may ask: nothing is counted or remembered.
    """

    __slots__ = ("_access", "_flow", "_kind", "_low_pass", "_size")

    def __init__(self, access: Access, low_pass: LowPass, flow: int, kind: int, size: int) -> None:
        """`kind`: a put or a deletion; `size`: the bytes of what is put."""
        self._access: Access = access
        self._low_pass: LowPass = low_pass
        self._flow: int = flow
        self._kind: int = kind
        self._size: int = size

    def lets(self, key: str) -> bool:
        """Whether the neighbour may write the value to this very key."""
        if not self._access.permits(self._flow, self._kind, key):
            return False
        limit = self._low_pass.limit_of(self._kind, key)
        return limit is None or self._size <= limit.size


@final
class Interceptors:
    """The two gates of a neighbour, and the keys that it may read.

    A gate that has nothing to do is None; so is `readable` where all keys are.
    """

    __slots__ = ("egress", "ingress", "readable")

    def __init__(
        self,
        ingress: PolicyGate | None,
        egress: PolicyGate | None,
        readable: ReadableKeys | None = None,
    ) -> None:
        """`ingress`: for what it sends to us; `egress`: for what we send to it."""
        self.ingress: PolicyGate | None = ingress
        self.egress: PolicyGate | None = egress
        self.readable: ReadableKeys | None = readable

    def gate(self, flow: int) -> PolicyGate | None:
        """The gate of a flow."""
        return self.egress if flow == EGRESS else self.ingress

    def allows(self, flow: int, kind: int, key: str, now: float) -> bool:
        """Whether a message without payload passes."""
        gate = self.gate(flow)
        return gate is None or gate.passes(kind, key, 0, now)

    def counts(self) -> dict[str, dict[str, int]]:
        """The counters of both flows."""
        idle = PolicyCounters()
        return {
            name: (idle if gate is None else gate.counters).to_dict()
            for name, gate in (("ingress", self.gate(INGRESS)), ("egress", self.gate(EGRESS)))
        }
