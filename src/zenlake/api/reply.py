"""Replies as programs see them."""

from __future__ import annotations

from typing import final

from zenlake.clock.zid import ZenohId
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import ReplyQueue, Stampable
from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.sample import Sample, sample_of, timestamp_stack_of
from zenlake.values.encoding import Encoding
from zenlake.values.sample import EntityGlobalId
from zenlake.values.timestamp_stack import TimestampStack
from zenlake.values.zbytes import ZBytes
from zenlake.wire.codec_network import Push, Responder
from zenlake.wire.codec_network import TimestampStack as WireTimestampStack
from zenlake.wire.codec_zenoh import Del, Err, Put

__all__ = ["Reply", "ReplyError", "ReplyQueue"]


@final
class ReplyError:
    """A reply that says what went wrong."""

    __slots__ = ("_body", "_stack")

    def __init__(self, body: Err, stack: WireTimestampStack | None = None) -> None:
        """As it came."""
        self._body: Err = body
        self._stack: WireTimestampStack | None = stack

    @property
    def payload(self) -> ZBytes:
        """What went wrong."""
        return ZBytes(self._body.payload)

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        return Encoding.from_wire(self._body.encoding, self._body.schema or None)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along the routes of the query and the reply, if the querier wanted them."""
        return timestamp_stack_of(self._stack)

    def __repr__(self) -> str:
        """What went wrong."""
        return f"<ReplyError {self.payload!r} {self.encoding}>"


@final
class Reply(Stampable):
    """One reply: a sample, or an error."""

    __slots__ = ("_body", "_key", "_qos", "_responder", "_sample", "_stack")

    def __init__(
        self,
        key: str,
        body: Put | Del | Err | None,
        responder: Responder | None,
        qos: int,
        sample: Sample | None = None,
    ) -> None:
        """As it came; made into a sample when it is looked at, unless it is one."""
        self._key: str = key
        self._body: Put | Del | Err | None = body
        self._sample: Sample | None = sample
        self._responder: Responder | None = responder
        self._qos: int = qos
        self._stack: WireTimestampStack | None = None

    def stamp(self, stack: WireTimestampStack) -> None:
        """The times that were taken on its route.

        Args:
            stack: The times, as they came.
        """
        self._stack = stack

    @property
    def result(self) -> Sample | ReplyError:
        """The sample or the error."""
        sample = self._sample
        if sample is not None:
            return sample
        body = self._body
        assert body is not None
        if isinstance(body, Err):
            return ReplyError(body, self._stack)
        key = KeyExpr.trusted(self._key)
        push = Push(
            scope=0, suffix=self._key, qos=self._qos, timestamp_stack=self._stack, body=body
        )
        return sample_of(key, push, True)

    @property
    def ok(self) -> Sample | None:
        """The sample, unless it is an error."""
        sample = self._sample
        if sample is not None:
            return sample
        result = self.result
        return result if isinstance(result, Sample) else None

    @property
    def err(self) -> ReplyError | None:
        """The error, if it is one."""
        body = self._body
        return ReplyError(body, self._stack) if isinstance(body, Err) else None

    @property
    def replier_id(self) -> EntityGlobalId | None:
        """Who answered, if they said so."""
        responder = self._responder
        if responder is None or not responder.zid:
            return None
        return EntityGlobalId(ZenohId(responder.zid), responder.eid)

    def __repr__(self) -> str:
        """What it says."""
        return f"<Reply {self.result!r}>"


class GetReplyQueue(ReplyQueue):
    """Replies into a channel, as programs see them."""

    def __init__(self, channel: Channel) -> None:
        """Of the program that asked."""
        super().__init__(channel, Reply)

    def value(self, sample: Sample, responder: Responder | None) -> None:
        """One reply that is an ordinary value."""
        self.channel.push(Reply("", None, responder, 0, sample), sample.payload_size)
