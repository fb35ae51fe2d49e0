"""Places or bytes that clients share: a total, and the part of it that one of them may hold.

A holder is an address, or, where a service says so, a user.

One address holds at most three quarters, so that others always find room. Clients behind one proxy
are one address. An IPv6 client can use any address of its network: there the first 64 bits count.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

__all__ = ["Holding", "Shares", "holder_of"]


def holder_of(address: str) -> str:
    """Return what an address is counted as: itself, or its network of 64 bits for IPv6."""
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> 64 << 64))


class Shares:
    """An amount of something, held by addresses."""

    __slots__ = ("_held", "guard", "most", "most_of_one", "taken")

    def __init__(self, most: int, guard: AbstractContextManager[Any] | None = None) -> None:
        """At most `most` in total; `guard`: a lock, if several threads change a `Holding`."""
        self.most = most
        self.guard: AbstractContextManager[Any] = nullcontext() if guard is None else guard
        #: What one address may hold.
        self.most_of_one = most - most // 4
        #: What is held in total.
        self.taken = 0
        self._held: Counter[str] = Counter()

    def refusal(self, holder: str, amount: int = 1) -> str:
        """Return who has all that may be taken, "all" or "address"; empty if there is room."""
        if self.taken + amount > self.most:
            return "all"
        return "address" if self._held.get(holder, 0) + amount > self.most_of_one else ""

    def take(self, holder: str, amount: int = 1) -> bool:
        """Take an amount; False where there is no room, and nothing is taken."""
        if self.refusal(holder, amount):
            return False
        self.force(holder, amount)
        return True

    def force(self, holder: str, amount: int) -> None:
        """Take an amount that is there already, whether or not there is room."""
        self._held[holder] += amount
        self.taken += amount

    def give_back(self, holder: str, amount: int = 1) -> None:
        """Return an amount that was taken."""
        self.taken -= amount
        left = self._held[holder] - amount
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]

    @property
    def holders(self) -> int:
        """How many addresses hold something."""
        return len(self._held)


@final
class Holding:
    """What one thing holds of `Shares`: an amount that grows and shrinks."""

    __slots__ = ("_holder", "_is_over", "_shares", "amount")

    def __init__(self, shares: Shares, holder: str) -> None:
        """Nothing is held; `holder`: an address, as `holder_of` counts it."""
        self._shares = shares
        self._holder = holder
        self._is_over = False
        #: What is held.
        self.amount = 0

    def hold(self, amount: int) -> bool:
        """Hold an amount instead of what was held; False: no room, and nothing changes."""
        return amount == self.amount or self._change(amount, force=False)

    def force(self, amount: int) -> None:
        """Hold an amount that is there already, whether or not there is room."""
        if amount != self.amount:
            self._change(amount, force=True)

    def close(self) -> None:
        """Hold nothing from now on; whoever asks finds no room."""
        with self._shares.guard:
            self._is_over = True
            self._shares.give_back(self._holder, self.amount)
            self.amount = 0

    def _change(self, amount: int, force: bool) -> bool:
        shares = self._shares
        with shares.guard:
            if self._is_over:
                return force
            change = amount - self.amount
            if change < 0:
                shares.give_back(self._holder, -change)
            elif force:
                shares.force(self._holder, change)
            elif not shares.take(self._holder, change):
                return False
            self.amount = amount
            return True
