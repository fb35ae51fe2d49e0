"""Replies on the fast path: written, read and passed on without a message object.

Most replies are a value on a key, with a timestamp or without. To one query they differ only in
these, so everything around them is written once (`ReplyHead`); and the node that asked has heard
most keys before, so that a key is made once from its bytes (`ReplyKey`), a `Sample` from the rest.
"""

from __future__ import annotations

from typing import Final

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.entities import IncomingQuery, ReplyHead
from zenlake.node.queries.gets import Get, ReplyKey
from zenlake.node.sample import LAST_ENCODING, stamp_and_encoding
from zenlake.routing.face import Face, PassedReplies, PendingQuery
from zenlake.transport.framing import vle
from zenlake.values.qos import QOS_BLOCK, QOS_PRIORITY
from zenlake.wire.codec_network import Responder, read_responder, response_head
from zenlake.wire.codec_zenoh import Put, put_head, read_put
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import (
    EXTENSION,
    ID,
    MORE,
    PUT,
    REPLY,
    RESPONSE_EXT_QOS,
    RESPONSE_EXT_RESPONDER,
    RESPONSE_FLAG_SUFFIX,
)  # fmt: skip

#: How many keys of replies are remembered of one neighbour.
REPLY_KEYS: Final = 1 << 14


NO_SHORTCUT: Final = ReplyHead(None, b"", b"", 0, False)
#: The head of a put that brings a payload and nothing else.
ONLY_PAYLOAD: Final = put_head()


def reply_head(incoming: IncomingQuery) -> ReplyHead:
    """How to reply to a query on the fast path, if that is possible."""
    query = incoming.branch.query
    source = query.source
    outbox = source.outbox_for(query.qos & QOS_PRIORITY, True)
    if (
        query.receiver is not None
        or incoming.stack is not None
        or source.egress is not None
        or outbox is None
        or incoming.replying.namespace is not None
    ):
        return NO_SHORTCUT
    responder = Responder(zid=incoming.replying.zid, eid=incoming.eid)
    before, behind = _around_key(query.id, query.qos, responder)
    priority = query.qos & QOS_PRIORITY
    hold = bool(query.qos & QOS_BLOCK)
    return ReplyHead(outbox, before, behind + bytes((REPLY,)), priority, hold)


def reply_value(
    incoming: IncomingQuery, name: bytes, value: bytes, put: bytes = ONLY_PAYLOAD
) -> bool:
    """Reply with a value, `name` being its key behind a length; False: send a Response message.

    `put`: the head of the put (`put_head`) that brings the value. Needs no lock of the node:
    everything is settled when the first reply is written. Waits for a querier that does not read,
    where `incoming.may_wait`.
    """
    head = head_of(incoming)
    outbox = head.outbox
    if outbox is None:
        return False
    if is_awaited(incoming):
        start = b"".join((head.before, name, head.behind, put))
        if incoming.may_wait:
            outbox.reply(start, value, head.priority, head.hold)
        else:
            outbox.pass_on(start, value, head.priority, head.hold)
    return True


def is_awaited(incoming: IncomingQuery) -> bool:
    """Whether the query is not over: a reply to one that is goes nowhere."""
    branch = incoming.branch
    return branch in branch.query.branches


def put_of(head: bytes, value: bytes) -> Put:
    """The Put that a head (`put_head`) and a value make, for where no shortcut is."""
    r = Reader(head + b"\0")  # the length of no payload
    put = read_put(r, r.u8())
    put.payload = value
    return put


def would_wait(incoming: IncomingQuery) -> bool:
    """Whether a reply has to wait until the querier reads what was sent to it before."""
    head = head_of(incoming)
    outbox = head.outbox
    return outbox is not None and outbox.full(head.priority)


def is_over(incoming: IncomingQuery) -> bool:
    """Whether nobody waits for more replies: the query has ended, or the link that it came by."""
    outbox = head_of(incoming).outbox
    return not is_awaited(incoming) or (outbox is not None and outbox.closed)


def head_of(incoming: IncomingQuery) -> ReplyHead:
    """How to reply to a query on the fast path, found out with the first reply."""
    head = incoming.head
    if head is None:
        head = reply_head(incoming)
        incoming.head = head
    return head


def passed_replies(query: PendingQuery, responder: Responder | None) -> PassedReplies | None:
    """How replies to a query are passed on to who asked; None if they cannot be now."""
    priority = query.qos & QOS_PRIORITY
    outbox = query.source.outbox_for(priority, True)
    if outbox is None:
        return None
    before, behind = _around_key(query.id, query.qos, responder)
    return PassedReplies(outbox, responder, before, behind, priority, bool(query.qos & QOS_BLOCK))


