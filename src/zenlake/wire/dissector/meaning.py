"""What values mean, in words for people: the dissector's and the reference page's glossary."""

from __future__ import annotations

from collections.abc import Callable

from zenlake.clock.ntp64 import NTP64
from zenlake.printable import printable
from zenlake.values.encoding import ENCODING_NAMES
from zenlake.wire.declared.attributes import explicit_flags
from zenlake.wire.declared.schema import (
    REQUIRED,
    ByEncoding,
    CompactId,
    Field,
    Flag,
    HeaderBits,
    Identity,
    Int,
    Lease,
    MessageSpec,
    OneOf,
    ProtocolPage,
)
from zenlake.wire.dissector.node import plural

__all__ = ["flag_meaning", "note", "shown", "value_meaning"]

PRIORITIES = (
    "control", "real time", "interactive high", "interactive low", "data high", "data",
    "data low", "background",
)  # fmt: skip
SHAPES = {0: "nothing", 1: "a number", 2: "bytes", 3: "reserved"}
BITS = ("8 bits", "16 bits", "32 bits", "64 bits")

#: What a field is for, by its name or by `Message.name`, where its declaration does not say.
NOTES = {
    "version": "of the protocol that is spoken",
    "whatami": "the role of the node",
    "what": "the roles that are looked for",
    "zid": "the id of the node",
    "resolution": "how long sequence numbers and request ids may grow",
    "batch_size": "the largest batch that may be sent, in bytes",
    "cookie": "opaque; the other side shows it again in its OpenSyn",
    "OpenSyn.cookie": "the one that came with the InitAck",
    "lease": "silence for so long, and the session is over",
    "initial_sn": "the sequence number of my first frame",
    "next_sn_reliable": "the sequence number of the next reliable frame",
    "next_sn_best_effort": "the sequence number of the next best effort frame",
    "sn": "sequence number",
    "SourceInfo.sn": "the publication's number, counted by its entity",
    "shm": "shared memory",
    "auth": "proof of who I am",
    "multilink": "several links for one session",
    "low_latency": "bare messages, no frames",
    "compression": "batches may be compressed",
    "patch": "1: fragments have first and drop marks",
    "region_name": "the region that the node belongs to",
    "remote_bound": "how the sender ranks this link between regions",
    "reason": "why",
    "reliable": "the reliable channel of its lane; else best effort",
    "priority": "the lane",
    "payload": "the bytes themselves",
    "Fragment.payload": "a piece of a network message",
    "messages": "network messages, one behind another",
    "scope": "the number that stands for the first part of the key; 0: none",
    "suffix": "the rest of the key expression, in letters",
    "sender_mapping": "the scope is a number that the sender declared; else the receiver",
    "qos": "priority, congestion control, express",
    "timestamp": "when, and by whose clock",
    "node_id": "which tree between routers the message travels on",
    "timestamp_stack": "stamps collected on the way",
    "target": "which queryables are asked",
    "responder": "which entity answered",
    "interest_id": "the interest that this answers",
    "id": "by which it is known from now on",
    "Request.id": "comes back with every answer",
    "Response.id": "of the request that this answers",
    "ResponseFinal.id": "of the request that was answered",
    "Interest.id": "comes back with every declaration that answers it",
    "Oam.id": "1: link states",
    "TransportOam.id": "what kind of maintenance",
    "Timestamp.id": "the node whose clock it was",
    "Timestamp.time": "64 bits: seconds since 1970, and a binary fraction of a second",
    "DeclareKeyExpr.id": "the number that stands for the key expression from now on",
    "UndeclareKeyExpr.id": "the number that means nothing any more",
    "key": "the key expression of what is undeclared",
    "mode": "what is wanted",
    "subscribers": "tell me of subscribers",
    "queryables": "tell me of queryables",
    "tokens": "tell me of liveliness tokens",
    "body": "what it is about",
    "Put.payload": "the value",
    "encoding": "what kind of data the payload is",
    "schema": "what kind more closely",
    "source_info": "which entity published it",
    "attachment": "bytes that the application sent along",
    "slices": "the pieces of the payload",
    "consolidation": "how answers with the same key are thinned out",
    "parameters": "of the selector, behind its question mark",
    "eid": "the entity within its node",
    "locators": "where the node listens",
    "links": "the nodes it is linked to, in the same counting",
    "weights": "what each link costs; 0: not said",
    "gateway": "the node joins two regions",
    "entries": "one for each node that is told of",
    "options": "what follows",
    "flags": "what follows",
    "LinkState.whatami": "the role of the node",
    "points": "where stamps are taken: 1 sent, 2 routed, 4 received",
    "point": "where it was taken: 1 sent, 2 routed, 4 received",
    "stamp": "a timestamp",
    "records": "the stamps so far",
    "kind": "where the bytes are",
    "pid": "the id of the peer",
    "Property.id": "even: standard; odd: a vendor's",
    "Property.value": "its first bytes count, the rest is ignored",
    "properties": "more about it",
    "declarations": "one behind another",
    "StreamData.id": "the resource or selection",
    "BatchedData.id": "the resource or selection",
    "WriteData.resource": "its name",
    "ForgetPublisher.id": "the resource or selection",
    "ForgetSubscriber.id": "the resource or selection",
    "rid": "the resource",
    "sid": "the selection",
    "uri": "the name",
    "query": "the query",
    "old_id": "the number it has",
    "new_id": "the number it gets",
    "commit_id": "which commit it is",
    "status": "what came of it",
    "payloads": "the samples, each behind its length",
    "samples": "the samples, each with its resource",
    "data": "the bytes, or where in shared memory they are",
}


