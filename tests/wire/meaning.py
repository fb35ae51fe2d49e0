"""Our messages in the words in which the golden messages were recorded.

The recorder of `tests/golden/vectors-1x.json` had its own names (`rid`, `wire_expr`, decoded QoS)
and left out what is not on the wire. Nothing recorded is ignored: the comparison is of the whole.
"""

from __future__ import annotations

from typing import Any

from zenlake import wire
from zenlake.wire.message import zid_text

Meaning = dict[str, Any]

PRIORITY = (
    "Control", "RealTime", "InteractiveHigh", "InteractiveLow",
    "DataHigh", "Data", "DataLow", "Background",
)  # fmt: skip
ROLE = ("router", "peer", "client")
ROLE_BIT = {1: "router", 2: "peer", 4: "client"}
MODE = ("final", "current", "future", "current_future")
TARGET = ("best_matching", "all", "all_complete")
CONSOLIDATION = ("auto", "none", "monotonic", "latest")
REASON = {0: "GENERIC"}

DECLARATION = {
    "DeclareKeyExpr": "D_KEYEXPR",
    "UndeclareKeyExpr": "U_KEYEXPR",
    "DeclareSubscriber": "D_SUBSCRIBER",
    "UndeclareSubscriber": "U_SUBSCRIBER",
    "DeclareQueryable": "D_QUERYABLE",
    "UndeclareQueryable": "U_QUERYABLE",
    "DeclareToken": "D_TOKEN",
    "UndeclareToken": "U_TOKEN",
    "DeclareFinal": "D_FINAL",
}


def meaning(message: wire.Message) -> Meaning:
    """What the recorder would have written about a message."""
    match message:
        case wire.Scout():
            return _scout(message)
        case wire.Hello():
            return _hello(message)
        case wire.InitSyn() | wire.InitAck():
            return _init(message)
        case wire.OpenSyn() | wire.OpenAck():
            return _open(message)
        case wire.Join():
            return _join(message)
        case wire.Close():
            found = _head("CLOSE", message)
            return found | {"session": message.session, "reason": REASON[message.reason]}
        case wire.KeepAlive():
            return _head("KEEP_ALIVE", message)
        case wire.Frame():
            found = _head("FRAME", message) | {"reliable": message.reliable, "sn": message.sn}
            found |= _extensions(qos=_lane(message.priority))
            return found | {"payload": [meaning(inner) for inner in message.messages]}
        case wire.Fragment():
            return _fragment(message)
        case _:
            return _network(message)


def _network(message: wire.Message) -> Meaning:
    match message:
        case wire.Push():
            found = _head("PUSH", message) | {"key": _key(message)}
            found |= _extensions(**_common(message), ts_stack=_stack(message.timestamp_stack))
            return found | {"body": _body(message.body)}
        case wire.Request():
            found = _head("REQUEST", message) | {"rid": message.id, "key": _key(message)}
            found |= _extensions(
                **_common(message),
                target=TARGET[message.target] if message.target else None,
                budget=message.budget or None,
                timeout_ms=message.timeout or None,
                ts_stack=_stack(message.timestamp_stack),
            )
            return found | {"body": _body(message.body)}
        case wire.Response():
            found = _head("RESPONSE", message) | {"rid": message.id, "key": _key(message)}
            responder = message.responder
            found |= _extensions(
                **_common(message),
                responder=responder and {"zid": zid_text(responder.zid), "eid": responder.eid},
                ts_stack=_stack(message.timestamp_stack),
            )
            return found | {"body": _body(message.body)}
        case wire.ResponseFinal():
            found = _head("RESPONSE_FINAL", message) | {"rid": message.id}
            return found | _extensions(**_common(message))
        case wire.Declare():
            found = _head("DECLARE", message)
            if message.interest_id is not None:
                found["interest_id"] = message.interest_id
            found |= _extensions(**_common(message))
            return found | {"body": _declaration(message.body)}
        case wire.Interest():
            return _interest(message)
        case wire.Oam():
            return _oam(message)
        case _:
            raise TypeError(f"{message.NAME} was never recorded")


# ------------------------------------------------------------------------------------ transport


def _scout(message: wire.Scout) -> Meaning:
    found = _head("SCOUT", message) | {"version": message.version, "what": message.what}
    found["I"] = int(len(message.zid) > 0)
    return found | ({"zid": zid_text(message.zid)} if message.zid else {})


def _hello(message: wire.Hello) -> Meaning:
    found = _head("HELLO", message) | _identity(message)
    return found | {"locators": list(message.locators)}


