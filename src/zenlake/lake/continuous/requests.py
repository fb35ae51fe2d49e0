"""What is asked of views and alerts: by programs on this machine, and on the bus.

Programs on this machine ask through the lake's socket (`do: continuous`), all others with a query:

    @lake/views/**                       the views and how they are, as JSON; alerts likewise
    @lake/alerts/low?_time=[now(-1d)..]  when the alert would have been raised and cleared then
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, final

from zenlake.errors import LocalError
from zenlake.ext.parameter_check import demand_understood
from zenlake.ext.query_service import JSON, QueryService
from zenlake.keys import intersects
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.continuous.backtest import span_between, span_of, trial
from zenlake.lake.continuous.definitions import definition_in
from zenlake.lake.continuous.manager import ContinuousQueries, LakeProcess
from zenlake.lake.continuous.owner_rights import ROOTS, may_try
from zenlake.lake.model.continuous_query import ContinuousQuery, Kind
from zenlake.lake.model.owner import router_of, words_of
from zenlake.lake.query.executor import SqlQuestion
from zenlake.lake.query.visibility import shown_definition

if TYPE_CHECKING:
    import pyarrow as pa

    from zenlake.api.query import Query

__all__ = ["ContinuousRequests", "tried"]


class FactReceiver(Protocol):
    """A program on this machine that asked for something."""

    name: str
    """Tells it from others whose questions wait, too."""

    def gone(self) -> bool:
        """Return True if it waits no longer."""

    def fact(self, fact: object) -> None:
        """Send it a fact."""


class RequestedProcess(LakeProcess, Protocol):
    """The process that views and alerts run in, with the socket that it is asked over."""

    def handle(self, name: str, handler: Callable[[dict[str, Any], Any], None]) -> None:
        """Let programs on this machine ask for something by its name."""


@final
class ContinuousRequests:
    """Answers requests about the views and alerts of a lake, until it is closed."""

    def __init__(self, service: RequestedProcess, queries: ContinuousQueries) -> None:
        """`queries`: those that run."""
        self._service = service
        self._queries = queries
        #: The users who have something made, by the request.
        self._asking: dict[FactReceiver, str | None] = {}
        self._queryables: list[Any] = []
        self._answers = QueryService("views", threads=1)
        service.handle("continuous", self._visited)
        service.handle("rights", self._told_of_rights)
        session = service.session
        if session is not None:
            for kind, root in ROOTS.items():
                self._queryables.append(
                    session.declare_queryable(
                        f"{root}/**",
                        lambda query, kind=kind: self._received(query, kind),  # type: ignore[misc]
                    )
                )

    def close(self) -> None:
        """Answer no more."""
        self._answers.close(self._queryables, self._service.session)

    def _visited(self, request: dict[str, Any], caller: FactReceiver) -> None:
        action = request.get("action")
        one = definition_in(request)
        asker = one.owner
        if asker is not None:
            self._queries.rights.tell(router_of(request), [asker.plain()], time.monotonic())
            self._asking[caller] = asker.user
        try:
            self._answer(request, action, one, caller)
        finally:
            self._asking.pop(caller, None)

    def _answer(
        self, request: dict[str, Any], action: Any, one: ContinuousQuery, caller: FactReceiver
    ) -> None:
        asker = one.owner
        if action == "create":
            caller.fact(self._queries.create(one, caller.gone))
        elif action == "drop":
            self._queries.drop(one.name, one.kind, asker)
            caller.fact({"dropped": one.name})
        elif asker is not None:
            raise LocalError(f"{words_of(asker)} asks the bus: {ROOTS[one.kind]}/**")
        elif action == "list":
            caller.fact({"found": self._queries.listed(one.kind)})
        elif action == "test" and one.kind == "alert":
            known = self._queries.definitions.find(one.name, "alert")
            run = partial(self._service.executor.ask, who=caller.name)
            caller.fact({"changes": tried(run, known, request, caller.gone)})
        else:
            raise LocalError(f"a {one.kind} cannot '{action}'")

    def _told_of_rights(self, request: dict[str, Any], caller: FactReceiver) -> None:
        """A router says what users may do; it is told of which users it has to."""
        self._queries.rights.tell(router_of(request), request["users"], time.monotonic())
        owners = [
            one.owner for one in self._queries.definitions.all().values() if one.owner is not None
        ]
        # Spark plans for seconds what somebody makes at this moment.
        users = [*(owner.user for owner in owners), *self._asking.copy().values()]
        caller.fact({"owners": list(dict.fromkeys(users))})

    def _received(self, query: Query, kind: Kind) -> None:
        if kind == "alert" and "_time" in query.parameters:
            # It takes Spark seconds: in the turn of the asker, among all that ask for SQL.
            self._answers.later(query, self._try, self._service.executor.submit)
        else:
            self._answers.later(query, lambda query: self._show(query, kind))

    def _show(self, query: Query, kind: Kind) -> None:
        demand_understood(query.parameters, ROOTS[kind])
        asking = str(query.key_expr)
        readable = ReadableKeys.in_parameters(query.parameters)
        for facts in self._queries.listed(kind):
            key = f"{ROOTS[kind]}/{facts['name']}"
            shown = shown_definition(facts, readable) if intersects(asking, key) else None
            if shown is not None:
                query.reply(key, json.dumps(shown), encoding=JSON)

    def _try(self, query: Query) -> None:
        """Try alerts over history."""
        parameters = query.parameters
        demand_understood(parameters, ROOTS["alert"])
        asking = str(query.key_expr)
        since, until = span_of(parameters.interpreted("_time") or "", time.time_ns())
        readable = ReadableKeys.in_parameters(parameters)
        for one in self._queries.definitions.all().values():
            key = f"{ROOTS['alert']}/{one.name}"
            if one.kind == "alert" and intersects(asking, key):
                if not may_try(readable, one):
                    raise LocalError(
                        "an alert is tried over all keys that its owner may read, and access "
                        "control denies some of them to you; subscribe to what it raises: "
                        f"alert/{asking.rpartition('/')[2]}/**"
                    )
                run = self._service.executor.run
                changes = trial(run, one, since, until, lambda: self._answers.is_over(query))
                answer = {"name": one.name, "changes": changes}
                query.reply(key, json.dumps(answer), encoding=JSON)


def tried(
    run: Callable[[SqlQuestion], pa.Table],
    definition: ContinuousQuery,
    request: Mapping[str, Any],
    gone: Callable[[], bool] = lambda: False,
) -> list[dict[str, Any]]:
    """Return what an alert would have published, from `from` to `to` of a request."""
    since, until = span_between(
        str(request.get("from") or "now(-1h)"), str(request.get("to") or "now()"), time.time_ns()
    )
    return trial(run, definition, since, until, gone)
