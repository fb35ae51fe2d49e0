"""Keys over HTTP: queries, puts, deletes, and streams of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from zenlake.api.reply import Reply
from zenlake.clock import Timestamp
from zenlake.errors import LocalError, ZError
from zenlake.http.connections import Connections, seat_of
from zenlake.http.heads import has_body, heads_of
from zenlake.http.shares import Holding, Shares, holder_of
from zenlake.http.users import User
from zenlake.node.sample import Sample
from zenlake.rest.asking import Asked, Form, asked, content_encoding, key_of, seconds_for
from zenlake.rest.bodies import body_of
from zenlake.rest.continuous import ContinuousByHttp, is_continuous
from zenlake.rest.gathered import Gathered, gather
from zenlake.rest.lake_requests import LakeRequests
from zenlake.rest.lake_tables import TablesByHttp, is_lake_table
from zenlake.rest.requests import Places, RequestRefused, address_of, no_room
from zenlake.rest.samples import ERROR, Row, event, html, json_array, raw_headers, row_of
from zenlake.rest.streams import EventReader, EventStream, Streams
from zenlake.rest.tables import KINDS, table_bytes
from zenlake.routing.policy.messages import (
    DECLARE_SUBSCRIBER,
    DELETE,
    EGRESS,
    INGRESS,
    PUT,
    QUERY,
    REPLY,
)

if TYPE_CHECKING:
    from zenlake.aio.session import Session
    from zenlake.config.model_web import Rest as RestSettings
    from zenlake.values import Encoding

__all__ = ["Keys"]

PATIENCE: Final = 0.05
"""Seconds after which it is asked whether the client is still there."""
FEW: Final = 256
SMALL: Final = 1 << 17
"""Rows and bytes of an answer that is written without giving up the loop: a millisecond."""
RESUMED: Final = 100_000
"""Samples that are remembered while a stream catches up."""
UNKNOWN_MANY: Final = b'event: SKIPPED\ndata: {"skipped":null}\n\n'
"""Says that samples are missing, and that nobody knows how many."""


class Keys:
    """The keys of the bus as resources."""

    def __init__(
        self,
        session: Session,
        settings: RestSettings,
        places: Places,
        connections: Connections,
    ) -> None:
        """Through a session on the loop that HTTP runs on; `connections`: of its server."""
        self._session = session
        self._runtime = session.runtime
        self._settings = settings
        self._places = places
        self._memory = connections.memory
        self._answers = connections.answers
        self._zid = str(session.zid())
        lake = LakeRequests(settings.lake)
        self._continuous = ContinuousByHttp(lake, self._zid)
        self._tables = TablesByHttp(lake)
        self.streams = Streams(session, settings.stream_queue)
        self._open = Shares(settings.max_streams)

    async def __call__(self, request: Request, user: User) -> Response:
        """Serve a request on a key."""
        method = request.method
        if method in ("GET", "POST", "HEAD"):
            accept = heads_of(request.scope).get("accept", "")
            wanted = asked(*_target(request), accept, self._zid)
            if wanted.form is Form.EVENTS:
                return await self._events(request, user, wanted)
            return await self._query(request, user, wanted)
        if method in ("PUT", "PATCH"):
            return await self._put(request, user)
        if method == "DELETE":
            key = key_of(_target(request)[0], self._zid)
            with self._places.place(request):
                if is_continuous(key):
                    dropped = await self._continuous.drop(key, user, address_of(request))
                    return JSONResponse(dropped)
                if is_lake_table(key):
                    return JSONResponse(await self._tables.remove(key, user, address_of(request)))
                user.demand(INGRESS, DELETE, key)
                await self._session.delete(key)
                return Response()
        raise RequestRefused(405, f"{method[:20]}: a key has GET, POST, PUT, PATCH and DELETE")

    # ------------------------------------------------------------------------------- publishing

    async def _put(self, request: Request, user: User) -> Response:
        path, query = _target(request)
        key = key_of(path, self._zid)
        encoding = content_encoding(heads_of(request.scope).get("content-type", ""))
        user.demand(INGRESS, PUT, key)
        async with body_of(request, self._settings.max_body, self._memory) as body:
            with self._places.place(request):
                address = address_of(request)
                if is_continuous(key):
                    made = await self._continuous.create(key, body, encoding, user, address)
                    return JSONResponse(made)
                if is_lake_table(key):
                    return JSONResponse(await self._tables.put(key, body, user, address))
                return await self._put_body(key, query, body, encoding)

    async def _put_body(
        self, key: str, query: bytes, body: bytes, encoding: Encoding | None
    ) -> Response:
        name = query.partition(b"=")[0]
        if name == b"_ack_put" and query not in (b"_ack_put=false", b"_ack_put=0"):
            try:
                stamp = await self._session.put_acknowledged(
                    key, body, encoding=encoding, timeout=self._settings.timeout
                )
            except LocalError as error:
                raise RequestRefused(503, str(error)) from error
            return Response(f'{{"timestamp":"{stamp}"}}', media_type="application/json")
        await self._session.put(key, body, encoding=encoding)
        return Response()

    # ----------------------------------------------------------------------------------- asking

    async def _query(self, request: Request, user: User, wanted: Asked) -> Response:
        user.demand_query(wanted.key, wanted.parameters)
        heads = heads_of(request.scope)
        if not has_body(heads):
            with self._places.place(request):
                return await self._answer(request, user, wanted, None)
        encoding = content_encoding(heads.get("content-type", ""))
        async with body_of(request, self._settings.max_body, self._memory) as body:
            with self._places.place(request):
                value = (body, encoding) if body else None
                return await self._answer(request, user, wanted, value)

    async def _answer(
        self,
        request: Request,
        user: User,
        wanted: Asked,
        value: tuple[bytes, Encoding | None] | None,
    ) -> Response:
        most = 1 if wanted.form is Form.RAW else self._settings.max_rows
        gathered = self._gathered(request, user, most)
        loop = asyncio.get_running_loop()
        watching: list[asyncio.Task[None]] = []
        # Most are answered before it is worth to look whether the client is still there.
        timer = loop.call_later(
            PATIENCE, lambda: watching.append(loop.create_task(_watch(request, gathered)))
        )
        try:
            await self._gather(request, user, wanted, gathered, value)
        finally:
            timer.cancel()
            for task in watching:
                task.cancel()
        if gathered.abandoned:
            return Response(status_code=499)
        if gathered.cut == "memory":
            raise no_room(self._answers, gathered.weight)
        response = await _formed_aside(gathered.items, wanted)
        if gathered.cut and wanted.form is not Form.RAW:
            response.headers["zenlake-truncated"] = self._truncated(gathered)
        return response

    def _gathered(self, request: Request, user: User, most: int) -> Gathered:
        lets = None if user.unrestricted else partial(user.may, EGRESS, REPLY)
        return Gathered(most, self._settings.max_answer, lets, seat_of(request.scope).making)

    async def _gather(
        self,
        request: Request,
        user: User,
        wanted: Asked,
        gathered: Gathered,
        value: tuple[bytes, Encoding | None] | None = None,
    ) -> None:
        """Ask the bus, as long as HTTP waits for an answer."""
        parameters = user.restricted(wanted.key, wanted.parameters, address_of(request))
        seconds = seconds_for(wanted.key, self._settings.timeout)
        await gather(self._runtime, wanted, parameters, gathered, seconds, value)

    def _truncated(self, gathered: Gathered) -> str:
        """Why an answer is not all that was replied."""
        name = "max_rows" if gathered.cut == "rows" else "max_answer"
        return f"{gathered.cut}; plugins/rest/{name} is {getattr(self._settings, name)}"

    # ----------------------------------------------------------------------------------- events

    async def _events(self, request: Request, user: User, wanted: Asked) -> Response:
        user.demand(INGRESS, DECLARE_SUBSCRIBER, wanted.key)
        streams = self.streams
        holder = holder_of(address_of(request))
        if not self._open.take(holder):
            raise RequestRefused(
                503, f"{self._open.taken} streams are open (plugins/rest/max_streams)"
            )
        try:
            reader = await streams.join(wanted.key, Holding(self._answers, holder))
        except BaseException:
            self._open.give_back(holder)
            raise
        told = self._stream(request, user, wanted, reader)
        return EventStream(told, partial(self._leave, reader, holder))

    async def _leave(self, reader: EventReader, holder: str) -> None:
        self._open.give_back(holder)
        await self.streams.leave(reader)

    async def _stream(
        self, request: Request, user: User, wanted: Asked, reader: EventReader
    ) -> AsyncGenerator[bytes, None]:
        yield b": zenlake\n\n"
        seen: set[str] = set()
        after = _last_event(request)
        if after is not None:
            async for one in self._missed(request, user, wanted.key, after, seen):
                yield one
            seat_of(request.scope).making.force(0)
        while (batch := await reader.take()) is not None:
            parts: list[bytes] = []
            for told in batch:
                row = told.row
                if seen and row.timestamp in seen:
                    seen.discard(row.timestamp)
                elif user.may(EGRESS, DELETE if row.deleted else PUT, row.key):
                    parts.append(told.text(wanted.cut))
            if reader.missed:
                missed, reader.missed = reader.missed, 0
                parts.append(b'event: SKIPPED\ndata: {"skipped":%d}\n\n' % missed)
            if parts or not batch:
                yield b"".join(parts) or b": alive\n\n"

    async def _missed(
        self, request: Request, user: User, key: str, after: Timestamp, seen: set[str]
    ) -> AsyncIterator[bytes]:
        """What was published since, as a journal or a storage with a history remembers it."""
        if not user.may(INGRESS, QUERY, key):
            yield UNKNOWN_MANY
            return
        start = after.get_time_as_ntp64().to_string_rfc3339_lossy()
        wanted = Asked(key, f"_time=[{start}..]", Form.EVENTS, timed=True)
        gathered = self._gathered(request, user, self._settings.max_rows)
        await self._gather(request, user, wanted, gathered)
        missed = []
        for row in map(_row_of, gathered.items):
            if row.timestamp is not None and row.key != ERROR:
                stamp = Timestamp.parse(row.timestamp)
                if stamp > after:
                    missed.append((stamp, row))
        missed.sort(key=lambda one: one[0])
        for _, row in missed:
            if not user.may(EGRESS, DELETE if row.deleted else PUT, row.key):
                continue
            if len(seen) < RESUMED and row.timestamp is not None:
                seen.add(row.timestamp)
            yield event(row)
        if gathered.cut:
            yield UNKNOWN_MANY


def _target(request: Request) -> tuple[bytes, bytes]:
    return request.scope["raw_path"], request.scope["query_string"]


def _row_of(item: Sample | Reply) -> Row:
    sample = item if isinstance(item, Sample) else item.ok
    if sample is not None:
        return row_of(sample)
    assert isinstance(item, Reply)
    error = item.err
    assert error is not None
    return Row(ERROR, error.payload.to_bytes(), str(error.encoding))


async def _formed_aside(items: list[Sample | Reply], wanted: Asked) -> Response:
    """An answer in the form that was asked for; what takes long, on another thread.

    The loop has all other requests to answer meanwhile; and the first table loads a library.
    """
    if len(items) <= FEW and wanted.form in (Form.RAW, Form.JSON, Form.HTML):
        rows = [_row_of(item) for item in items]
        if sum(len(row.payload) for row in rows) <= SMALL:
            return _formed(rows, wanted)
    return await asyncio.to_thread(lambda: _formed([_row_of(item) for item in items], wanted))


def _formed(rows: list[Row], wanted: Asked) -> Response:
    """An answer in the form that was asked for."""
    form = wanted.form
    if form is Form.RAW:
        if not rows:
            return Response()
        return Response(rows[0].payload, headers=raw_headers(rows[0].encoding))
    if form is Form.HTML:
        return HTMLResponse(html(rows))
    if form is Form.JSON:
        return Response(json_array(rows), media_type="application/json")
    headers = {"content-type": KINDS[form]}
    if wanted.file:
        headers["content-disposition"] = f'attachment; filename="answer.{form.value}"'
    return Response(table_bytes(rows, form), headers=headers)


def _last_event(request: Request) -> Timestamp | None:
    text = heads_of(request.scope).get("last-event-id", "")
    if not text:
        return None
    try:
        return Timestamp.parse(text)
    except ZError:
        return None


async def _watch(request: Request, gathered: Gathered) -> None:
    """Wait until the client has closed the connection, and abandon what it asked for."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gathered.abandon()