def _init(message: wire.InitSyn | wire.InitAck) -> Meaning:
    ack = isinstance(message, wire.InitAck)
    found = _head("INIT_ACK" if ack else "INIT_SYN", message) | _identity(message)
    found |= {"resolution": message.resolution, "batch_size": message.batch_size}
    if isinstance(message, wire.InitAck):
        found |= {"cookie_len": len(message.cookie), "cookie": message.cookie.hex()}
    return found | _extensions(
        qos=message.qos or None,
        qos_link=message.qos_link or None,
        shm=_hex(message.shm),
        auth=_hex(message.auth),
        multilink=_hex(message.multilink),
        lowlatency=message.low_latency or None,
        compression=message.compression or None,
        patch=message.patch or None,
        region_name=_hex(message.region_name),
    )


def _open(message: wire.OpenSyn | wire.OpenAck) -> Meaning:
    ack = isinstance(message, wire.OpenAck)
    found = _head("OPEN_ACK" if ack else "OPEN_SYN", message) | _lease(message.lease)
    found["initial_sn"] = message.initial_sn
    extensions = {"shm": _hex(message.shm), "auth": _hex(message.auth)}
    if isinstance(message, wire.OpenSyn):
        found["cookie"] = message.cookie.hex()
        return found | _extensions(**extensions, multilink_syn=_hex(message.multilink))
    return found | _extensions(**extensions, multilink_ack=message.multilink or None)


def _join(message: wire.Join) -> Meaning:
    found = _head("JOIN", message) | _identity(message) | _lease(message.lease)
    found |= {
        "next_sn_reliable": message.next_sn_reliable,
        "next_sn_best_effort": message.next_sn_best_effort,
    }
    sns = message.lane_sns
    pairs = sns and [[sns[i], sns[i + 1]] for i in range(0, 16, 2)]
    return found | _extensions(qos_sns=pairs, patch=message.patch or None)


def _fragment(message: wire.Fragment) -> Meaning:
    found = _head("FRAGMENT", message)
    found |= {"reliable": message.reliable, "more": message.more, "sn": message.sn}
    found |= _extensions(
        qos=_lane(message.priority), first=message.first or None, drop=message.drop or None
    )
    return found | {"data_len": len(message.payload)}


def _identity(message: wire.Hello | wire.InitSyn | wire.InitAck | wire.Join) -> Meaning:
    return {
        "version": message.version,
        "whatami": ROLE[message.whatami],
        "zid": zid_text(message.zid),
    }


