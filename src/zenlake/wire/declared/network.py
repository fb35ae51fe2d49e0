"""What travels between nodes inside frames: data, questions, declarations, interests."""

from __future__ import annotations

from zenlake.wire.declared import declare, zenoh
from zenlake.wire.declared.schema import (
    ProtocolPage,
    by_encoding,
    ext,
    flag,
    flag_byte,
    header_bits,
    identity,
    many,
    one_of,
    struct,
    text,
    u8,
    vle,
    z16,
    z32,
    z64,
    zbuf,
    zid,
)  # fmt: skip

PAGE = ProtocolPage("network", "Network messages", "1.x", (declare.PAGE, zenoh.PAGE))

TARGET = {0: "best matching", 1: "all", 2: "all complete"}
MODE = {0: "final", 1: "current", 2: "future", 3: "current and future"}
ROLE_BIT = {1: "router", 2: "peer", 4: "client"}

#: Data priority, drop when congested, not express: what an absent QoS extension means.
DEFAULT_QOS = 0x05


@PAGE.structure
class TimestampRecord:
    """One stamp: where it was taken (1 sent, 2 routed, 4 received) and a serialised timestamp."""

    point = u8()
    stamp = zbuf(32)


@PAGE.structure
class TimestampStack:
    """The stamps that a message collects on its way, and where it collects them."""

    points = u8()
    records = many(struct("TimestampRecord"), limit=0xFF)


@PAGE.structure
class Responder:
    """Which entity answered."""

    zid = identity()
    eid = z32(wrap=True)


@PAGE.message(0x1D, "N M Z", head="body")
class Push:
    """A sample on its way to subscribers."""

    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    node_id = ext(0x33, vle(16, wrap=True), default=0)
    timestamp_stack = ext(0x47, struct("TimestampStack"))
    body = one_of("Put", "Del")


@PAGE.message(0x1C, "N M Z")
class Request:
    """A question on its way to queryables."""

    id = z32()
    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    target = ext(0x34, vle(64, legal=TARGET, names=TARGET), default=0)
    budget = ext(0x25, vle(32, wrap=True), default=0).says("at most so many answers; 0: any")
    timeout = ext(0x26, z64(), default=0).says("milliseconds; 0: the node's own default")
    node_id = ext(0x33, vle(16, wrap=True), default=0)
    timestamp_stack = ext(0x47, struct("TimestampStack"))
    body = one_of("Query")


@PAGE.message(0x1B, "N M Z", head="body")
class Response:
    """One answer on its way back."""

    id = z32()
    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    responder = ext(0x43, struct("Responder"))
    timestamp_stack = ext(0x47, struct("TimestampStack"))
    body = one_of("Reply", "Err")


@PAGE.message(0x1A)
class ResponseFinal:
    """There will be no more answers."""

    id = z32()
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))


@PAGE.message(0x1E, "I - Z")
class Declare:
    """One declaration, perhaps in answer to an interest."""

    interest_id = z32(wrap=True).when("I", default=None)
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    node_id = ext(0x33, vle(16, wrap=True), default=0)
    body = one_of(
        "DeclareKeyExpr", "UndeclareKeyExpr", "DeclareSubscriber", "UndeclareSubscriber",
        "DeclareQueryable", "UndeclareQueryable", "DeclareToken", "UndeclareToken", "DeclareFinal",
    )  # fmt: skip


@PAGE.message(0x19, "- - Z")
class Interest:
    """Tell me what there is (current), what there will be (future), or no more (final)."""

    mode = header_bits(MODE)
    id = z32(wrap=True)
    options = flag_byte("K S Q T R N M A").unless("mode", 0)
    key_exprs = flag("K").says("you may use ids towards me")
    subscribers = flag("S")
    queryables = flag("Q")
    tokens = flag("T")
    restricted = flag("R").says("only what matches the key")
    scope = z16().unless("mode", 0).when("R")
    suffix = text(16).unless("mode", 0).when("R").when("N")
    sender_mapping = flag("M", default=True, within="R")
    aggregate = flag("A").says("one answer for all that matches")
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    node_id = ext(0x33, vle(16, wrap=True), default=0)


@PAGE.message(0x1F, "- - Z")
class Oam:
    """Operation and maintenance: id 1 carries link states."""

    id = z16()
    qos = ext(0x21, vle(8, wrap=True), default=DEFAULT_QOS)
    timestamp = ext(0x42, struct("Timestamp"))
    body = by_encoding()


@PAGE.structure
class LinkState:
    """What one node says of another: who it is, where it listens, whom it is linked to."""

    options = flag_byte("P W L H G", form="vle")
    psid = z64().says("the node's number in the sender's own counting")
    sn = z64().says("the larger is the newer")
    zid = zid().when("P")
    whatami = u8(names=ROLE_BIT, legal=(1, 2, 4)).when("W")
    locators = many(text(8)).when("L", default=None)
    links = many(z64())
    weights = many(z16(), like="links").when("H")
    gateway = flag("G")


@PAGE.structure
class LinkStates:
    """The body of an Oam message with id 1."""

    entries = many(struct("LinkState"))
