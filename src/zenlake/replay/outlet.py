"""Puts recorded samples back on the bus: key behind a prefix, all else as it was.

Payload, encoding, attachment, priority and express are the sample's own, byte for byte, and so is
the timestamp unless new ones are wanted. What is said of the way is not: samples are sent reliably
and wait where there is no room, so that none is lost, and they name no source, for the ledger of
that source would count them twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.api.put import OWN
from zenlake.journal.reading.lists import list_of_bytes, list_of_each
from zenlake.journal.schema import DELETE, HLC_BIAS
from zenlake.keys import KeyExpr
from zenlake.node.sample import wire_timestamp
from zenlake.values import CongestionControl, Locality, Priority, QoS
from zenlake.wire.codec_zenoh import Del, Put, put_head
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.entities import Publication

__all__ = ["Outlet", "Ready", "below"]

MOST_KEYS: Final = 65_536
"""How many keys are remembered with their routes."""

_ANY: Final = Locality.ANY.value


def below(prefix: str, key: str) -> str:
    """The key behind a prefix."""
    return f"{prefix}/{key}" if prefix else key


@final
class Ready:
    """Rows as lists, ready to be published one after the other."""

    __slots__ = (
        "attachment",
        "hlc",
        "key",
        "keys",
        "kind",
        "qos",
        "schema",
        "shape",
        "stamp",
        "value",
    )

    def __init__(self, rows: pa.Table) -> None:
        """Take the columns apart, once for all rows."""
        rows = rows.combine_chunks()
        keys = rows["key"].combine_chunks().dictionary_encode()
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.unify_dictionaries().combine_chunks()
        self.keys: list[str] = keys.dictionary.to_pylist()
        self.key: list[int] = keys.indices.to_numpy(zero_copy_only=False).tolist()
        self.value: list[bytes] = list_of_bytes(rows["value"])
        self.kind: list[int] = rows["kind"].to_numpy().tolist()
        self.shape: list[int] = rows["encoding_id"].to_numpy().tolist()
        schema = rows["encoding_schema"]
        self.schema: list[str | None] | None = None
        if schema.null_count < rows.num_rows:
            self.schema = schema.to_pylist()
        self.hlc: list[int] = rows["hlc"].to_numpy().tolist()
        self.stamp: list[bytes] = list_of_each(rows["stamp_id"], lambda id: id or b"")
        attachment = rows["attachment"]
        self.attachment: list[bytes | None] | None = None
        if attachment.null_count < rows.num_rows:
            self.attachment = attachment.to_pylist()
        express = rows["express"].combine_chunks().to_numpy(zero_copy_only=False).tolist()
        self.qos: list[int] = [
            16 + priority if fast else priority
            for priority, fast in zip(rows["priority"].to_numpy().tolist(), express, strict=True)
        ]


@final
class _Route:
    """A publication, with what each neighbour is sent before the head of a put."""

    __slots__ = ("_heads", "_version", "publication")

    def __init__(self, publication: Publication) -> None:
        self.publication = publication
        self._version = -1
        self._heads: list[tuple[Any, bytes]] | None = None

    def put(self, stamp: WireTimestamp, attachment: bytes | None, value: bytes) -> bool:
        """Publish a value with its own time; False if a neighbour had no room for it."""
        one = self.publication
        if self._version != one.node.tables.version:
            self._renew()
        if self._heads is None:
            body = Put(
                timestamp=stamp,
                encoding=one.encoding,
                schema=one.schema,
                attachment=attachment,
                payload=value,
            )
            return one.publish(one.message(body, None))
        head = put_head(
            timestamp=stamp, encoding=one.encoding, schema=one.schema, attachment=attachment
        )
        taken = True
        for outbox, before in self._heads:
            if not outbox.offer(
                before + head, value, one.priority, one.reliable, one.congestion, one.express
            ):
                taken = False
        one.sent += 1
        one.tally.add(1, len(value))
        if not taken:
            one.dropped += 1
        return taken

    def _renew(self) -> None:
        """Find out who listens now; with a policy or subscribers here, message by message."""
        one = self.publication
        one.routes.renew(one)
        self._version = one.version
        plain = len(put_head(encoding=one.encoding, schema=one.schema))
        alone = not one.guarded and not one.locals
        self._heads = (
            [(remote.outbox, remote.put_head[:-plain]) for remote in one.remotes] if alone else None
        )


@final
class Outlet:
    """The publications of a replay."""

    def __init__(self, session: Session, prefix: str, retime: bool) -> None:
        """Below this prefix; the empty one means the very keys that were recorded."""
        self._session = session
        self._prefix = str(KeyExpr(prefix)) if prefix else ""
        self._retime = retime
        self._known: dict[tuple[str, int, int, str | None], _Route] = {}
        self.samples = 0
        self.bytes = 0
        #: What a neighbour did not take.
        self.lost = 0

    def publish(self, ready: Ready, start: int, end: int) -> None:
        """Publish these rows; waits where there is no room."""
        known, retime = self._known, self._retime
        session = self._session
        keys, schemas, attachments = ready.keys, ready.schema, ready.attachment
        key, shape, qos, kind = ready.key, ready.shape, ready.qos, ready.kind
        values, stamps, hlc = ready.value, ready.stamp, ready.hlc
        size = 0
        for row in range(start, end):
            id = shape[row]
            schema = None if schemas is None else schemas[row]
            name = (keys[key[row]], qos[row], id, schema)
            route = known.get(name)
            if route is None:
                route = self._found(name)
            publication = route.publication
            if retime:
                stamp = wire_timestamp(session.new_timestamp())
            else:
                raw = hlc[row] + HLC_BIAS
                stamp = WireTimestamp(seconds=raw >> 32, fraction=raw & 0xFFFFFFFF, id=stamps[row])
            attachment = None if attachments is None else attachments[row]
            if kind[row] == DELETE:
                gone = Del(timestamp=stamp, attachment=attachment)
                taken = publication.publish(publication.message(gone, None))
            else:
                value = values[row]
                size += len(value)
                taken = route.put(stamp, attachment, value)
            if not taken:
                self.lost += 1
        self.samples += end - start
        self.bytes += size

    def _found(self, name: tuple[str, int, int, str | None]) -> _Route:
        key, told, id, schema = name
        # 0 is for the protocol itself; rows that were made elsewhere may say so.
        priority = Priority(told & 7) if told & 7 else Priority.DEFAULT
        qos = QoS(priority, CongestionControl.BLOCK, told >= 16).byte
        text = str(KeyExpr(below(self._prefix, key)))
        publication = self._session._open().node.local.publication(
            OWN, text, qos, True, id, b"" if schema is None else schema.encode(), _ANY
        )
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        route = self._known[name] = _Route(publication)
        return route
