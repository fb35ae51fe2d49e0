"""What one neighbour may have of a node, and all of them together."""

from __future__ import annotations

from typing import Final

from zenlake.records import record
from zenlake.transport.budget import NO_LIMIT


@record(frozen=True, slots=True)
class ResourceLimits:
    """What neighbours may have; bytes, numbers, and seconds."""

    #: Of one session: subscribers, queryables and tokens together; interests; what these cost.
    declarations: int = 100_000
    interests: int = 10_000
    memory: int = 256 << 20
    #: Of a key that is declared: characters and chunks.
    key_length: int = 65_535
    key_chunks: int = 256
    #: Of one session: filters of subscribers that are asked before samples are sent to it.
    filters: int = 64
    #: Of one session: queries in flight, and the queryables that all of these were sent to.
    queries: int = 10_000
    questions: int = 50_000
    #: Of one session: bytes that wait to be sent to it, and of messages that it has not finished.
    waiting: int = 64 << 20
    fragments: int = 1 << 30
    #: How often as much a router may have: it speaks for all behind it.
    routers: int = 4
    #: The links of all routers that are on the map.
    links: int = 16_384
    #: Of one address: sessions, and sessions that are not open yet.
    sessions: int = 512
    openings: int = 64
    #: What a session may send in a second; 0: as much as it can.
    messages_a_second: int = 0
    bytes_a_second: int = 0
    #: How much is handled of one session before the others have their turn.
    turn_messages: int = 1000
    turn_seconds: float = 0.0003
    #: Of all sessions together, in bytes.
    all_memory: int = 1 << 30
    all_waiting: int = 256 << 20
    all_fragments: int = 1 << 30


#: What holds where nothing was configured.
DEFAULTS: Final = ResourceLimits()
#: What holds for faces whose rows others pay for.
NO_LIMITS: Final = ResourceLimits(
    declarations=NO_LIMIT, interests=NO_LIMIT, memory=NO_LIMIT, queries=NO_LIMIT, questions=NO_LIMIT
)


def key_excess(key: str, limits: ResourceLimits) -> str:
    """What a key that is declared has too much of; empty: nothing."""
    if len(key) > limits.key_length:
        return (
            f"a key of {len(key)} characters, {limits.key_length} are allowed "
            "(limits/session/key_length)"
        )
    if key.count("/") >= limits.key_chunks:
        return (
            f"a key of {key.count('/') + 1} chunks, {limits.key_chunks} are allowed "
            "(limits/session/key_chunks)"
        )
    return ""
