"""A transcript of a link: one line of text for each message, in either direction.

It decodes the bytes by itself, beside the session and without touching it, so that a link without
a transcript costs nothing. What it cannot decode it reports once, and is then silent in that
direction.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.clock import ZenohId
from zenlake.errors import DecodeError, ZError
from zenlake.printable import printable
from zenlake.transport.compress import Lz4
from zenlake.transport.handshake import REASONS
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
    read_network,
)
from zenlake.wire.codec_transport import (
    Close,
    Fragment,
    Frame,
    InitAck,
    InitSyn,
    KeepAlive,
    OpenAck,
    OpenSyn,
    read_transport,
)
from zenlake.wire.codec_zenoh import Del, Err, Put
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message

IN = 0
OUT = 1
#: Numbers of keys that are remembered in each direction.
KEYS = 1 << 16
#: Bytes of an incomplete batch.
LARGEST = 1 << 24
LANES = (
    "control", "real_time", "interactive_high", "interactive_low", "data_high", "data", "data_low",
    "background",
)  # fmt: skip
TARGETS = ("best matching", "all", "all complete")


class _Side:
    """One direction."""

    __slots__ = ("buffer", "keys", "lost", "opened")

    def __init__(self) -> None:
        self.buffer: bytes = b""
        self.keys: dict[int, str] = {}
        #: Whether the last message of the opening has passed.
        self.opened: bool = False
        #: Whether it cannot be followed any more.
        self.lost: bool = False


class Transcript:
    """Decodes what goes over one link."""

    def __init__(self, stream: bool, tell: Callable[[int, str], None]) -> None:
        """`tell` is given the direction (`IN` or `OUT`) and a line."""
        self._stream = stream
        self._tell = tell
        self._sides = (_Side(), _Side())
        self._bare = False
        self._lz4: Lz4 | None = None

    def add(self, direction: int, data: bytes) -> None:
        """Bytes went over the link; never raises."""
        side = self._sides[direction]
        if side.lost:
            return
        try:
            if self._stream:
                self._cut(direction, side, side.buffer + data)
            else:
                self._batch(direction, side, data)
        except (ZError, ImportError) as error:
            side.lost = True
            self._tell(direction, f"what follows cannot be read: {error}")

    def _cut(self, direction: int, side: _Side, data: bytes) -> None:
        pos = 0
        while True:
            prefix = 4 if self._bare and side.opened else 2
            if pos + prefix > len(data):
                break
            size = int.from_bytes(data[pos : pos + prefix], "little")
            if size > LARGEST:
                raise DecodeError(f"a batch of {size} bytes", pos)
            if pos + prefix + size > len(data):
                break
            self._batch(direction, side, data[pos + prefix : pos + prefix + size])
            pos += prefix + size
        side.buffer = data[pos:]

    def _batch(self, direction: int, side: _Side, data: bytes) -> None:
        if side.opened and self._lz4 is not None:
            data = self._lz4.unpack(data, 65535)
        r = Reader(data, 0, len(data))
        while r.pos < r.end:
            if r.data[r.pos] & 0x1F >= 0x19:
                self._network(direction, read_network(r), "")
                continue
            message = read_transport(r)
            if isinstance(message, Frame):
                lane = LANES[message.priority & 7]
                about = lane if message.reliable else f"{lane}, best effort"
                if not message.messages:
                    self._tell(direction, f"an empty frame  [{about}, sn {message.sn}]")
                for one in message.messages:
                    self._network(direction, one, f"  [{about}, sn {message.sn}]")
            else:
                self._transport(direction, side, message)

    def _transport(self, direction: int, side: _Side, message: Message) -> None:
        if isinstance(message, (InitSyn, InitAck)):
            if isinstance(message, InitAck):
                # What is agreed changes how batches look, once the session is open.
                self._bare = bool(message.low_latency)
                packed = message.compression and not message.low_latency
                self._lz4 = Lz4() if packed else None
            self._tell(
                direction,
                f"{'init' if isinstance(message, InitSyn) else 'init accepted'}: version "
                f"{message.version}, node {ZenohId(message.zid)}, batches of {message.batch_size}",
            )
        elif isinstance(message, (OpenSyn, OpenAck)):
            side.opened = True
            syn = isinstance(message, OpenSyn)
            self._tell(
                direction,
                f"{'open' if syn else 'open accepted'}: lease {message.lease} ms, "
                f"first sn {message.initial_sn}",
            )
        elif isinstance(message, Close):
            self._tell(direction, f"close: {REASONS.get(message.reason, str(message.reason))}")
        elif isinstance(message, KeepAlive):
            self._tell(direction, "keep alive")
        elif isinstance(message, Fragment):
            last = "" if message.more else ", the last"
            self._tell(
                direction,
                f"fragment of {len(message.payload)} B{last}  "
                f"[{LANES[message.priority & 7]}, sn {message.sn}]",
            )
        else:
            self._tell(direction, message.NAME)

    # ------------------------------------------------------------------------ network messages

    def _network(self, direction: int, message: Message, about: str) -> None:
        self._tell(direction, self._words(direction, message) + about)

    def _key(self, direction: int, scope: int, mine: bool, suffix: str) -> str:
        """The complete key, if the number of its prefix is known."""
        if not scope:
            return printable(suffix)
        keys = self._sides[direction if mine else 1 - direction].keys
        return printable(keys.get(scope, f"<{scope}>") + suffix)

    def _words(self, direction: int, message: Message) -> str:
        if isinstance(message, Push):
            key = self._key(direction, message.scope, message.sender_mapping, message.suffix)
            return f"{_value(message.body)} {key}{_size(message.body)}"
        if isinstance(message, Request):
            key = self._key(direction, message.scope, message.sender_mapping, message.suffix)
            parameters = message.body.parameters
            selector = f"{key}?{printable(parameters)}" if parameters else key
            return f"query {message.id}: {selector} of {TARGETS[min(message.target, 2)]}"
        if isinstance(message, Response):
            key = self._key(direction, message.scope, message.sender_mapping, message.suffix)
            body = message.body
            if isinstance(body, Err):
                return f"error in reply to query {message.id}: {len(body.payload)} B"
            return f"reply to query {message.id}: {_value(body.body)} {key}{_size(body.body)}"
        if isinstance(message, ResponseFinal):
            return f"final response to query {message.id}"
        if isinstance(message, Declare):
            return self._declared(direction, message)
        if isinstance(message, Interest):
            return self._interest(direction, message)
        if isinstance(message, Oam):
            size = len(message.body) if isinstance(message.body, bytes) else 0
            return f"link states, {size} B" if message.id == 1 else f"maintenance {message.id}"
        return message.NAME

    def _declared(self, direction: int, message: Declare) -> str:
        body = message.body
        suffix = "" if message.interest_id is None else f" (for interest {message.interest_id})"
        if isinstance(body, DeclareKeyExpr):
            key = self._key(direction, body.scope, True, body.suffix)
            keys = self._sides[direction].keys
            if len(keys) < KEYS:
                keys[body.id] = key
            return f"declare key {body.id} = {key}"
        if isinstance(body, UndeclareKeyExpr):
            self._sides[direction].keys.pop(body.id, None)
            return f"undeclare key {body.id}"
        if isinstance(body, (DeclareSubscriber, DeclareQueryable, DeclareToken)):
            key = self._key(direction, body.scope, body.sender_mapping, body.suffix)
            word = body.NAME.removeprefix("Declare").lower()
            complete = " (complete)" if isinstance(body, DeclareQueryable) and body.info & 1 else ""
            return f"declare {word} {body.id} {key}{complete}{suffix}"
        if isinstance(body, (UndeclareSubscriber, UndeclareQueryable, UndeclareToken)):
            word = body.NAME.removeprefix("Undeclare").lower()
            named = body.key
            key = ""
            if named is not None and (named.scope or named.suffix):
                key = " " + self._key(direction, named.scope, named.sender_mapping, named.suffix)
            return f"undeclare {word} {body.id}{key}"
        if isinstance(body, DeclareFinal):
            return f"all is declared{suffix}"
        return body.NAME

    def _interest(self, direction: int, message: Interest) -> str:
        if not message.mode:
            return f"no more interest {message.id}"
        kinds = [
            word
            for word, wanted in (
                ("keys", message.key_exprs),
                ("subscribers", message.subscribers),
                ("queryables", message.queryables),
                ("tokens", message.tokens),
            )
            if wanted
        ]
        when = ("", "present", "future", "present and future")[message.mode & 3]
        key = "all keys"
        if message.restricted:
            key = self._key(direction, message.scope, message.sender_mapping, message.suffix)
        return f"interest {message.id} in {when} {', '.join(kinds)} of {key}"


def _value(body: Put | Del) -> str:
    return "put" if isinstance(body, Put) else "delete"


def _size(body: Put | Del) -> str:
    return f" {len(body.payload)} B" if isinstance(body, Put) else ""
