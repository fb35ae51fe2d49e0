"""What is carried: values, deletions, questions and answers (bodies of network messages)."""

from __future__ import annotations

from zenlake.wire.declared.schema import (
    ProtocolPage,
    ext,
    identity,
    many,
    ntp64,
    one_of,
    rest,
    struct,
    text,
    u8,
    unit,
    vle,
    z32,
    zbuf,
    zid,
)  # fmt: skip

PAGE = ProtocolPage("zenoh", "Zenoh bodies", "1.x")

CONSOLIDATION = {0: "auto", 1: "none", 2: "monotonic", 3: "latest"}


@PAGE.structure
class Timestamp:
    """When, and by whose clock: 32 bits of seconds since 1970, 32 bits of fraction, a node id."""

    time = ntp64()
    id = zid()


@PAGE.structure
class SourceInfo:
    """Which entity published this, and its how-manieth publication it is."""

    zid = identity()
    eid = z32(wrap=True)
    sn = z32(wrap=True)


@PAGE.structure
class Slice:
    """A piece of a payload in shared memory (1) or in line (0)."""

    kind = u8(names={0: "in line", 1: "shared memory"})
    data = zbuf(32)


@PAGE.structure
class QueryBody:
    """A value that travels with a question."""

    encoding = vle(32, low_flag="S", mask=0xFFFF)
    schema = zbuf(8).when("S")
    payload = rest()


@PAGE.message(0x01, "T E Z", keeps_unknown=True, head="payload")
class Put:
    """A value."""

    timestamp = struct("Timestamp").when("T")
    encoding = vle(32, low_flag="S", mask=0xFFFF).when("E")
    schema = zbuf(8).when("E").when("S")
    source_info = ext(0x41, struct("SourceInfo"))
    shm = ext(0x12, unit()).says("the payload is sliced: shared memory")
    attachment = ext(0x43, rest())
    payload = zbuf(32).unless("shm")
    slices = many(struct("Slice"), limit=0xFFFF_FFFF).given("shm")


@PAGE.message(0x02, "T - Z", keeps_unknown=True)
class Del:
    """A deletion."""

    timestamp = struct("Timestamp").when("T")
    source_info = ext(0x41, struct("SourceInfo"))
    attachment = ext(0x42, rest())


@PAGE.message(0x03, "C P Z", keeps_unknown=True)
class Query:
    """A question."""

    consolidation = vle(64, names=CONSOLIDATION).when("C")
    parameters = text(64).when("P")
    source_info = ext(0x41, struct("SourceInfo"))
    shm = ext(0x04, unit()).says("the body's payload is sliced: shared memory")
    body = ext(0x43, struct("QueryBody"))
    attachment = ext(0x45, rest())


@PAGE.message(0x04, "C - Z", keeps_unknown=True)
class Reply:
    """An answer: a value or a deletion."""

    consolidation = vle(64, names=CONSOLIDATION).when("C")
    body = one_of("Put", "Del")


@PAGE.message(0x05, "- E Z", keeps_unknown=True)
class Err:
    """An answer that says why there is none."""

    encoding = vle(32, low_flag="S", mask=0xFFFF).when("E")
    schema = zbuf(8).when("E").when("S")
    source_info = ext(0x41, struct("SourceInfo"))
    shm = ext(0x12, unit()).says("the payload is sliced: shared memory")
    payload = zbuf(32).unless("shm")
    slices = many(struct("Slice"), limit=0xFFFF_FFFF).given("shm")
