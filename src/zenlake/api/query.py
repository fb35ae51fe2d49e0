"""Queries as queryables see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from zenlake.api.options import (
    IntoEncoding,
    closed_error,
    encoding_parts,
    optional_bytes,
    payload_bytes,
)
from zenlake.api.release import later
from zenlake.clock import Timestamp
from zenlake.engine.delivery import delivering
from zenlake.errors import LocalError, ZError
from zenlake.keys import IntoKeyExpr, KeyExpr, Parameters, Selector
from zenlake.keys.matching import check, intersects
from zenlake.keys.parameters import ANY_KEY_EXPR
from zenlake.node.entities import IncomingQuery
from zenlake.node.queries.replies import ONLY_PAYLOAD, put_of, reply_value
from zenlake.node.sample import source_info_of, timestamp_stack_of, wire_timestamp
from zenlake.transport.framing import vle
from zenlake.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Priority,
    QoS,
    ReplyKeyExpr,
    SourceInfo,
    TimestampStack,
    ZBytes,
)
from zenlake.wire.codec_zenoh import Del, Err, put_head
from zenlake.wire.codec_zenoh import Reply as WireReply

if TYPE_CHECKING:
    from typing import Self

    from zenlake.engine.runtime import Runtime

__all__ = ["Query", "check_waiting", "send_reply", "wire_name"]

#: How many keys are remembered with the queries that they match.
NAMES: Final = 1 << 14
#: By query and key: the key as it stands on the wire, behind its length.
_names: Final[dict[tuple[str, str], bytes]] = {}


@final
class Query:
    """A query that waits for its replies.

    The node that asked waits until it is finalised: by `drop`, by the end of a `with` block, or
    when the program lets go of it. A callback that returns without keeping it has let go of it.
    """

    __slots__ = ("__weakref__", "incoming", "runtime")

    def __init__(self, runtime: Runtime, incoming: IncomingQuery) -> None:
        """Made by the queryable that is asked."""
        # For other modules of zenlake, and no part of the API.
        self.runtime: Runtime = runtime
        self.incoming: IncomingQuery = incoming

    @property
    def selector(self) -> Selector:
        """What is asked: key expression and parameters."""
        return Selector(self.key_expr, self.incoming.body.parameters)

    @property
    def key_expr(self) -> KeyExpr:
        """Which keys are asked for."""
        return KeyExpr.trusted(self.incoming.key)

    @property
    def parameters(self) -> Parameters:
        """The parameters of the query."""
        return Parameters(self.incoming.body.parameters)

    @property
    def payload(self) -> ZBytes | None:
        """The value that came with the query."""
        body = self.incoming.body.body
        return None if body is None else ZBytes(body.payload)

    @property
    def encoding(self) -> Encoding | None:
        """What that value is."""
        body = self.incoming.body.body
        return None if body is None else Encoding.from_wire(body.encoding, body.schema or None)

    @property
    def attachment(self) -> ZBytes | None:
        """What was added beside the query."""
        attachment = self.incoming.body.attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Who asked, if they said so."""
        return source_info_of(self.incoming.body.source_info)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along its route, if the querier wanted them."""
        return timestamp_stack_of(self.incoming.stack)

    def accepts_replies(self, /) -> ReplyKeyExpr:
        """Whether replies may be about keys that were not asked for."""
        if ANY_KEY_EXPR in Parameters(self.incoming.body.parameters):
            return ReplyKeyExpr.ANY
        return ReplyKeyExpr.MATCHING_QUERY

    def reply(
        self,
        /,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        """Reply with a value.

        Args:
            key_expr: The key of the value; the key expression of the query must match it.
            payload: The value: bytes, text, or anything else that `ZBytes` takes.
            encoding: What the payload is, such as `"application/json"`.
            congestion_control: Refused unless it is that of the query, which a reply always has.
            priority: Refused unless it is that of the query, which a reply always has.
            express: Whether it is sent at once; as the query was, if not said.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made.
        """
        self._refuse_qos(congestion_control, priority)
        value = payload if isinstance(payload, bytes) else payload_bytes(payload)
        head = ONLY_PAYLOAD
        if encoding is not None or attachment is not None or timestamp is not None:
            id, schema = encoding_parts(encoding)
            head = put_head(
                timestamp=None if timestamp is None else wire_timestamp(timestamp),
                encoding=id,
                schema=schema,
                attachment=optional_bytes(attachment),
            )
        if express is None:
            name = self._name(key_expr)
            self._check()
            if reply_value(self.incoming, name, value, head):
                return
        body = WireReply(body=put_of(head, value))
        self._send_reply(self._matching(key_expr), body, express)

    def reply_del(
        self,
        /,
        key_expr: IntoKeyExpr,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        """Reply that a value is removed.

        Args:
            key_expr: The key of the value; the key expression of the query must match it.
            congestion_control: Refused unless it is that of the query, which a reply always has.
            priority: Refused unless it is that of the query, which a reply always has.
            express: Whether it is sent at once; as the query was, if not said.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was removed.
        """
        self._refuse_qos(congestion_control, priority)
        body = Del(
            timestamp=None if timestamp is None else wire_timestamp(timestamp),
            attachment=optional_bytes(attachment),
        )
        self._send_reply(self._matching(key_expr), WireReply(body=body), express)

    def reply_err(self, /, payload: IntoZBytes, *, encoding: IntoEncoding | None = None) -> None:
        """Reply with an error.

        Args:
            payload: What went wrong.
            encoding: What the payload is, such as `"application/json"`.
        """
        id, schema = encoding_parts(encoding)
        body = Err(encoding=id, schema=schema, payload=payload_bytes(payload))
        self._send_reply(self.incoming.key, body, None)

    def _refuse_qos(
        self, congestion_control: CongestionControl | None, priority: Priority | None
    ) -> None:
        """A reply travels as its query does, or it could come after the word that it was the last.

        Refuses what says otherwise; to say the same is allowed.
        """
        if congestion_control is None and priority is None:
            return
        own = QoS.from_byte(self.incoming.branch.query.qos)
        if priority is not None and priority is not own.priority:
            raise LocalError(
                f"a reply has the priority of its query, {own.priority.name}, and cannot have "
                f"{priority.name}: leave it out, and give it to get()"
            )
        if congestion_control is not None and congestion_control is not own.congestion_control:
            raise LocalError(
                "a reply has the congestion control of its query, "
                f"{own.congestion_control.name}, and cannot have {congestion_control.name}: leave "
                "it out, and give it to get()"
            )

    def _matching(self, key_expr: IntoKeyExpr) -> str:
        key = str(key_expr)
        query_key = self.incoming.key
        if key == query_key:
            return key
        if isinstance(key_expr, str):
            check(key)
        if not intersects(query_key, key) and self.accepts_replies() is not ReplyKeyExpr.ANY:
            raise LocalError(
                f"a reply on '{key}' does not match '{query_key}': reply on a key of it, "
                "or have the query sent with accept_replies=ReplyKeyExpr.ANY"
            )
        return key

    def _name(self, key_expr: IntoKeyExpr) -> bytes:
        """A key that it may be answered on, as it stands on the wire."""
        text = key_expr if isinstance(key_expr, str) else str(key_expr)
        at = (self.incoming.key, text)
        name = _names.get(at)
        if name is None:
            raw = self._matching(key_expr).encode("utf-8")
            name = vle(len(raw)) + raw
            if self.accepts_replies() is not ReplyKeyExpr.ANY:
                if len(_names) >= NAMES:
                    _names.clear()
                _names[at] = name
        return name

    def _check(self) -> None:
        if self.incoming.done:
            raise ZError(f"the query '{self.selector}' is finalised: it takes no more replies")
        if self.runtime.closed:
            raise closed_error()

    def _send_reply(self, key: str, body: WireReply | Err, express: bool | None) -> None:
        self._check()
        with self.runtime.locked() as node:
            node.local.reply(self.incoming, key, body, express)

    def drop(self, /) -> None:
        """Finalise it: there will be no more replies from here."""
        runtime = self.runtime
        if self.incoming.done or runtime.closed:
            return
        try:
            with runtime.locked() as node:
                node.local.finish_query(self.incoming)
        except ZError:
            if not runtime.closed:
                raise

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, /, *_args: object, **_kwargs: object) -> None:
        """Finalise it."""
        self.drop()

    def __del__(self) -> None:
        """Finalised with its last reference."""
        if self.incoming.done or self.runtime.closed:
            return
        channel = delivering()
        if channel is not None and channel.delivery.releasing:
            # The callback has returned, and this thread is in nobody's work.
            channel.delivery.releasing = False
            self.drop()
        else:
            later(self.drop)

    def __str__(self) -> str:
        """What is asked."""
        return f"Query({self.selector})"

    def __repr__(self) -> str:
        """What is asked."""
        return f"<Query {self.selector}>"


def check_waiting(query: Query) -> None:
    """Refuse a reply to a query that is finalised, or whose session is closed."""
    query._check()


def wire_name(query: Query, key_expr: IntoKeyExpr) -> bytes:
    """Return a key that a query may be answered on, as it stands on the wire."""
    return query._name(key_expr)


def send_reply(query: Query, key: str, body: WireReply | Err) -> None:
    """Send a reply that is already a message of the wire."""
    query._send_reply(key, body, None)
