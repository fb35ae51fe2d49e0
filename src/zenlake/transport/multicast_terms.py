"""The terms that the members of a multicast group agree on."""

from __future__ import annotations

from zenlake.records import record

__all__ = ["MulticastTerms"]


@record(frozen=True, slots=True)
class MulticastTerms:
    """The terms that a node announces to a group and requires of its other members."""

    zid: bytes
    whatami: int
    resolution: int
    batch_size: int
    lease: int
    """In milliseconds."""
    qos: bool
    join_interval: float
    """In seconds."""
    max_members: int
    max_message: int
    initial_sn: int
