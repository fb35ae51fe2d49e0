"""What a running lake is beside its pipeline: answers, and whatever else runs in its process.

    service = Service(lake, [journal])
    service.handle("views", show_views)      # requests of programs on this machine
    service.on_commit(views.look)            # told when the tables have more
    service.add(views)                       # closed with the service, the last one first

`executor` asks Spark in SQL, `session` is the bus if the lake is on one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, final

from zenlake.errors import LocalError
from zenlake.lake.decode.table_store import StoredTable, stored_tables
from zenlake.lake.query.document_column import columns_in_sql
from zenlake.lake.query.executor import SqlExecutor, SqlQuestion
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.service.local_server import Handler, LocalCaller, LocalServer

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.journal import Journal
    from zenlake.lake.model.status import FlowStatus
    from zenlake.lake.model.typed_table import TypedTable
    from zenlake.lake.query.lake import Lake

__all__ = ["Part", "Service", "described"]

log = logging.getLogger("zenlake.lake")


class Part(Protocol):
    """Something that runs in the lake's process."""

    def close(self) -> None:
        """End it."""


@final
class Service:
    """The parts of a running lake, and the ways to reach them."""

    def __init__(
        self,
        lake: Lake,
        journals: Sequence[Journal],
        session: Session | None = None,
        *,
        server: bool = True,
    ) -> None:
        """`journals` feed the lake; `server`: answer programs on this machine."""
        self.lake = lake
        self.journals = tuple(journals)
        self.session = session
        self.executor = SqlExecutor(lake)
        self._parts: list[Part] = [self.executor]
        self._listeners: list[Callable[[], None]] = []
        self._problems: list[Callable[[], Sequence[str]]] = []
        self._restarts: list[Callable[[], int]] = []
        self._stopped: list[Callable[[], Mapping[str, str]]] = []
        self._flows: list[Callable[[], Sequence[FlowStatus]]] = []
        self._server: LocalServer | None = None
        if server and "://" not in lake.place.uri:
            self._server = LocalServer(lake.place.uri)
            self._parts.append(self._server)
            self.handle("sql", self._sql)
            self.handle("tables", self._tables)

    def handle(self, name: str, handler: Handler) -> None:
        """Answer requests of programs on this machine whose `do` is this name."""
        if self._server is not None:
            self._server.handle(name, handler)

    def add(self, part: Part) -> None:
        """Close this with the service, before what was added earlier."""
        self._parts.append(part)

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call this, on the thread that knows of it, after a commit; it must not wait."""
        self._listeners.append(listener)

    def on_status(
        self,
        problems: Callable[[], Sequence[str]],
        restarts: Callable[[], int] = int,
        stopped: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Ask this for sentences about what is wrong, whenever the status is written.

        `restarts`: how often something that stood still was started again; `stopped`: why views
        and alerts do not go on, by their names.
        """
        self._problems.append(problems)
        self._restarts.append(restarts)
        self._stopped.append(stopped)

    def on_flows(self, flows: Callable[[], Sequence[FlowStatus]]) -> None:
        """Ask this for the flows of users' pipelines whenever the status is written."""
        self._flows.append(flows)

    def flows(self) -> tuple[FlowStatus, ...]:
        """Return the flows of users' pipelines."""
        return tuple(flow for asked in self._flows for flow in asked())

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the parts, a sentence each."""
        return tuple(sentence for asked in self._problems for sentence in asked())

    def restarts(self) -> int:
        """How often a view or an alert that stood still was started again."""
        return sum(asked() for asked in self._restarts)

    def stopped_queries(self) -> dict[str, str]:
        """Why views and alerts do not go on, a sentence each, by their names."""
        return {name: why for asked in self._stopped for name, why in asked().items()}

    def committed(self) -> None:
        """The tables have more."""
        for listener in self._listeners:
            try:
                listener()
            except Exception:
                log.exception("a part of the lake failed after a commit")

    def close(self) -> None:
        """End all parts, the last one first; one that fails is told and keeps no other from it."""
        while self._parts:
            part = self._parts.pop()
            try:
                part.close()
            except Exception as error:  # such as where Java has ended before
                log.warning("%s did not end as it should: %s", type(part).__name__, error)

    # --- what programs on this machine ask ------------------------------------------------------

    def _sql(self, request: dict[str, Any], caller: LocalCaller) -> None:
        query = request.get("sql")
        if not isinstance(query, str):
            raise LocalError("a question is a text: {'do': 'sql', 'sql': 'SELECT …'}")
        first = request.get("first")
        limits = QueryLimits(
            float(request.get("seconds", 600.0)), int(request.get("rows", 1_000_000))
        )
        question = SqlQuestion(
            query, limits, first=None if first is None else int(first), gone=caller.gone
        )
        rows = self.executor.ask(question, caller.name)
        caller.table(rows)
        caller.fact({"rows": rows.num_rows})

    def _tables(self, request: dict[str, Any], caller: LocalCaller) -> None:
        caller.fact(described(self.lake))


def described(lake: Lake, stored: Iterable[StoredTable] | None = None) -> dict[str, dict[str, Any]]:
    """Return rows, version and columns of each table, and how a table of keys came to be.

    A table of keys has a `format`, and an `encoding` if one is set. `found` says whether it
    appeared by itself or was made by command; a table of the configuration has none. `stored`: the
    tables of the lake's store, if the caller has read them.
    """
    every = stored_tables(lake.place, lake.config) if stored is None else stored
    keys = {one.name: _keys_of(one) for one in lake.config.tables}
    keys |= {one.name: {**_keys_of(one.spec), "found": one.found} for one in every}
    return {
        name: {
            "rows": table.rows,
            "version": table.version,
            "columns": columns_in_sql(name, table.schema),
            **keys.get(name, {}),
        }
        for name, table in lake.catalog.tables()[0].items()
    }


def _keys_of(table: TypedTable) -> dict[str, Any]:
    encoding = {} if table.encoding is None else {"encoding": table.encoding}
    return {"format": table.format, **encoding}
