"""What neighbours may have of a node's memory: each for itself, and all together.

A neighbour that asks for more than its own limit is refused. When all together have reached theirs,
those are refused that have as much as the average or more: one that has little is not in the way of
others, and does not pay for one that has much. So what all have stays near the limit of all,
however many come.
"""

from __future__ import annotations

from typing import Final, final

NO_LIMIT: Final = 1 << 62


@final
class MemoryPool:
    """What all neighbours of a node have together."""

    __slots__ = ("limit", "members", "used")

    def __init__(self, limit: int = NO_LIMIT) -> None:
        """Nothing is charged yet; `limit` in bytes."""
        self.limit: int = limit
        self.used: int = 0
        #: How many share it.
        self.members: int = 0

    def is_crowded_by(self, used: int) -> bool:
        """Whether the pool is full, and who has `used` of it has no less than the average."""
        return self.used > self.limit and used * self.members >= self.used


@final
class MemoryAccount:
    """What one neighbour has."""

    __slots__ = ("limit", "open", "pool", "used")

    def __init__(self, limit: int = NO_LIMIT, pool: MemoryPool | None = None) -> None:
        """It has nothing; `limit` in bytes."""
        self.limit: int = limit
        self.pool: MemoryPool = MemoryPool() if pool is None else pool
        self.used: int = 0
        self.open: bool = True
        self.pool.members += 1

    def charge(self, cost: int) -> bool:
        """Take so much more; False, and nothing is taken, if that is too much."""
        pool = self.pool
        used = self.used + cost
        if used > self.limit or (pool.used + cost > pool.limit and used * pool.members > pool.used):
            return False
        self.used = used
        pool.used += cost
        return True

    def refund(self, cost: int) -> None:
        """Give so much back."""
        if self.open:
            self.used -= cost
            self.pool.used -= cost

    def close(self) -> None:
        """Give all back, and be no member any more."""
        self.refund(self.used)
        if self.open:
            self.open = False
            self.pool.members -= 1
