"""The keys under `limits`: what neighbours may have of this node, each and all together."""

from typing import Annotated

from zenlake.config.declare import key, section
from zenlake.config.shape import Whole

__all__ = ["LimitSettings"]

Some = Annotated[int, Whole("", 1)]
Maybe = Annotated[int, Whole("", 0)]
SomeBytes = Annotated[int, Whole("bytes", 1)]
MaybeBytes = Annotated[int, Whole("bytes", 0)]

_BY = "zenlake.engine.settings.limits_of"


@section
class SessionLimits:
    """What one session may have; a neighbour that declares more is cut."""

    declarations: Some = key(
        100_000, "Subscribers, queryables and liveliness tokens together.", honoured_by=_BY
    )
    interests: Some = key(10_000, "Interests: publishers and queriers, mostly.", honoured_by=_BY)
    memory: SomeBytes = key(
        268_435_456,
        "What all that it declared costs: a row for each, a node of the tree for each chunk.",
        honoured_by=_BY,
    )
    key_length: Some = key(
        65_535, "Characters of a key that is declared; longer ones are ignored.", honoured_by=_BY
    )
    key_chunks: Some = key(
        256, "Chunks of a key that is declared; keys with more are ignored.", honoured_by=_BY
    )
    filters: Maybe = key(
        64,
        "Filters of its subscribers that a router asks before it sends samples; a subscriber with "
        "a further one is sent everything, and so is everyone with 0.",
        honoured_by=_BY,
    )
    queries: Some = key(
        10_000, "Queries in flight; further ones end without replies.", honoured_by=_BY
    )
    questions: Some = key(
        50_000,
        "Queries in flight, counted for each node that they went to; further ones end at once.",
        honoured_by=_BY,
    )
    waiting: SomeBytes = key(
        67_108_864,
        "What may wait to be sent to it, of what is not dropped; then it is cut.",
        honoured_by=_BY,
    )
    fragments: SomeBytes = key(
        1_073_741_824, "Messages that it began and has not finished.", honoured_by=_BY
    )
    routers: Some = key(
        4, "How often as much a router may have: it speaks for all behind it.", honoured_by=_BY
    )
    messages_per_second: Maybe = key(
        0, "Messages that are read in a second, the others later; 0: all.", honoured_by=_BY
    )
    bytes_per_second: MaybeBytes = key(
        0, "Bytes that are read in a second, the others later; 0: all.", honoured_by=_BY
    )


@section
class AddressLimits:
    """What those may have together that connect from one address."""

    sessions: Some = key(512, "Open sessions; further ones are refused.", honoured_by=_BY)
    openings: Some = key(
        64,
        "Sessions that are not open yet; one more displaces the one that has waited longest.",
        honoured_by=_BY,
    )


@section
class NodeLimits:
    """What all sessions may have together; beyond it, who has most gets no more."""

    memory: SomeBytes = key(1_073_741_824, "What all that was declared costs.", honoured_by=_BY)
    waiting: SomeBytes = key(268_435_456, "What waits to be sent.", honoured_by=_BY)
    fragments: SomeBytes = key(
        1_073_741_824, "Messages that were begun and are not finished.", honoured_by=_BY
    )
    links: Some = key(
        16_384,
        "Links between other routers; who tells of more is cut.",
        honoured_by=_BY,
    )
    turn_messages: Some = key(
        1000, "Messages of one link that are handled before others have theirs.", honoured_by=_BY
    )
    turn_microseconds: Annotated[int, Whole("microseconds", 100)] = key(
        300,
        "How long one link is handled before others have their turn; declarations a third of it.",
        honoured_by=_BY,
    )


@section
class LimitSettings:
    """What neighbours may have of this node."""

    session: SessionLimits = key(SessionLimits, "What one session may have.")
    address: AddressLimits = key(AddressLimits, "What the sessions of one address may have.")
    node: NodeLimits = key(NodeLimits, "What all sessions may have together.")
