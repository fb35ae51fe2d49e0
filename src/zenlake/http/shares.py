"""Places or bytes that clients share: a total, and the part of it that one address may hold.

One address holds at most three quarters, so that others always find room. Clients behind one proxy
are one address. An IPv6 client can use any address of its network: there the first 64 bits count.
"""

from __future__ import annotations

import ipaddress
from collections import Counter

__all__ = ["Shares", "holder_of"]


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

    __slots__ = ("_held", "most", "most_of_one", "taken")

    def __init__(self, most: int) -> None:
        """At most `most` in total."""
        self.most = most
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
        self._held[holder] += amount
        self.taken += amount
        return True

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
