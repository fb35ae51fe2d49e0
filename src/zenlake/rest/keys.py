"""Keys over HTTP: queries, puts, deletes, and streams of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from zenlake.api.querier import QueryConsolidation
from zenlake.clock import Timestamp
from zenlake.engine.handlers import RingChannel
from zenlake.errors import LocalError, ZError
from zenlake.http.users import User
from zenlake.keys import Selector
from zenlake.node.sample import Sample
from zenlake.rest.asking import Asked, Form, asked, content_encoding, key_of, seconds_for
from zenlake.rest.bodies import body_of
from zenlake.rest.requests import RequestRefused
from zenlake.rest.samples import ERROR, Row, event, html, json_array, raw_headers
from zenlake.rest.standing import StandingByHttp, is_standing
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
from zenlake.values import ConsolidationMode, SampleKind

if TYPE_CHECKING:
    from zenlake.aio.session import Session
    from zenlake.aio.subscribe import Subscriber
    from zenlake.api.reply import Reply
    from zenlake.config.model_web import Rest as RestSettings

__all__ = ["Keys"]

ALIVE: Final = 15.0
"""Seconds after which a silent stream says that it is alive."""
PATIENCE: Final = 0.05
"""Seconds after which it is asked whether the client is still there."""
FEW: Final = 256
SMALL: Final = 1 << 17
"""Rows and bytes of an answer that is written without giving up the loop: a millisecond."""
RESUMED: Final = 100_000
"""Samples that are remembered while a stream catches up."""


class Keys:
    """The keys of the bus as resources."""

    def __init__(self, session: Session, settings: RestSettings) -> None:
        """Through a session on the loop that HTTP runs on."""
        self._session = session
        self._settings = settings
        self._zid = str(session.zid())
        self._standing = StandingByHttp(settings.lake)
        #: Open streams, and samples that slow readers of streams did not get.
        self.streams = 0
        self.skipped = 0

    async def __call__(self, request: Request, user: User) -> Response:
        """Serve a request on a key."""
        method = request.method
        if method in ("GET", "POST", "HEAD"):
            wanted = asked(*_target(request), request.headers.get("accept", ""), self._zid)
            if wanted.form is Form.EVENTS:
                return await self._events(request, user, wanted)
            return await self._query(request, user, wanted)
        if method in ("PUT", "PATCH"):
            return await self._put(request, user)
        if method == "DELETE":
            key = key_of(_target(request)[0], self._zid)
            user.demand(INGRESS, DELETE, key)
            if is_standing(key):
                return JSONResponse(await self._standing.drop(key))
            await self._session.delete(key)
            return Response()
        raise RequestRefused(405, f"{method[:20]}: a key has GET, POST, PUT, PATCH and DELETE")

    # ------------------------------------------------------------------------------- publishing

    async def _put(self, request: Request, user: User) -> Response:
        path, query = _target(request)
        key = key_of(path, self._zid)
        encoding = content_encoding(request.headers.get("content-type", ""))
        user.demand(INGRESS, PUT, key)
        body = await body_of(request, self._settings.max_body)
        if is_standing(key):
            return JSONResponse(await self._standing.create(key, body, encoding))
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
        user.demand(INGRESS, QUERY, wanted.key)
        body = await body_of(request, self._settings.max_body)
        encoding = content_encoding(request.headers.get("content-type", "")) if body else None
        asking = asyncio.ensure_future(self._rows(user, wanted, body, encoding))
        done, _ = await asyncio.wait({asking}, timeout=PATIENCE)
        if not done:
            gone = asyncio.ensure_future(_gone(request))
            try:
                await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
            if not asking.done():
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asking
                return Response(status_code=499)
        rows, truncated = asking.result()
        response = await _formed_aside(rows, wanted)
        if truncated:
            response.headers["zenlake-truncated"] = truncated
        return response

    async def _rows(
        self, user: User, wanted: Asked, body: bytes, encoding: str | None
    ) -> tuple[list[Row], str]:
        """What is replied, and why it is not all, if it is not."""
        mode = ConsolidationMode.NONE if wanted.timed else ConsolidationMode.LATEST
        rows: list[Row] = []
        size = 0
        settings = self._settings
        async with self._session.get(
            Selector(wanted.key, user.restricted(wanted.key, wanted.parameters)),
            consolidation=QueryConsolidation(mode),
            timeout=seconds_for(str(wanted.key), settings.timeout),
            payload=body or None,
            encoding=encoding,
        ) as replies:
            async for reply in replies:
                row = _row_of(reply)
                if row.key != ERROR and not user.may(EGRESS, REPLY, row.key):
                    continue
                if len(rows) >= settings.max_rows:
                    return rows, f"rows; plugins/rest/max_rows is {settings.max_rows}"
                size += len(row.payload)
                if size > settings.max_answer:
                    return rows, f"bytes; plugins/rest/max_answer is {settings.max_answer}"
                rows.append(row)
                if wanted.form is Form.RAW:
                    break
        return rows, ""

    # ----------------------------------------------------------------------------------- events

    async def _events(self, request: Request, user: User, wanted: Asked) -> Response:
        user.demand(INGRESS, DECLARE_SUBSCRIBER, wanted.key)
        if self.streams >= self._settings.max_streams:
            raise RequestRefused(503, f"{self.streams} streams are open (plugins/rest/max_streams)")
        after = _last_event(request)
        subscriber = await self._session.declare_subscriber(
            wanted.key, RingChannel(self._settings.stream_queue)
        )
        # Not as a media type: to that of a text the library adds a charset.
        headers = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
        return StreamingResponse(self._stream(user, wanted, subscriber, after), headers=headers)

    async def _stream(
        self, user: User, wanted: Asked, subscriber: Subscriber, after: Timestamp | None
    ) -> AsyncIterator[bytes]:
        self.streams += 1
        skipped = 0
        try:
            yield b": zenlake\n\n"
            seen: set[str] = set()
            if after is not None:
                async for one in self._missed(user, wanted.key, after, seen):
                    yield one
            while True:
                sample: Sample | None
                try:
                    sample = await asyncio.wait_for(subscriber.recv(), ALIVE)
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                except ZError:
                    return
                parts: list[bytes] = []
                while sample is not None:
                    row = _row_of_sample(sample)
                    if seen and row.timestamp in seen:
                        seen.discard(row.timestamp)
                    elif user.may(EGRESS, DELETE if row.deleted else PUT, row.key):
                        parts.append(event(_cut(row, wanted.cut)))
                    sample = subscriber.try_recv() if len(parts) < 256 else None
                dropped = sum(subscriber.stats.dropped.values())
                if dropped > skipped:
                    self.skipped += dropped - skipped
                    parts.append(b'event: SKIPPED\ndata: {"skipped":%d}\n\n' % (dropped - skipped))
                    skipped = dropped
                if parts:
                    yield b"".join(parts)
        finally:
            self.streams -= 1
            with contextlib.suppress(ZError):
                await subscriber.undeclare()

    async def _missed(
        self, user: User, key: str, after: Timestamp, seen: set[str]
    ) -> AsyncIterator[bytes]:
        """What was published since, as a journal or a storage with a history remembers it."""
        start = after.get_time_as_ntp64().to_string_rfc3339_lossy()
        wanted = Asked(key, f"_time=[{start}..]", Form.EVENTS, timed=True)
        rows, truncated = await self._rows(user, wanted, b"", None)
        missed = []
        for row in rows:
            if row.timestamp is not None and row.key != ERROR:
                stamp = Timestamp.parse(row.timestamp)
                if stamp > after:
                    missed.append((stamp, row))
        missed.sort(key=lambda one: one[0])
        for _, row in missed:
            if len(seen) < RESUMED and row.timestamp is not None:
                seen.add(row.timestamp)
            yield event(row)
        if truncated:
            yield b'event: SKIPPED\ndata: {"skipped":null}\n\n'


def _target(request: Request) -> tuple[bytes, bytes]:
    scope = request.scope
    path = scope.get("raw_path") or request.url.path.encode()
    return path, scope.get("query_string", b"")


def _row_of(reply: Reply) -> Row:
    sample = reply.ok
    if sample is not None:
        return _row_of_sample(sample)
    error = reply.err
    assert error is not None
    return Row(ERROR, error.payload.to_bytes(), str(error.encoding))


def _row_of_sample(sample: Sample) -> Row:
    stamp = sample.timestamp
    return Row(
        str(sample.key_expr),
        sample.payload.to_bytes(),
        str(sample.encoding),
        None if stamp is None else str(stamp),
        sample.kind is SampleKind.DELETE,
    )


def _cut(row: Row, most: int | None) -> Row:
    """The row without its payload, if that is longer."""
    if most is None or len(row.payload) <= most:
        return row
    return replace(row, payload=b"", cut=len(row.payload))


async def _formed_aside(rows: list[Row], wanted: Asked) -> Response:
    """An answer in the form that was asked for; what takes long, on another thread.

    The loop has all other requests to answer meanwhile; and the first table loads a library.
    """
    small = len(rows) <= FEW and sum(len(row.payload) for row in rows) <= SMALL
    if small and wanted.form in (Form.RAW, Form.JSON, Form.HTML):
        return _formed(rows, wanted)
    return await asyncio.to_thread(_formed, rows, wanted)


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
    text = request.headers.get("last-event-id", "")
    if not text:
        return None
    try:
        return Timestamp.parse(text)
    except ZError:
        return None


async def _gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while not await request.is_disconnected():
        await asyncio.sleep(PATIENCE)
