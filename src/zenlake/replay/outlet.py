"""Puts recorded samples back on the bus: key behind a prefix, all else as it was.

Payload, encoding, attachment, priority and express are the sample's own, byte for byte, and so is
the timestamp unless new ones are wanted. What is said of the way is not: samples are sent reliably
and wait where there is no room, so that none is lost, and they name no source, for the ledger of
that source would count them twice. An exact replay has these three as they were recorded, too.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from zenlake.api.core import OWN, open_runtime
from zenlake.journal.reading.lists import list_of_bytes, list_of_each
from zenlake.journal.reading.wire_sources import wire_sources
from zenlake.journal.reading.wire_times import are_long, wire_times
from zenlake.journal.schema import DELETE
from zenlake.keys import KeyExpr
from zenlake.node.sample import wire_timestamp
from zenlake.recorded.columns import coded
from zenlake.recorded.encoding import schema_bytes
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.replay.recorded_puts import RecordedPuts, ReplayRoute
from zenlake.values import Locality, Priority
from zenlake.values.qos import QOS_BLOCK, QOS_BLOCK_FIRST, QOS_EXPRESS, QOS_PRIORITY
from zenlake.wire.codec_zenoh import Del
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.entities import Publication

__all__ = ["Outlet", "Ready", "below"]

MOST_KEYS: Final = 65_536
"""How many keys are remembered with their routes."""

RELIABLE: Final = 0x100
"""What is added to the quality of service of a row that is sent reliably."""

RouteName: TypeAlias = "tuple[str, int, int, str | None]"
"""What rows of one route have in common: key, quality of service, encoding and its schema."""

_ANY: Final = Locality.ANY.value
_CONGESTION: Final = np.array([0, QOS_BLOCK, QOS_BLOCK_FIRST])
"""The bits of a congestion control, by its number."""


def below(prefix: str, key: str) -> str:
    """The key behind a prefix."""
    return f"{prefix}/{key}" if prefix else key


@final
class Ready:
    """Rows as lists, ready to be published one after the other."""

    __slots__ = ("attachments", "codes", "deleted", "names", "puts", "routes")

    def __init__(self, rows: pa.Table, *, exact: bool = False) -> None:
        """Take the columns apart, once for all rows.

        `exact`: with source, reliability and congestion control as recorded.
        """
        rows = rows.combine_chunks()
        self.names, self.codes = _routes_of(rows, exact)
        raw = rows["hlc"].to_numpy().view(np.uint64) ^ np.uint64(HLC_BIAS)
        self.attachments: list[bytes | None] | None = None
        if rows["attachment"].null_count < rows.num_rows:
            self.attachments = rows["attachment"].to_pylist()
        ids: list[bytes] = list_of_each(rows["stamp_id"], lambda id: id or b"")
        self.puts = RecordedPuts(
            (raw >> np.uint64(32)).tolist(),
            (raw & np.uint64(0xFFFFFFFF)).tolist(),
            ids,
            list_of_bytes(rows["value"]),
            self.attachments,
            wire_times(raw) if all(ids) and are_long(raw) else b"",
            wire_sources(rows["source_zid"], rows["source_eid"], rows["source_sn"])
            if exact
            else None,
        )
        #: The routes by number; found when the first row is published.
        self.routes: list[ReplayRoute] | None = None
        #: The places of deletions, in their order.
        self.deleted: list[int] = np.nonzero(rows["kind"].to_numpy() == DELETE)[0].tolist()


def _routes_of(rows: pa.Table, exact: bool) -> tuple[list[RouteName], list[int]]:
    """The routes that rows take, and for each row the number of its own."""
    keys = coded(rows["key"])
    texts: list[str] = keys.dictionary.to_pylist()
    places: list[int] = keys.indices.to_numpy(zero_copy_only=False).tolist()
    qos = _qos_of(rows, exact)
    shapes = rows["encoding_id"].to_numpy()
    schemas = rows["encoding_schema"]
    plain = schemas.null_count == rows.num_rows
    if plain and len(np.unique(qos)) == 1 and len(np.unique(shapes)) == 1:
        # As a rule all rows differ in their keys alone.
        return [(text, int(qos[0]), int(shapes[0]), None) for text in texts], places
    names: dict[RouteName, int] = {}
    schema: list[str | None] = [None] * rows.num_rows if plain else schemas.to_pylist()
    codes = [
        names.setdefault((texts[place], *rest), len(names))
        for place, *rest in zip(places, qos.tolist(), shapes.tolist(), schema, strict=True)
    ]
    return list(names), codes


def _qos_of(rows: pa.Table, exact: bool) -> Any:
    """The quality of service that each row is sent with: the byte of the wire, and `RELIABLE`."""
    # 0 is for the protocol itself; rows that were made elsewhere may say so.
    priority = rows["priority"].to_numpy() & QOS_PRIORITY
    qos = np.where(priority, priority, Priority.DEFAULT).astype(np.int64)
    qos += QOS_EXPRESS * rows["express"].to_numpy()
    if not exact:
        return qos + (QOS_BLOCK | RELIABLE)
    qos += RELIABLE * rows["reliable"].to_numpy()
    return qos + _CONGESTION[rows["congestion"].to_numpy()]


@final
class Outlet:
    """The publications of a replay."""

    def __init__(self, session: Session, prefix: str, retime: bool) -> None:
        """Below this prefix; the empty one means the very keys that were recorded."""
        self._session = session
        self._prefix = str(KeyExpr(prefix)) if prefix else ""
        self._retime = retime
        self._known: dict[RouteName, ReplayRoute] = {}
        self.samples = 0
        self.bytes = 0
        #: What a neighbour did not take.
        self.lost = 0

    def publish(self, ready: Ready, start: int, end: int) -> None:
        """Publish these rows; waits where there is no room."""
        routes = self._routes(ready)
        puts, place = ready.puts, start
        size, lost = puts.size, puts.lost
        if self._retime:
            self._give_times(puts, start, end)
        first = bisect_left(ready.deleted, start)
        for gone in ready.deleted[first : bisect_left(ready.deleted, end)]:
            puts.publish(routes, ready.codes, place, gone)
            self._delete(routes[ready.codes[gone]].publication, ready, gone)
            place = gone + 1
        puts.publish(routes, ready.codes, place, end)
        self.lost += puts.lost - lost
        self.bytes += puts.size - size
        self.samples += end - start

    def _give_times(self, puts: RecordedPuts, start: int, end: int) -> None:
        for row in range(start, end):
            stamp = wire_timestamp(self._session.new_timestamp())
            puts.seconds[row], puts.fractions[row] = stamp.seconds, stamp.fraction
            puts.ids[row] = stamp.id
        puts.times = b""  # which are the recorded ones

    def _delete(self, publication: Publication, ready: Ready, row: int) -> None:
        puts, attachments = ready.puts, ready.attachments
        stamp = WireTimestamp(
            seconds=puts.seconds[row], fraction=puts.fractions[row], id=puts.ids[row]
        )
        gone = Del(
            timestamp=stamp,
            source_info=None if puts.sources is None else puts.sources[row],
            attachment=None if attachments is None else attachments[row],
        )
        if not publication.publish(publication.message(gone, None)):
            self.lost += 1

    def _routes(self, ready: Ready) -> list[ReplayRoute]:
        """The routes of some rows; those of keys that came before are known."""
        if ready.routes is None:
            if len(self._known) + len(ready.names) > MOST_KEYS:
                self._known.clear()
            ready.routes = [self._known.get(name) or self._found(name) for name in ready.names]
        return ready.routes

    def _found(self, name: RouteName) -> ReplayRoute:
        key, qos, id, schema = name
        text = str(KeyExpr(below(self._prefix, key)))
        publication = open_runtime(self._session).node.local.publication(
            OWN, text, qos & 0xFF, qos >= RELIABLE, id, schema_bytes(schema), _ANY
        )
        route = self._known[name] = ReplayRoute(publication)
        return route