def _around_key(id: int, qos: int, responder: Responder | None) -> tuple[bytes, bytes]:
    """What stands before the length of a reply's key, and what between the key and the body."""
    head = response_head(id=id, scope=0, suffix="k", qos=qos, responder=responder)
    border = 2 + len(vle(id))  # header, id, scope
    return head[:border], head[border + 2 :]


class ReplyReader:
    """Reads the replies of one neighbour."""

    __slots__ = ("_raw", "_reply_keys", "_responder", "_told")

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._reply_keys: dict[bytes, ReplyKey] = {}
        #: Who answered last, and the bytes that said so.
        self._raw: bytes = b""
        self._responder: Responder | None = None
        #: Who sent the reply that is being read, if it says so.
        self._told: Responder | None = None

    def read(self, face: Face, r: Reader) -> bool:
        """Take an ordinary reply to one of our own programs; False: not such, nothing was read."""
        start = r.pos
        if self._read(face, r):
            return True
        r.pos = start
        return False

    def _read(self, face: Face, r: Reader) -> bool:
        header = r.u8()
        branch = face.requests.get(r.vle(0xFFFF_FFFF))
        if branch is None or not header & RESPONSE_FLAG_SUFFIX or r.u8() != 0:
            return False
        get = branch.query.receiver
        if not isinstance(get, Get) or get.namespace is not None:
            return False
        name = r.take(r.vle(0xFFFF))
        if not self._extensions(r, header) or r.u8() != REPLY:
            return False
        put = r.u8()
        if put & (MORE | ID) != PUT:
            return False
        seconds, fraction, stamp_id, encoding = stamp_and_encoding(r, put)
        if encoding > LAST_ENCODING or encoding & 1:  # no such, or one with a schema
            return False
        value = r.take(r.vle(0xFFFF_FFFF))
        reply_key = self._reply_keys.get(name)
        if reply_key is None:
            reply_key = self._learn(name)
        get.value(reply_key, value, encoding >> 1, seconds, fraction, stamp_id, self._told)
        return True

    def pass_on(self, face: Face, r: Reader) -> bool:
        """Pass an ordinary reply on to the node that asked; False: not such, nothing was read."""
        start = r.pos
        if self._pass_on(face, r):
            return True
        r.pos = start
        return False

    def _pass_on(self, face: Face, r: Reader) -> bool:
        header = r.u8()
        branch = face.requests.get(r.vle(0xFFFF_FFFF))
        if branch is None or not header & RESPONSE_FLAG_SUFFIX or r.u8() != 0:
            return False
        query = branch.query
        if query.receiver is not None or query.source.egress is not None:
            return False
        key = r.pos
        name = r.take(r.vle(0xFFFF))
        behind = r.pos
        if not name or not self._extensions(r, header):
            return False
        body = r.pos
        if r.u8() != REPLY:
            return False
        put = r.u8()
        if put & (MORE | ID) != PUT:
            return False
        _, _, _, encoding = stamp_and_encoding(r, put)
        if encoding > LAST_ENCODING or encoding & 1:
            return False
        end = r.pos
        value = r.take(r.vle(0xFFFF_FFFF))
        passed = branch.passed
        if passed is None or passed.responder is not self._told or passed.outbox.closed:
            passed = passed_replies(query, self._told)
            if passed is None:
                return False
            branch.passed = passed
        if name not in self._reply_keys:
            self._learn(name)
        if branch in query.branches:
            data = r.data
            start = b"".join((passed.before, data[key:behind], passed.behind, data[body:end]))
            passed.outbox.pass_on(start, value, passed.priority, passed.hold)
        return True

    def _extensions(self, r: Reader, header: int) -> bool:
        """Read who answered (`_told`), and pass over the QoS; False: there is more than that."""
        self._told = None
        if not header & MORE:
            return True
        while True:
            tag = r.u8()
            kind = tag & EXTENSION
            if kind == RESPONSE_EXT_QOS:
                r.skip_vle()
            elif kind == RESPONSE_EXT_RESPONDER:
                raw = r.take(r.vle(0xFFFF_FFFF))
                if raw != self._raw and not self._meet(raw):
                    return False
                self._told = self._responder
            else:
                return False
            if tag < MORE:
                return True

    def _meet(self, raw: bytes) -> bool:
        """Read who answered."""
        r = Reader(raw)
        responder = read_responder(r)
        if r.pos != r.end:
            return False
        self._raw = raw
        self._responder = responder
        return True

    def _learn(self, name: bytes) -> ReplyKey:
        """A key that was not heard of before."""
        if len(self._reply_keys) >= REPLY_KEYS:
            self._reply_keys = {}
        key = Reader(name).text(len(name))
        reply_key = ReplyKey(key, KeyExpr.trusted(key))
        self._reply_keys[name] = reply_key
        return reply_key
