"""The 2018 protocol: every message, marker, declaration and property, declared once.

A header is one byte: the low five bits say which message, bits 5, 6 and 7 are flags (named
below in that order). Flags that a message does not define are sent as 0 and ignored. There are
no extensions: what is not listed here cannot be skipped, because nothing tells its length.

    bit 5   P properties · S synch · O pong · M mask · I id · L low bit of a compact id
    bit 6   C committed · R reliable · N number · H high bit of a compact id
    bit 7   A attributed · U count · F final · G global · Z compact

Not listed, hence refused: Query 10, ConduitClose 17 and the deltas 21 to 23, which were named
but never defined.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.wire.declared.schema import (
    Field,
    ProtocolPage,
    compact_id,
    flag,
    many,
    many_nat,
    nat,
    octets,
    one_of,
    string,
    struct,
    u8,
)

#: Markers in the order in which they are written; they are read in any order.
PAGE = ProtocolPage("xrce", "Messages", "2018", markers=("Conduit", "Frag", "RSpace"))

#: The version that Open announces.
VERSION = 1

NODE = {1: "broker", 2: "durability", 4: "peer", 8: "client"}
REASON = {
    0: "success", 1: "bad authentication", 2: "unsupported version", 3: "out of resources",
    4: "unsupported sequence number length", 5: "unsupported parameter",
    6: "incompatible pre-committed declaration", 255: "generic",
}  # fmt: skip
MODE = {1: "push", 2: "pull", 3: "periodic push", 4: "periodic pull"}
STATUS = {
    0: "ok", 1: "no space", 2: "conflict", 3: "transaction too large", 4: "try again",
    5: "invalid", 6: "unsupported", 7: "other",
}  # fmt: skip
PROPERTY = {
    0: "vendor", 2: "conduits", 4: "sequence number length", 6: "reliability", 8: "durability",
    10: "commit mode", 12: "authentication", 14: "client hash",
}  # fmt: skip


def properties() -> Field:
    """The properties of a message, announced by the flag P."""
    return many_nat(struct("Property")).when("P")


def pid(who: str) -> Field:
    """A peer id. A session refuses all but 1 to 16 bytes; the wire does not, so that it can."""
    return octets().says(f"{who}, 1 to 16 bytes")


def lease() -> Field:
    """How long silence may last."""
    return nat().says("in units of 100 ms; 0: for ever")


def synch() -> Field:
    """The flag S."""
    return flag("S").says("an acknowledgement is asked for")


def reliable() -> Field:
    """The flag R."""
    return flag("R").says("on the reliable channel")


# ------------------------------------------------------------------------------------- markers


@PAGE.message(19, "L H Z", marker=True)
class Conduit:
    """The next message travels on this conduit; without it, on conduit 0."""

    conduit = compact_id().says("compact: 1 to 4 in the header itself")


@PAGE.message(18, "- N -", marker=True)
class Frag:
    """The next message carries a slice of a payload."""

    sn_base = nat().says("the sequence number of the first slice")
    count = nat().when("N", default=None).says("how many slices there are")


@PAGE.message(24, "L H Z", marker=True)
class RSpace:
    """The ids of the next message belong to this resource space; without it, to space 0."""

    space = compact_id(compact=False).says("compact: 1 to 4, but some brokers meant 0 to 3")


# ------------------------------------------------------------------------------------ sessions


@PAGE.structure
class Property:
    """A property: even ids are standard, odd ones a vendor's; the value may trail off."""

    id = nat(names=PROPERTY)
    value = octets()


@PAGE.message(1, "P - -")
class Scout:
    """Is anybody there?"""

    mask = nat(names=NODE).says("whom I look for, added up")
    properties = properties()


@PAGE.message(2, "P - -")
class Hello:
    """I am here, and can be reached there."""

    mask = nat(names=NODE).says("what I am, added up")
    locators = many(string()).says("besides the address this came from")
    properties = properties()


@PAGE.message(3, "P - -")
class Open:
    """Let us have a session."""

    version = u8()
    pid = pid("who asks")
    lease = lease()
    locators = many(string())
    properties = properties()


@PAGE.message(4, "P - -")
class Accept:
    """We have a session."""

    open_pid = pid("who asked")
    accept_pid = pid("who accepts")
    lease = lease()
    properties = properties()


@PAGE.message(5)
class Close:
    """We have no session, or no longer."""

    pid = pid("who closes")
    reason = u8(names=REASON)


@PAGE.message(16)
class KeepAlive:
    """I am still here."""

    pid = pid("who is")


@PAGE.message(12, "O - -", aliases={13: "O"})
class PingPong:
    """How far away are you? An older draft called a pong 13: so it is read, never written."""

    pong = flag("O").says("this is the answer")
    hash = nat().says("what tells one ping from another")


