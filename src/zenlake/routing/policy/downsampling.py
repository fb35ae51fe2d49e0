"""Downsampling: of the messages on some keys, only so many a second pass.

Each item of the configuration has a list of rules. The first rule whose key intersects the
message's key counts: the message passes if the last one that passed by the same rule is a period
ago. A rule has one clock for a neighbour and a flow, shared by all keys that it matches, and a
message must pass every item that concerns it.
"""

from __future__ import annotations

import math
from typing import Final, final

from zenlake.config.model_interceptors import Downsampling
from zenlake.keys.tree import KeyTree
from zenlake.routing.policy.messages import KINDS, flows_of
from zenlake.routing.policy.subject import Subject

__all__ = ["Downsampler", "Timer", "downsamplers"]

# A tenth of a second has no exact float: 0.3 - 0.2 is less than 0.1.
_TOLERANCE: Final = 1e-9


@final
class Timer:
    """The clock of one rule, for one neighbour and flow."""

    __slots__ = ("_last", "freq", "key_expr", "label", "period")

    def __init__(self, label: str, key_expr: str, freq: float) -> None:
        """`label`: the item it belongs to; `freq`: passes a second, 0 for none at all."""
        self.label: str = label
        self.key_expr: str = key_expr
        self.freq: float = freq
        self.period: float = 1.0 / freq if freq > 0.0 else math.inf
        self._last: float = -math.inf

    def passes(self, now: float) -> bool:
        """Whether a message passes at `now`; if so, the period begins anew."""
        if self.freq <= 0.0 or now - self._last < self.period - _TOLERANCE:
            return False
        self._last = now
        return True

    def sentence(self) -> str:
        """What it does, in one line."""
        return f"downsampling {self.label} lets {self.freq:g} a second pass by {self.key_expr}"


@final
class Downsampler:
    """One item of the configuration, for one neighbour and flow."""

    __slots__ = ("_places", "kinds", "timers")

    def __init__(self, kinds: int, timers: list[Timer]) -> None:
        """`kinds`: a bit for each kind of message that it concerns; `timers`: one for each rule."""
        self.kinds: int = kinds
        self.timers: list[Timer] = timers
        self._places: KeyTree[int] = KeyTree()
        for place, timer in enumerate(timers):
            if timer.key_expr not in self._places:
                self._places.insert(timer.key_expr, place)

    def timer_of(self, key: str) -> Timer | None:
        """The clock of the first rule that intersects `key`."""
        places = [entry.value for entry in self._places.intersecting(key)]
        return self.timers[min(places)] if places else None


def downsamplers(items: tuple[Downsampling, ...], who: Subject, flow: int) -> list[Downsampler]:
    """New clocks for a neighbour; a multicast group has none."""
    if who.multicast:
        return []
    return [
        Downsampler(
            _kinds(item.messages),
            [
                Timer(
                    f"'{item.id}'" if item.id is not None else f"number {number}",
                    str(rule.key_expr),
                    rule.freq,
                )
                for rule in item.rules
            ],
        )
        for number, item in enumerate(items, start=1)
        if flow in flows_of(item.flows) and who.is_among(item.interfaces, item.link_protocols)
    ]


def _kinds(messages: tuple[str, ...]) -> int:
    kinds = 0
    for message in messages:
        kinds |= 1 << KINDS.index(message)
    return kinds
