"""How two neighbours speak: opening, closing, keeping alive, and the frames in between."""

from __future__ import annotations

from zenlake.wire.declared import network, zenoh
from zenlake.wire.declared.schema import (
    Field,
    ProtocolPage,
    by_encoding,
    ext,
    flag,
    identity,
    lease,
    many,
    messages,
    rest,
    u8,
    u16,
    unit,
    vle,
    z16,
    z32,
    z64,
    zbuf,
)  # fmt: skip

PAGE = ProtocolPage("transport", "Transport messages", "1.x", (network.PAGE, zenoh.PAGE))

VERSION = 9
ROLE = {0: "router", 1: "peer", 2: "client"}
REASON = {
    0: "generic", 1: "unsupported", 2: "invalid", 3: "too many sessions", 4: "too many links",
    5: "expired", 6: "unresponsive", 7: "connection to self",
}  # fmt: skip
PRIORITY = {
    0: "control", 1: "real time", 2: "interactive high", 3: "interactive low", 4: "data high",
    5: "data", 6: "data low", 7: "background",
}  # fmt: skip

#: Bits 1:0 how long sequence numbers are, bits 3:2 how long request ids are; 0b10 is 32 bits.
DEFAULT_RESOLUTION = 0x0A


def lane(header: int) -> Field:
    """The priority lane of a frame, as an extension."""
    return ext(header, vle(64, mask=7, names=PRIORITY), default=5)


@PAGE.message(0x01, "A S Z", A=False)
class InitSyn:
    """Here I am: the first message of the side that connects."""

    version = u8()
    identity = identity("whatami", 2, legal=ROLE, names=ROLE)
    resolution = u8(mask=0x3F).when("S", default=DEFAULT_RESOLUTION)
    batch_size = u16().when("S", default=0xFFFF)
    qos = ext(0x01, unit()).says("priority lanes wanted")
    qos_link = ext(0x21, z64(), default=0).says("lanes wanted, and what this link is for")
    shm = ext(0x42, rest())
    auth = ext(0x43, rest())
    multilink = ext(0x44, rest())
    low_latency = ext(0x05, unit())
    compression = ext(0x06, unit())
    patch = ext(0x27, vle(8, wrap=True), default=0).says("1: fragments have first and drop marks")
    region_name = ext(0x48, rest())


@PAGE.message(0x01, "A S Z", A=True)
class InitAck:
    """Welcome; show me this cookie when you open."""

    version = u8()
    identity = identity("whatami", 2, legal=ROLE, names=ROLE)
    resolution = u8(mask=0x3F).when("S", default=DEFAULT_RESOLUTION)
    batch_size = u16().when("S", default=0xFFFF)
    cookie = zbuf(16)
    qos = ext(0x01, unit()).says("priority lanes agreed")
    qos_link = ext(0x21, z64(), default=0).says("lanes agreed, and what this link is for")
    shm = ext(0x42, rest())
    auth = ext(0x43, rest())
    multilink = ext(0x44, rest())
    low_latency = ext(0x05, unit())
    compression = ext(0x06, unit())
    patch = ext(0x27, vle(8, wrap=True), default=0)
    region_name = ext(0x48, rest())


@PAGE.message(0x02, "A T Z", A=False)
class OpenSyn:
    """Let us begin: my lease, my first sequence number, your cookie."""

    lease = lease("T")
    initial_sn = z32(wrap=True)
    cookie = zbuf(16)
    qos = ext(0x01, unit())
    shm = ext(0x42, rest())
    auth = ext(0x43, rest())
    multilink = ext(0x44, rest())
    low_latency = ext(0x05, unit())
    compression = ext(0x06, unit())
    remote_bound = ext(0x27, vle(64, legal=(0, 1)), default=None)


@PAGE.message(0x02, "A T Z", A=True)
class OpenAck:
    """We have begun."""

    lease = lease("T")
    initial_sn = z32(wrap=True)
    qos = ext(0x01, unit())
    shm = ext(0x42, rest())
    auth = ext(0x43, rest())
    multilink = ext(0x04, unit())
    low_latency = ext(0x05, unit())
    compression = ext(0x06, unit())
    remote_bound = ext(0x27, vle(64, legal=(0, 1)), default=None)


@PAGE.message(0x03, "S - Z")
class Close:
    """Goodbye, and why."""

    session = flag("S").says("the whole session, not only this link")
    reason = u8(names=REASON)


@PAGE.message(0x04)
class KeepAlive:
    """I am still here."""


@PAGE.message(0x05, "R - Z")
class Frame:
    """Network messages on one lane."""

    reliable = flag("R")
    sn = z32(wrap=True)
    priority = lane(0x31)
    messages = messages()


@PAGE.message(0x06, "R M Z")
class Fragment:
    """A piece of a network message that did not fit one batch."""

    reliable = flag("R")
    more = flag("M").says("not the last piece")
    sn = z32(wrap=True)
    priority = lane(0x31)
    first = ext(0x02, unit()).says("the first piece of a message")
    drop = ext(0x03, unit()).says("the message is abandoned")
    payload = rest()


@PAGE.message(0x07, "T S Z")
class Join:
    """Here I am, said to a multicast group."""

    version = u8()
    identity = identity("whatami", 2, legal=ROLE, names=ROLE)
    resolution = u8(mask=0x3F).when("S", default=DEFAULT_RESOLUTION)
    batch_size = u16().when("S", default=8192)
    lease = lease("T")
    next_sn_reliable = z32(wrap=True)
    next_sn_best_effort = z32(wrap=True)
    lane_sns = ext(0x51, many(z32(wrap=True), fixed=16)).says("a pair (reliable, best effort) each")
    shm = ext(0x52, rest())
    patch = ext(0x27, vle(8, wrap=True), default=0)


@PAGE.message(0x00, "- - Z")
class TransportOam:
    """Operation and maintenance of a link."""

    id = z16()
    priority = lane(0x31)
    body = by_encoding()
