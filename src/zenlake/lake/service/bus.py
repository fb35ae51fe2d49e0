"""A lake on the bus: queries about history, SQL, and the description of its tables.

    robot/**?_time=[now(-1h)..];_filter=battery<20      samples, as they were published
    @lake/sql                 a SELECT in the payload, or in `_sql=` if it has no `;`;
                              with `_proof=true` {"rows": …, "proof": …}
    @lake/sql/<name>          the same, over the rows of this name in `row_access`; without a proof
    @lake/tables/**           the tables, their columns and their keys, as JSON

An asker that a router's access control keeps from some keys (`_readable`, which the router adds) is
told of none of them, whatever it asks.

It answers for the keys that its journals record, and never claims to be complete. A query without
a parameter of the lake's gets its final at once: what applications answer is neither disturbed nor
delayed. While it is there (the liveliness token `@lake/<journal>`), the recorder and the storages
of the router leave queries with such parameters to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.engine.claims import JOURNAL, Claims
from zenlake.errors import SelectorError, ZError
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import JSON, QueryService
from zenlake.journal.ledger.proof import ALWAYS, proven
from zenlake.journal.reading.lists import holds_of_each
from zenlake.keys import ResolvedRange, intersects, is_wild
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.decode.table_store import stored_tables
from zenlake.lake.history.answer import (
    ARROW,
    NEWEST,
    SAMPLES,
    Answered,
    AnswerLimits,
    Rows,
    aggregated,
    arrow_bytes,
    encoded,
    projected,
)
from zenlake.lake.history.parameters import Selection, form_of, selection_of, wants_proof
from zenlake.lake.history.recorded_replies import RecordedReplies
from zenlake.lake.history.reply_columns import ReplyColumns
from zenlake.lake.history.samples import History, LakeSnapshot
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.query.executor import SqlQuestion
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.plan_policy import demand_text
from zenlake.lake.query.planner import references
from zenlake.lake.query.visibility import keys_behind, shown_tables
from zenlake.lake.service.service import described

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.lake.service.service import Service

__all__ = ["BusAnswers"]

SQL: Final = "@lake/sql"
TABLES: Final = "@lake/tables"
WORKERS: Final = 4
REPLIES_PER_CHECK: Final = 16_384
"""Replies between two looks whether the asker is still there, at most."""
HELD: Final = 16 << 20
"""Bytes of values that are replied with between two looks, about."""
SETTLE: Final = 1.0
"""Seconds that the recorder may take to make durable what it heard before a question."""

PARTIAL: Final = "_proof: the ledger names keys that access control denies to you; ask without it"

SQL_LIMITS: Final = QueryLimits(seconds=30.0, rows=100_000, bytes=64 << 20)


@final
class BusAnswers:
    """The queryables of a lake, until it is closed."""

    def __init__(
        self,
        service: Service,
        session: Session,
        exprs: Iterable[str] | None = None,
        caps: AnswerLimits | None = None,
    ) -> None:
        """Answer for these keys; those that the journals' recorders name, if not said."""
        self._service = service
        self._session = session
        self.history = History(service.lake.catalog, service.journals)
        self.caps = caps or AnswerLimits()
        # Recorders may call their journals the same.
        self._names = tuple(dict.fromkeys(journal.name for journal in service.journals))
        self._answers = QueryService(
            "answers", WORKERS, expected=(ZError, OSError, pa.ArrowException)
        )
        self._exprs = list(exprs) if exprs is not None else self._recorded()
        # A key that several expressions mean is answered under the first of them.
        self._claims = Claims()
        self._claimed = [self._claims.claim(expr, JOURNAL, JOURNAL) for expr in self._exprs]
        granted = service.lake.config.row_access
        restricted = {f"{SQL}/{name}": access for name, access in granted.items()}
        self._declared = [
            session.declare_queryable(SQL, lambda query: self._asked_sql(query, SQL, EVERYTHING)),
            session.declare_queryable(f"{TABLES}/**", self._asked_tables),
        ]
        self._declared += [
            session.declare_queryable(
                key,
                lambda query, key=key, access=access: self._asked_sql(query, key, access),  # type: ignore[misc]
            )
            for key, access in restricted.items()
        ]
        self._declared += [
            session.declare_queryable(
                expr,
                lambda query, number=number: self._asked(query, number),  # type: ignore[misc]
                complete=False,
            )
            for number, expr in enumerate(self._exprs)
        ]
        self._tokens = [session.liveliness().declare_token(f"@lake/{name}") for name in self._names]

    def _recorded(self) -> list[str]:
        """What the recorders of the journals record; everything, if one does not say."""
        stats = self._ask_recorders("stats")
        exprs = [one.get("key_exprs") or () for one in stats or ()]
        if not exprs or not all(exprs):
            return ["**"]
        return list(dict.fromkeys(str(expr) for some in exprs for expr in some))

    def _ask_recorders(self, page: str) -> list[dict[str, Any]] | None:
        """What the recorders tell of themselves; None if one of them is not on this bus."""
        asked = [
            self._session.get(f"@journal/{name}/{page}", timeout=SETTLE) for name in self._names
        ]
        pages: list[dict[str, Any]] = []
        for replies in asked:
            told: list[dict[str, Any]] = []
            with suppress(ZError, ValueError):
                told += [json.loads(one.ok.payload.to_bytes()) for one in replies if one.ok]
            pages += told
            if not told:
                return None
        return pages

    def close(self) -> None:
        """Answer no more."""
        self._answers.close([*self._tokens, *self._declared], self._session)

    # --- questions ------------------------------------------------------------------------------

    def _asked(self, query: Query, number: int) -> None:
        parameters = query.parameters
        if not parameters.asks_lake():
            return  # the final, at once
        self._answers.later(query, lambda query: self._answer(query, number))

    def _asked_sql(self, query: Query, key: str, access: RowAccess) -> None:
        # In the turn of who asks, among all that ask for SQL in whatever way.
        submit = self._service.executor.submit
        self._answers.later(query, lambda query: self._sql(query, key, access), submit)

    def _asked_tables(self, query: Query) -> None:
        self._answers.later(query, self._tables)

    # --- history --------------------------------------------------------------------------------

    def _answer(self, query: Query, number: int) -> None:
        now = time.time_ns()
        demand_understood(query.parameters, "lake")
        selection = selection_of(query.parameters, now)
        if selection is None:
            return
        expr = str(query.key_expr)
        single = not is_wild(expr) or bool(selection.aggregates)
        if selection.proof and selection.time is None and single:
            raise SelectorError(
                "_proof: its reply would take the place of the only other one; ask with _time, or "
                "for keys with a wildcard"
            )
        readable = ReadableKeys.in_parameters(query.parameters)
        if selection.proof and not readable.unrestricted:
            raise SelectorError(PARTIAL)
        # What was heard before the question belongs into its answer.
        self._ask_recorders("settled")
        snapshot, tables = self._rows(selection, expr, now)
        rows = Rows(selection, now // 1000, self.caps)
        mine = (self._owned(table, number, readable) for table in tables)
        if selection.aggregates:
            groups = aggregated(selection, rows, mine, self.caps)
            payload, encoding = encoded(groups, selection.form)
            query.reply(expr, payload, encoding=encoding)
        else:
            self._reply(query, selection, rows.chosen(mine))
        if selection.proof:
            within = selection.time or ResolvedRange(None, selection.asof)
            query.reply(expr, json.dumps(self._proof(snapshot, (expr,), within)), encoding=JSON)

    def _rows(
        self, selection: Selection, expr: str, now: int
    ) -> tuple[LakeSnapshot, Iterable[pa.Table]]:
        if selection.time is not None:
            snapshot = self.history.look()
            return snapshot, self.history.samples(snapshot, expr, selection.time, SAMPLES)
        if selection.asof is not None:
            snapshot = self.history.look()
            return snapshot, [self.history.as_of(snapshot, expr, selection.asof, NEWEST)]
        snapshot, table = self.history.newest(expr)
        return snapshot, [table]

    def _owned(self, table: pa.Table, number: int, readable: ReadableKeys) -> pa.Table:
        alone = not number and len(self._exprs) == 1 and self._exprs[0] == "**"
        if alone and readable.unrestricted:
            return table
        expr, claim = self._exprs[number], self._claimed[number]
        mine = holds_of_each(
            table["key"],
            lambda key: (
                (alone or (intersects(expr, key) and self._claims.is_first(claim, key, past=True)))
                and readable.lets(key)
            ),
        )
        return table if mine.all() else table.filter(pa.array(mine))

    def _reply(self, query: Query, selection: Selection, answered: Answered) -> None:
        """Rows as they were published: key, time, encoding, attachment and source are their own."""
        subjects = answered.subjects if selection.project else None
        columns = ReplyColumns(answered.rows, None if subjects is None else JSON)
        replies = RecordedReplies(query, columns.keys, columns.kinds)
        count = answered.rows.num_rows
        size = answered.rows["value"].nbytes // max(1, count)
        step = max(1, min(REPLIES_PER_CHECK, HELD // (size + 1)))
        for start in range(0, count, step):
            if self._answers.is_over(query):
                return
            payloads = None
            if subjects is not None:
                payloads = [
                    json.dumps(projected(selection, one), ensure_ascii=False).encode()
                    for one in subjects[start : start + step]
                ]
            replies.send(columns.stretch(start, step, payloads))

    def _proof(
        self, snapshot: LakeSnapshot, exprs: tuple[str, ...], within: ResolvedRange = ALWAYS
    ) -> dict[str, Any]:
        """What was read, and of each source of these keys what is missing in the range."""
        ledgers = self._ask_recorders("ledger")
        found = proven(exprs, ledgers or (), within)
        return {
            "journal": snapshot.tails[0].journal.id,
            "table": {"name": "samples", "version": snapshot.version},
            "partitions": [
                {
                    "journal": tail.journal.id,
                    "partition": p,
                    "table_to": committed,
                    "journal_to": max(end, committed),
                }
                for tail in snapshot.tails
                for p, (committed, end) in enumerate(zip(tail.committed, tail.ends, strict=True))
            ],
            "keys": list(exprs),
            "ledger": "recorder" if found.known else None,
            "complete": found.complete,
            "sources": list(found.sources),
            "unprovable": found.unprovable,
            "drops": found.drops,
        }

    # --- SQL and tables -------------------------------------------------------------------------

    def _sql(self, query: Query, key: str, access: RowAccess) -> None:
        parameters = query.parameters
        demand_understood(parameters, "@lake/sql")
        form = form_of(parameters.interpreted("_as"))
        parameter = parameters.interpreted("_sql")
        payload = query.payload
        if payload is not None and parameter is not None:
            raise SelectorError("a question in the payload and one in _sql; send one of them")
        text = payload.to_bytes().decode("utf-8", "replace") if payload is not None else parameter
        if not text:
            raise SelectorError("no question: send a SELECT as the payload, or in _sql=")
        wanted = wants_proof(parameters.interpreted("_proof"))
        if wanted and not access.unrestricted:
            raise SelectorError("_proof: the ledger names keys of all; ask @lake/sql, if you may")
        readable = ReadableKeys.in_parameters(parameters)
        # A view is granted by its own key; only what rules deny is not in it.
        access = access.asked_by(readable if access.unrestricted else readable.granted())
        proof = self._read_by(text, readable) if wanted else None
        question = SqlQuestion(text, SQL_LIMITS, access, gone=lambda: self._answers.is_over(query))
        table = self._service.executor.run(question)
        if proof is not None and form == "arrow":
            about = {**(table.schema.metadata or {}), b"zenlake.proof": json.dumps(proof).encode()}
            query.reply(key, arrow_bytes(table.replace_schema_metadata(about)), encoding=ARROW)
        elif proof is not None:
            both = b'{"rows": %b, "proof": %b}' % (json_rows(table), json.dumps(proof).encode())
            query.reply(key, both, encoding=JSON)
        elif form == "arrow":
            query.reply(key, arrow_bytes(table), encoding=ARROW)
        else:
            query.reply(key, json_rows(table), encoding=JSON)

    def _read_by(self, text: str, readable: ReadableKeys) -> dict[str, Any]:
        """The proof of a question: which tables it reads, each in this version or a later one.

        Who may not read all keys is told of no sources, and that nothing is proven.
        """
        lake = self._service.lake
        demand_text(text, SQL_LIMITS)
        _, tables = references(lake.catalog, text, known=lambda name: True)
        described = {name: table.described for name, table in tables.items()}
        versions = {name: tables[name].version for name in sorted(tables)}
        behind = keys_behind(described, lake.key_tables())
        proof = self._proof(self.history.look(), behind)
        del proof["table"]
        if not readable.unrestricted:
            proof |= {"ledger": None, "complete": None}
            proof |= {"sources": [], "unprovable": {}, "drops": {}}
        return {"tables": versions, **proof}

    def _tables(self, query: Query) -> None:
        demand_understood(query.parameters, "@lake/tables")
        asked = str(query.key_expr)
        lake = self._service.lake
        readable = ReadableKeys.in_parameters(query.parameters)
        words = {name: table.described for name, table in lake.catalog.tables()[0].items()}
        stored = stored_tables(lake.place, lake.config)
        specs = (*lake.config.tables, *(one.spec for one in stored))
        shown = shown_tables(words, specs, readable)
        for name, facts in described(lake, stored).items():
            key = f"{TABLES}/{name}"
            if name in shown and intersects(asked, key):
                query.reply(key, json.dumps(facts), encoding=JSON)


def json_rows(table: pa.Table) -> bytes:
    """Rows as a JSON array of objects; bytes as text, or in hexadecimal if they are none."""
    from zenlake.lake.model.json_values import plain

    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    rows = [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    return json.dumps(rows, ensure_ascii=False).encode()