# ------------------------------------------------------------------------------------ channels


@PAGE.message(14, "S R U")
class Synch:
    """This is where my channel stands."""

    synch = synch()
    reliable = reliable()
    sn = nat().says("the next to be sent")
    count = nat().when("U").says("how many before it can be sent again")


@PAGE.message(15, "M - -")
class AckNack:
    """This is what I have, and what I miss."""

    sn = nat().says("all before it arrived")
    mask = nat().when("M", default=None).says("sn is missing, and sn + 1 + i for each set bit i")


@PAGE.message(20, "I - -")
class Migrate:
    """What went over another conduit goes over this one."""

    ocid = nat().says("the old conduit")
    id = nat().when("I", default=None).says("only this resource or selection")
    rch_last_sn = nat().says("the last reliable one on the old conduit")
    bech_last_sn = nat().says("the last best-effort one on the old conduit")


# ---------------------------------------------------------------------------------------- data


@PAGE.message(7, "S R A")
class StreamData:
    """A sample of a resource or selection, by id: four bytes of overhead."""

    synch = synch()
    reliable = reliable()
    sn = nat()
    id = nat()
    prid = nat().when("A", default=None).says("the resource it belongs to; 0: no more to pull")
    payload = octets()


@PAGE.structure
class BatchedSample:
    """One sample of an attributed batch."""

    prid = nat().says("the resource it belongs to")
    payload = octets()


@PAGE.message(8, "S R A")
class BatchedData:
    """Several samples of one resource, or of one selection with the resource of each."""

    synch = synch()
    reliable = reliable()
    attributed = flag("A").says("samples, not payloads")
    sn = nat()
    id = nat()
    payloads = many(octets()).unless("attributed")
    samples = many_nat(struct("BatchedSample")).given("attributed")


@PAGE.message(9, "S R -")
class WriteData:
    """A sample of a resource, by name."""

    synch = synch()
    reliable = reliable()
    sn = nat()
    resource = string()
    payload = octets()


@PAGE.message(11, "S N F")
class Pull:
    """Send me what you keep for me."""

    synch = synch()
    final = flag("F").says("and nothing after that")
    sn = nat()
    id = nat().says("the subscription")
    max_samples = nat().when("N", default=None).says("no more than these")


# -------------------------------------------------------------------------------- declarations


def declaration(id: int, flags: str = "") -> Callable[[type], type]:
    """Declare a declaration: it stands inside Declare, and its ids are its own."""
    return PAGE.message(id, flags, inner=True)


@PAGE.message(6, "S C -")
class Declare:
    """Declarations, at once or as part of a transaction."""

    synch = synch()
    committed = flag("C").says("in force at once, outside any transaction")
    sn = nat()
    declarations = many_nat(
        one_of(
            "Resource", "Publisher", "Subscriber", "Selection", "Binding", "Commit", "Result",
            "ForgetResource", "ForgetPublisher", "ForgetSubscriber", "ForgetSelection",
        )
    )  # fmt: skip


@declaration(1, "P - -")
class Resource:
    """This number stands for that name."""

    rid = nat().says("positive and even")
    uri = string()
    properties = properties()


@declaration(2, "P - -")
class Publisher:
    """I publish this."""

    rid = nat().says("a resource, or a selection")
    properties = properties()


@declaration(3, "P - -")
class Subscriber:
    """I want this."""

    id = nat().says("a resource, or a selection")
    mode = u8(names=MODE, legal=MODE)
    origin = nat().given("mode", 3, 4).says("ms from now to the first window")
    period = nat().given("mode", 3, 4).says("ms from window to window")
    duration = nat().given("mode", 3, 4).says("ms that a window is open")
    properties = properties()


@declaration(4, "P - G")
class Selection:
    """This number stands for that query."""

    is_global = flag("G").says("the number is the same for everybody")
    sid = nat().says("positive and odd")
    query = string()
    properties = properties()


@declaration(5, "- - G")
class Binding:
    """This selection has that number, too."""

    is_global = flag("G").says("the new number is the same for everybody")
    old_id = nat()
    new_id = nat()


@declaration(6)
class Commit:
    """Put into force all that was declared."""

    commit_id = u8()


@declaration(7)
class Result:
    """What came of a commit."""

    commit_id = u8()
    status = u8(names=STATUS)
    id = nat().given("status", *range(1, 255)).says("the first declaration that failed")


@declaration(8)
class ForgetResource:
    """The number no longer stands for a name."""

    rid = nat()


@declaration(9)
class ForgetPublisher:
    """I no longer publish this."""

    id = nat()


@declaration(10)
class ForgetSubscriber:
    """I no longer want this."""

    id = nat()


@declaration(11)
class ForgetSelection:
    """The number no longer stands for a query."""

    sid = nat()