def _lease(milliseconds: int) -> Meaning:
    if milliseconds % 1000:
        return {"lease": milliseconds, "lease_unit": "ms"}
    return {"lease": milliseconds // 1000, "lease_unit": "s"}


def _lane(priority: int) -> Meaning | None:
    return None if priority == 5 else {"priority": PRIORITY[priority]}


# -------------------------------------------------------------------------------------- network


def _interest(message: wire.Interest) -> Meaning:
    found = _head("INTEREST", message) | {"mode": MODE[message.mode], "id": message.id}
    if message.mode:
        bits = {
            "K": message.key_exprs,
            "S": message.subscribers,
            "Q": message.queryables,
            "T": message.tokens,
            "R": message.restricted,
            "N": message.restricted and len(message.suffix) > 0,
            "M": message.restricted and message.sender_mapping,
            "A": message.aggregate,
        }
        raw = sum(bit << place for place, bit in enumerate(bits.values()))
        found["options"] = {"raw": raw} | {name: int(bit) for name, bit in bits.items()}
        if message.restricted:
            found["key"] = _key(message)
    return found | _extensions(**_common(message))


def _oam(message: wire.Oam) -> Meaning:
    assert isinstance(message.body, bytes)
    found = _head("OAM", message) | {"id": message.id} | _extensions(**_common(message))
    found["zbuf"] = message.body.hex()
    found["linkstate"] = [_link_state(entry) for entry in wire.read_link_states(message.body)]
    return found


def _link_state(entry: wire.LinkState) -> Meaning:
    present = {
        "zid": zid_text(entry.zid) if entry.zid else None,
        "whatami": ROLE_BIT.get(entry.whatami),
        "locators": None if entry.locators is None else list(entry.locators),
        "weights": list(entry.weights) or None,
    }
    options = sum((value is not None) << place for place, value in enumerate(present.values()))
    found: Meaning = {"options": options | entry.gateway << 4, "psid": entry.psid, "sn": entry.sn}
    found["links"] = list(entry.links)
    return found | {name: value for name, value in present.items() if value is not None}


def _declaration(body: wire.Message) -> Meaning:
    found: Meaning = {"decl": DECLARATION[body.NAME], "hdr": wire.write(body)[0]}
    match body:
        case wire.DeclareKeyExpr():
            key = {"scope": body.scope} | ({"suffix": body.suffix} if body.suffix else {})
            return found | {"expr_id": body.id, "key": key}
        case wire.UndeclareKeyExpr():
            return found | {"expr_id": body.id}
        case wire.DeclareQueryable():
            found |= {"id": body.id, "key": _key(body)}
            info = {"raw": body.info, "complete": body.info & 1 == 1, "distance": body.info >> 8}
            return found | _extensions(queryable_info=info if body.info else None)
        case wire.DeclareSubscriber() | wire.DeclareToken():
            return found | {"id": body.id, "key": _key(body)}
        case wire.UndeclareSubscriber() | wire.UndeclareQueryable() | wire.UndeclareToken():
            key_ext = body.key
            flags = key_ext and (len(key_ext.suffix) > 0) | key_ext.sender_mapping << 1
            wire_expr = key_ext and {"flags": flags} | _key(key_ext)
            return found | {"id": body.id} | _extensions(wire_expr=wire_expr)
        case _:
            return found


# --------------------------------------------------------------------------------------- bodies


def _body(body: wire.Message) -> Meaning:
    found: Meaning = {"body": body.NAME.upper(), "hdr": wire.write(body)[0]}
    match body:
        case wire.Put():
            found |= _timestamp(body.timestamp) | _encoding(body)
            found |= _extensions(
                source_info=_source(body.source_info),
                shm=body.shm or None,
                attachment=_hex(body.attachment),
            )
            if body.shm:
                return found | {"slices": [[part.kind, part.data.hex()] for part in body.slices]}
            return found | {"payload": body.payload.hex()}
        case wire.Del():
            found |= _timestamp(body.timestamp)
            return found | _extensions(
                source_info=_source(body.source_info), attachment=_hex(body.attachment)
            )
        case wire.Query():
            if body.consolidation:
                found["consolidation"] = CONSOLIDATION[body.consolidation]
            if body.parameters:
                found["parameters"] = body.parameters
            value = body.body
            return found | _extensions(
                source_info=_source(body.source_info),
                query_body=value
                and {"encoding": _encoding_of(value), "payload": value.payload.hex()},
                attachment=_hex(body.attachment),
            )
        case wire.Reply():
            if body.consolidation:
                found["consolidation"] = CONSOLIDATION[body.consolidation]
            return found | {"reply": _body(body.body)}
        case wire.Err():
            found |= _encoding(body) | _extensions(source_info=_source(body.source_info))
            return found | {"payload": body.payload.hex()}
        case _:
            raise TypeError(f"{body.NAME} was never recorded")


def _timestamp(stamp: wire.Timestamp | None) -> Meaning:
    if stamp is None:
        return {}
    return {
        "timestamp": {
            "ntp64": stamp.seconds << 32 | stamp.fraction,
            "sec": stamp.seconds,
            "id": zid_text(stamp.id),
            "id_len": len(stamp.id),
        }
    }


def _encoding(body: wire.Put | wire.Err) -> Meaning:
    return {"encoding": _encoding_of(body)} if body.encoding or body.schema else {}


def _encoding_of(value: wire.Put | wire.Err | wire.QueryBody) -> Meaning:
    found: Meaning = {"id": value.encoding}
    return found | ({"schema": value.schema.decode()} if value.schema else {})


def _source(source: wire.SourceInfo | None) -> Meaning | None:
    if source is None:
        return None
    return {"zid": zid_text(source.zid), "eid": source.eid, "sn": source.sn}


# --------------------------------------------------------------------------------------- pieces

Keyed = (
    wire.Push
    | wire.Request
    | wire.Response
    | wire.Interest
    | wire.DeclareSubscriber
    | wire.DeclareQueryable
    | wire.DeclareToken
    | wire.KeyExt
)


def _head(name: str, message: wire.Message) -> Meaning:
    return {"hdr": wire.write(message)[0], "msg": name}


def _key(message: Keyed) -> Meaning:
    found: Meaning = {"scope": message.scope}
    if message.suffix:
        found["suffix"] = message.suffix
    return found | {"mapping": "sender" if message.sender_mapping else "receiver"}


def _common(message: wire.Message) -> Meaning:
    qos, stamp = getattr(message, "qos", 5), getattr(message, "timestamp", None)
    congestion = "block" if qos & 8 else "blockfirst" if qos & 32 else "drop"
    shown = {
        "raw": qos,
        "priority": PRIORITY[qos & 7],
        "cc": congestion,
        "express": bool(qos & 16),
    }
    return {
        "qos": None if qos == 5 else shown,
        "timestamp": _timestamp(stamp).get("timestamp"),
        "node_id": getattr(message, "node_id", 0) or None,
    }


def _stack(stack: wire.TimestampStack | None) -> Meaning | None:
    if stack is None:
        return None
    return {
        "flags": stack.points,
        "stack": [{"flags": one.point, "ts": one.stamp.hex()} for one in stack.records],
    }


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _extensions(**found: object) -> Meaning:
    there = {name: value for name, value in found.items() if value is not None}
    return {"ext": there} if there else {}