#: What a flag of this name says when it is not set, where "not …" will not do.
CLEAR = {
    "session": "this link only",
    "more": "the last piece",
    "reliable": "on the best effort channel",
    "key_exprs": "ids towards me are not for these",
    "subscribers": "not asked for",
    "queryables": "not asked for",
    "tokens": "not asked for",
    "restricted": "whatever its key",
    "aggregate": "an answer for each that matches",
    "gateway": "not a gateway",
    "synch": "no acknowledgement is asked for",
    "committed": "part of a transaction",
    "pong": "this is the question",
    "final": "and what comes after that",
    "attributed": "payloads, not samples",
    "is_global": "the number is this session's own",
}


def note(spec: MessageSpec, name: str, doc: str = "") -> str:
    """What a field of a message is for, in a few words."""
    return NOTES.get(f"{spec.name}.{name}") or doc or NOTES.get(name, "")


# --------------------------------------------------------------------------------------- flags


def listed(words: list[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def flag_meaning(page: ProtocolPage, spec: MessageSpec, letter: str) -> tuple[str, str]:
    """What a flag says when it is set, and what when it is not."""
    if letter in dict(spec.fixed):
        others = [
            other.name
            for other in page.specs.values()
            if other.id == spec.id and other.name != spec.name
        ]
        other = listed(others, "or")
        this, that = f"{spec.name}, not {other}", f"{other}, not {spec.name}"
        return (this, that) if dict(spec.fixed)[letter] else (that, this)
    if letter == "Z" and spec.extensible and page.protocol == "1.x":
        return "extensions follow", "no extensions"
    meanings = [pair for field in spec.fields if (pair := _field_flag(spec, field, letter))]
    named = [field.name for field in spec.fields if letter in _letters(field)[-1:]]
    if named and letter not in explicit_flags(spec):
        verb = "is" if len(named) == 1 and not named[0].endswith("s") else "are"
        meanings.append((f"{listed(named)} {verb} there", f"no {listed(named, 'or')}"))
    elif named:
        meanings[0] = (f"{meanings[0][0]}; {listed(named)} follow", meanings[0][1])
    return meanings[0] if meanings else ("reserved, ignored", "reserved")


def _letters(field: Field) -> list[str]:
    return [condition.flag for condition in field.conditions if condition.flag]


def _field_flag(spec: MessageSpec, field: Field, letter: str) -> tuple[str, str] | None:
    match field.kind:
        case Flag(letter=own) if own == letter:
            if field.name == "sender_mapping":
                return "the scope is a number of the sender", "the scope is one of the receiver"
            text = note(spec, field.name, field.doc)
            words = field.name.replace("_", " ")
            return text.partition("; else")[0] or words, CLEAR.get(field.name, f"not {words}")
        case Lease(letter=own) if own == letter:
            return "the lease is in seconds", "the lease is in milliseconds"
        case CompactId():
            return {
                "Z": ("a compact id: 1 and what L and H add", "the id follows"),
                "H": ("adds 2 to a compact id", "adds nothing to a compact id"),
                "L": ("adds 1 to a compact id", "adds nothing to a compact id"),
            }.get(letter)
        case _:
            return None


# -------------------------------------------------------------------------------------- values


def shown(value: object) -> object:
    """A field's value as JSON can hold it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    return value


def value_meaning(spec: MessageSpec, field: Field, value: object) -> str:
    """What this value of this field says, in words; what the field is for if it says no more."""
    meaning = _of_value(spec, field, value)
    purpose = note(spec, field.name, field.doc)
    if meaning and isinstance(field.kind, Flag | Lease) and purpose:
        return f"{meaning}: {purpose}"
    return meaning or purpose


def _of_value(spec: MessageSpec, field: Field, value: object) -> str:
    kind = field.kind
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        if isinstance(kind, Int | HeaderBits | Identity) and kind.names:
            return named(dict(kind.names), value)
        if isinstance(kind, Lease):
            return duration(value)
        if isinstance(kind, ByEncoding | OneOf):
            return ""
        explain = BY_NAME.get(f"{spec.name}.{field.name}") or BY_NAME.get(field.name)
        return explain(value) if explain else ""
    if isinstance(value, bytes) and field.name in ("payload", "attachment", "schema", "body"):
        return preview(value)
    return ""


def named(names: dict[int, str], value: int) -> str:
    """The name of a value; of several bits added up, all their names."""
    if value in names:
        return names[value]
    bits = [name for bit, name in names.items() if value & bit]
    if all(bit & (bit - 1) == 0 for bit in names) and bits:
        return listed(bits)
    return "a vendor's" if value % 2 and "vendor" in names.values() else "unknown"


def preview(data: bytes) -> str:
    """Bytes in words: the text that they are, or how many."""
    size = plural(len(data), "byte")
    if data and len(data) <= 4096:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return size
        if all(letter.isprintable() or letter in "\n\t" for letter in text):
            return f"{size}, as text {quoted(text)}"
    return size


def quoted(text: str, most: int = 60) -> str:
    """Text in quotes, cut to a readable length, with nothing in it that moves a cursor."""
    cut = text if len(text) <= most else text[: most - 1]
    safe = printable(cut.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{safe}"' + ("" if cut == text else " …")


def duration(milliseconds: int) -> str:
    """Milliseconds as people say them."""
    if milliseconds % 1000:
        return f"{milliseconds} ms"
    return plural(milliseconds // 1000, "second")


def moment(seconds: int, fraction: int) -> str:
    """A 64-bit time as RFC 3339 text."""
    return NTP64.from_raw(seconds << 32 | fraction).to_string_rfc3339_lossy()


def _qos(value: int) -> str:
    congestion = "block" if value & 0x08 else "block for the first" if value & 0x20 else "drop"
    express = "express" if value & 0x10 else "not express"
    return f"priority {PRIORITIES[value & 7]}, {congestion} when congested, {express}"


def _qos_link(value: int) -> str:
    limits = []
    if value & 0b010:
        low, high = value >> 3 & 0xFF, value >> 11 & 0xFF
        limits.append(f"priorities {_priority(low)} to {_priority(high)}")
    if value & 0b100:
        limits.append("reliable" if value >> 19 & 1 else "best effort")
    return "lanes wanted; this link is for " + (", ".join(limits) or "everything")


def _priority(value: int) -> str:
    return PRIORITIES[value] if value < len(PRIORITIES) else str(value)


def _resolution(value: int) -> str:
    return f"sequence numbers of {BITS[value & 3]}, request ids of {BITS[value >> 2 & 3]}"


def _encoding(value: int) -> str:
    if value == 0xFFFF:
        return "custom: the schema is its name"
    return ENCODING_NAMES[value] if value < len(ENCODING_NAMES) else "not a well-known encoding"


def _roles(value: int) -> str:
    words = [word for bit, word in ((1, "router"), (2, "peer"), (4, "client")) if value & bit]
    return listed(words, "or") or "nobody"


def _queryable(value: int) -> str:
    complete = "complete" if value & 1 else "not complete"
    return f"{complete}, {plural(value >> 8, 'hop')} away"


def _points(value: int) -> str:
    bits = ((1, "sent"), (2, "routed"), (4, "received"), (0x80, "custom format"))
    return listed([word for bit, word in bits if value & bit]) or "none"


def _scope(value: int) -> str:
    declared = "a number declared before, for the first part of the key"
    return declared if value else "none"


def _timeout(value: int) -> str:
    return duration(value) if value else "the node's own default"


def _patch(value: int) -> str:
    return "fragments have first and drop marks" if value == 1 else "no patch"


BY_NAME: dict[str, Callable[[int], str]] = {
    "qos": _qos,
    "qos_link": _qos_link,
    "resolution": _resolution,
    "encoding": _encoding,
    "what": _roles,
    "DeclareQueryable.info": _queryable,
    "points": _points,
    "point": _points,
    "scope": _scope,
    "Request.timeout": _timeout,
    "patch": _patch,
    "Oam.id": lambda value: "link states" if value == 1 else "unknown",
    "Open.lease": lambda value: duration(value * 100) if value else "for ever",
    "Accept.lease": lambda value: duration(value * 100) if value else "for ever",
    "batch_size": lambda value: f"takes batches of up to {value} bytes",
}


def default_text(field: Field) -> str:
    """A field's default as the reference page shows it; empty if the field must be there."""
    if field.default is REQUIRED or isinstance(field.kind, Flag):
        return ""
    match field.default:
        case None | b"" | () | "" | False:
            return "absent" if field.extension else "none"
        case value:
            return str(value)
