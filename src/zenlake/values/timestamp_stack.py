"""Times taken along the way of a message, when its sender asked for them."""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from zenlake.clock import Timestamp, ZenohId
from zenlake.errors import LocalError
from zenlake.values.whatami import WhatAmI

__all__ = [
    "InterceptionPoint",
    "TimestampContext",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
]

_ALL_POINTS: Final = 0b111


class InterceptionPoint(Enum):
    """Where a time is taken; the value is its flag on the wire."""

    SEND = 1
    ROUTE = 2
    RECEIVE = 4

    def __repr__(self) -> str:
        return str(self)


@final
class TimestampInstrumentation:
    """The points where a message is to be stamped: at least one."""

    __slots__ = ("_flags",)

    def __init__(self, flags: int) -> None:
        """Take the flags of the wire; bits without a meaning are ignored."""
        if not flags & _ALL_POINTS:
            raise LocalError("no point is chosen; call set_send, set_route or set_receive(True)")
        self._flags: int = flags & _ALL_POINTS

    @property
    def flags(self) -> int:
        """The flags on the wire."""
        return self._flags

    def is_instrumented(self, /, point: InterceptionPoint) -> bool:
        """Whether a time is taken at `point`."""
        return self._flags & point.value != 0

    def __repr__(self) -> str:
        names = [point.name for point in InterceptionPoint if self.is_instrumented(point)]
        return f"<TimestampInstrumentation {'|'.join(names)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimestampInstrumentation) and self._flags == other._flags

    def __hash__(self) -> int:
        return hash(self._flags)

    def __reduce__(self) -> tuple[type[TimestampInstrumentation], tuple[int]]:
        return TimestampInstrumentation, (self._flags,)


@final
class TimestampInstrumentationBuilder:
    """Chooses the points one by one."""

    __slots__ = ("_flags",)

    def __init__(self) -> None:
        self._flags: int = 0

    def set_send(self, /, enabled: bool) -> TimestampInstrumentationBuilder:
        """Take the time where the message is sent, or do not.

        Args:
            enabled: False takes it back.
        """
        return self._set(InterceptionPoint.SEND, enabled)

    def set_route(self, /, enabled: bool) -> TimestampInstrumentationBuilder:
        """Take the time where the message is passed on, or do not.

        Args:
            enabled: False takes it back.
        """
        return self._set(InterceptionPoint.ROUTE, enabled)

    def set_receive(self, /, enabled: bool) -> TimestampInstrumentationBuilder:
        """Take the time where the message arrives, or do not.

        Args:
            enabled: False takes it back.
        """
        return self._set(InterceptionPoint.RECEIVE, enabled)

    def build(self, /) -> TimestampInstrumentation:
        """The points chosen; at least one must be."""
        return TimestampInstrumentation(self._flags)

    def _set(self, point: InterceptionPoint, enabled: bool) -> TimestampInstrumentationBuilder:
        self._flags = self._flags | point.value if enabled else self._flags & ~point.value
        return self


@final
class TimestampStackRecord:
    """One time, and where it was taken."""

    __slots__ = ("_point", "_timestamp")

    def __init__(self, point: InterceptionPoint, timestamp: Timestamp | bytes) -> None:
        self._point: InterceptionPoint = point
        self._timestamp: Timestamp | bytes = timestamp

    @property
    def point(self) -> InterceptionPoint:
        """Where the time was taken."""
        return self._point

    @property
    def is_custom(self) -> bool:
        """Whether a program there told the time in a form of its own."""
        return isinstance(self._timestamp, bytes)

    def timestamp(self, /) -> Timestamp | bytes:
        """The time; bytes when a program there told it in a form of its own."""
        return self._timestamp

    def __repr__(self) -> str:
        return f"TimestampStackRecord({self._point}, {self._timestamp!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TimestampStackRecord)
            and self._point is other._point
            and self._timestamp == other._timestamp
        )

    def __hash__(self) -> int:
        return hash((self._point, self._timestamp))

    def __reduce__(
        self,
    ) -> tuple[type[TimestampStackRecord], tuple[InterceptionPoint, Timestamp | bytes]]:
        return TimestampStackRecord, (self._point, self._timestamp)


@final
class TimestampStack:
    """All times taken so far, first one first."""

    __slots__ = ("_instrumentation", "_records")

    def __init__(
        self,
        instrumentation: TimestampInstrumentation,
        records: tuple[TimestampStackRecord, ...] = (),
    ) -> None:
        self._instrumentation: TimestampInstrumentation = instrumentation
        self._records: tuple[TimestampStackRecord, ...] = tuple(records)

    @property
    def instrumentation(self) -> TimestampInstrumentation:
        """The points the sender chose."""
        return self._instrumentation

    @property
    def records(self) -> list[TimestampStackRecord]:
        """The times, first one first."""
        return list(self._records)

    def __repr__(self) -> str:
        return f"TimestampStack({self._instrumentation!r}, {self._records!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TimestampStack)
            and self._instrumentation == other._instrumentation
            and self._records == other._records
        )

    def __hash__(self) -> int:
        return hash((self._instrumentation, self._records))

    def __reduce__(
        self,
    ) -> tuple[
        type[TimestampStack], tuple[TimestampInstrumentation, tuple[TimestampStackRecord, ...]]
    ]:
        return TimestampStack, (self._instrumentation, self._records)


@final
class TimestampContext:
    """What a program is told that tells the time in a form of its own."""

    __slots__ = ("_whatami", "_zid")

    def __init__(self, zid: ZenohId, whatami: WhatAmI) -> None:
        self._zid: ZenohId = zid
        self._whatami: WhatAmI = whatami

    @property
    def zid(self) -> ZenohId:
        """The node that takes the time."""
        return self._zid

    @property
    def whatami(self) -> WhatAmI:
        """What that node is."""
        return self._whatami

    def __repr__(self) -> str:
        return f"TimestampContext(ZenohId.parse('{self._zid}'), {self._whatami!r})"

    def __reduce__(self) -> tuple[type[TimestampContext], tuple[ZenohId, WhatAmI]]:
        return TimestampContext, (self._zid, self._whatami)
