"""QoS overwrite: the configuration decides what programs chose, by key.

`qos/network` changes messages that pass: every item that matches a message changes it, one after
the other, and each sees what the one before it made. `qos/publication` changes the options of this
node's own publishers: the first item with a key that includes the publisher's counts alone.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.config.model_interceptors import (
    NetworkQos,
    PublicationOptions,
    PublicationQos,
    QosFilter,
    QosOverwrite,
)
from zenlake.keys.matching import includes
from zenlake.keys.tree import KeyTree
from zenlake.routing.policy.messages import KINDS, flows_of
from zenlake.routing.policy.subject import Subject
from zenlake.values.qos import CongestionControl, Priority, QoS

__all__ = ["Overwrite", "PublicationOverwrites", "overwrites"]

_PRIORITY: Final = 0x07
_BLOCK: Final = 0x08
_EXPRESS: Final = 0x10
_BLOCK_FIRST: Final = 0x20
_CONGESTION: Final = _BLOCK | _BLOCK_FIRST


@final
class Overwrite:
    """One item of `qos/network`."""

    __slots__ = (
        "_change",
        "_congestion",
        "_express",
        "_keys",
        "_least",
        "_most",
        "_priority",
        "_qos",
        "_reliable",
        "kinds",
        "label",
    )

    def __init__(self, item: NetworkQos, label: str) -> None:
        """`label`: how messages call the item."""
        self.label: str = label
        #: A bit for each kind of message that it concerns.
        self.kinds: int = 0
        for message in item.messages:
            self.kinds |= 1 << KINDS.index(message)
        #: It concerns keys included in one of these; None: all.
        self._keys: KeyTree[bool] | None = None
        if item.key_exprs is not None:
            self._keys = KeyTree()
            for key_expr in item.key_exprs:
                self._keys.insert(str(key_expr), True)
        self._change: QosOverwrite = item.overwrite
        # What a message must have already; -1: anything.
        wanted = item.qos if item.qos is not None else QosFilter()
        self._priority: int = -1 if wanted.priority is None else _priority(wanted.priority)
        self._congestion: int = (
            -1 if wanted.congestion_control is None else _congestion(wanted.congestion_control)
        )
        self._express: int = -1 if wanted.express is None else int(wanted.express)
        self._reliable: int = -1 if wanted.reliability is None else wanted.reliability == "reliable"
        self._least, self._most = _range(item.payload_size)

    def concerns(self, key: str) -> bool:
        """Whether messages on this key may be changed."""
        return self._keys is None or bool(self._keys.including(key))

    def changed(self, byte: int, payload: int, reliable: bool) -> int:
        """The QoS byte of a message after it, given the size of its payload."""
        qos = QoS.from_byte(byte)
        if self._priority >= 0 and byte & _PRIORITY != self._priority:
            return byte
        if self._congestion >= 0 and _bits(qos.congestion_control) != self._congestion:
            return byte
        if self._express >= 0 and int(qos.express) != self._express:
            return byte
        if self._reliable >= 0 and int(reliable) != self._reliable:
            return byte
        if payload < self._least or (self._most >= 0 and payload > self._most):
            return byte
        change = self._change
        if change.priority is not None:
            byte = byte & ~_PRIORITY | _moved(byte & _PRIORITY, change.priority)
        if change.congestion_control is not None:
            byte = byte & ~_CONGESTION | _congestion(change.congestion_control)
        if change.express is not None:
            byte = byte | _EXPRESS if change.express else byte & ~_EXPRESS
        return byte

    def sentence(self) -> str:
        """What it does, in one line."""
        change = self._change
        parts = [
            f"{name} {value}"
            for name, value in (
                ("priority", change.priority),
                ("congestion control", change.congestion_control),
                ("express", change.express),
            )
            if value is not None
        ]
        return f"QoS overwrite {self.label} sets {', '.join(parts) or 'nothing'}"


def overwrites(items: tuple[NetworkQos, ...], who: Subject, flow: int) -> list[Overwrite]:
    """The items that concern a neighbour and a flow, in the order of the file."""
    return [
        Overwrite(item, f"'{item.id}'" if item.id is not None else f"number {number}")
        for number, item in enumerate(items, start=1)
        if flow in flows_of(item.flows)
        and who.is_among(item.interfaces, item.link_protocols, item.zids)
    ]


@final
class PublicationOverwrites:
    """The list `qos/publication`."""

    __slots__ = ("_items",)

    def __init__(self, items: tuple[PublicationQos, ...]) -> None:
        """Read the list."""
        self._items: list[tuple[list[str], PublicationOptions]] = [
            ([str(key_expr) for key_expr in item.key_exprs], item.config) for item in items
        ]

    def options_of(self, key: str) -> PublicationOptions | None:
        """What replaces the choices of a publisher on `key`, or None to leave them alone."""
        for key_exprs, options in self._items:
            if any(includes(key_expr, key) for key_expr in key_exprs):
                return options
        return None

    def changed(self, key: str, byte: int) -> int:
        """The QoS byte of a publisher on `key` that chose `byte`."""
        options = self.options_of(key)
        if options is None:
            return byte
        if options.priority is not None:
            byte = byte & ~_PRIORITY | _priority(options.priority)
        if options.congestion_control is not None:
            byte = byte & ~_CONGESTION | _congestion(options.congestion_control)
        if options.express is not None:
            byte = byte | _EXPRESS if options.express else byte & ~_EXPRESS
        return byte


def _priority(name: str) -> int:
    return int(Priority[name.upper()])


def _moved(priority: int, change: str | int) -> int:
    """A lane by name, or some lanes further down; no data ever gets into the nodes' own lane."""
    if isinstance(change, str):
        return _priority(change)
    return max(int(Priority.REAL_TIME), min(int(Priority.BACKGROUND), priority + change))


def _congestion(name: str) -> int:
    return _bits(CongestionControl[name.upper()])


def _bits(congestion: CongestionControl) -> int:
    if congestion is CongestionControl.BLOCK:
        return _BLOCK
    return _BLOCK_FIRST if congestion is CongestionControl.BLOCK_FIRST else 0


def _range(text: str | None) -> tuple[int, int]:
    """The least and the most bytes of `least..most`, both included; -1: no most."""
    if text is None:
        return 0, -1
    least, _, most = text.partition("..")
    return int(least) if least else 0, int(most) if most else -1
