"""The parameters of queries that begin with `_`: what each means, and which service obeys it.

Names that begin with `_` belong to Zenoh and to zenlake; all others belong to applications. A
service obeys a parameter, passes over it, or refuses the query. It passes over what Zenoh programs
send to everybody, and refuses what would make an answer wrong if it were ignored.
"""

from __future__ import annotations

from typing import Final

from zenlake.records import record

__all__ = ["ACK_PUT", "KNOWN", "LAKE", "LENIENT", "SERVICES", "TABLE", "QueryParameter"]

ACK_PUT: Final = "_ack_put"
"""A question with this one is a put as well, and access control judges it as both."""

SERVICES: Final = {
    "recorder": "a recorder, for the keys that it records, where no lake serves its journal",
    "storage": "a storage, for the keys that it stores",
    "lake": "a lake, for the keys that its journals record",
    "@lake/sql": "a lake, for a question in SQL; `@lake/sql/<view>` too",
    "@lake/tables": "a lake, for the description of its tables",
    "@lake/without_table": "a lake, for the keys that have no table of their own",
    "@lake/views": "a lake, for its views",
    "@lake/alerts": "a lake, for its alerts",
    "@lake/decode": "a lake, for the fields of one sample",
    "@journal": "a recorder, for rows by offset and for what it tells of itself",
    "@": "the admin space of a node",
    "cache": "the cache of an advanced publisher",
    "http": "the HTTP server of a router, before it asks the bus",
}
"""Who is asked with parameters, by the names that the table uses."""

LENIENT: Final = ("cache", "http")
"""Services that pass over whatever they do not obey: programs of Eclipse ask a cache, and the HTTP
server passes parameters on to the bus, where others judge them."""

_KEYS: Final = ("recorder", "storage", "lake")
_ALL: Final = tuple(SERVICES)
_NO_LAKE: Final = (
    "is answered by a lake, and none serves these keys here; start `zenlake up`, or "
    "`zenlake lake run -e` with this router"
)
_NO_MEANING: Final = "means nothing here; leave it out"


@record(frozen=True, slots=True)
class QueryParameter:
    """A parameter of queries: a service that neither obeys it nor passes over it refuses it."""

    name: str
    example: str
    meaning: str
    obeyed_by: tuple[str, ...]
    passed_over_by: tuple[str, ...] = ()
    #: What a service that refuses it says, behind its name.
    refusal: str = _NO_MEANING
    #: Whether a lake answers a query with it, and other services leave the query to the lake.
    for_lake: bool = False
    #: Whether it may stand several times.
    repeats: bool = False

    def is_refused_by(self, service: str) -> bool:
        """Return True if a service of `SERVICES` answers a query with it with an error."""
        return service not in (*self.obeyed_by, *self.passed_over_by, *LENIENT)

    def refusal_of(self, service: str) -> str:
        """Return what a service that refuses it says, behind its name."""
        if not self.for_lake:
            return self.refusal
        if service == "@lake/sql":
            return "is for questions about keys; say it in the SELECT"
        return _NO_LAKE if service in _KEYS else _NO_MEANING


TABLE: Final = (
    QueryParameter(
        "_time",
        "_time=[now(-1h)..]",
        "every sample in a range of time, in the order of time",
        (*_KEYS, "@lake/alerts", "cache"),
        passed_over_by=(
            "@lake/tables", "@lake/without_table", "@lake/views", "@journal", "@",
        ),
        for_lake=True,
    ),
    QueryParameter(
        "_asof",
        "_asof=2026-01-31T12:00:00Z",
        "the newest value of each key as it was then; `now(-1h)` does too. What was deleted "
        "before has none",
        ("lake",),
        for_lake=True,
    ),
    QueryParameter(
        "_filter",
        "_filter=battery<20",
        "only what this is true of; without `_time` and `_asof`, of the newest values",
        ("lake",),
        for_lake=True,
    ),
    QueryParameter(
        "_project",
        "_project=battery,pose.x",
        "a JSON object with these values instead of the payload",
        ("lake",),
        for_lake=True,
    ),
    QueryParameter(
        "_agg",
        "_agg=avg(temp),max(temp)/5m",
        "`count`, `sum`, `avg`, `min`, `max` for each key and window of time; without `/5m`, for "
        "each key; `count()` counts samples. One reply, on the key expression of the query",
        ("lake",),
        for_lake=True,
    ),
    QueryParameter(
        "_order",
        "_order=battery desc,time()",
        "another order; what is unknown comes first, with `desc` last",
        ("lake",),
        for_lake=True,
    ),
    QueryParameter(
        "_limit",
        "_limit=10",
        "so many samples, the first in their order: that of `_order`, else of time, then key",
        _KEYS,
        for_lake=True,
    ),
    QueryParameter(
        "_as",
        "_as=arrow",
        "the one reply of an `_agg`, or of `@lake/sql`, as an Arrow IPC stream; `json`, if not "
        "said",
        ("lake", "@lake/sql"),
        for_lake=True,
    ),
    QueryParameter(
        "_proof",
        "_proof=true",
        "a last reply, on the key expression of the query: which offsets were read from table "
        "and journal, and what the recorder's ledger proves of these keys in that range of time: "
        "`complete` is true, false, or null where nobody numbers the samples; for each source, "
        "which numbers are missing",
        ("lake", "@lake/sql"),
        for_lake=True,
    ),
    QueryParameter(
        "_sql",
        "_sql=SELECT count(*) FROM samples",
        "a question in SQL without `;`, if it is not in the payload",
        ("@lake/sql",),
        refusal="is a question in SQL; ask @lake/sql",
    ),
    QueryParameter(
        ACK_PUT,
        "_ack_put=true",
        "put the payload of the query, and reply when it is stored",
        ("recorder", "storage", "http"),
        passed_over_by=("lake",),
        refusal="is for puts on keys that are recorded or stored; leave it out",
    ),
    QueryParameter(
        "_anyke",
        "_anyke",
        "replies may come on keys outside the query; the asker's own session obeys it",
        (),
        passed_over_by=_ALL,
    ),
    QueryParameter(
        "_max", "_max=10", "so many samples of the cache, the newest", ("cache",), _ALL
    ),
    QueryParameter(
        "_sn", "_sn=3..5", "samples of the cache by sequence number", ("cache",), _ALL
    ),
    QueryParameter("_stats", "_stats=true", "counters in the node's summary", ("@",), _ALL),
    QueryParameter(
        "_raw", "_raw=true", "the payload of the first reply as the body", ("http",), _ALL
    ),
    QueryParameter(
        "_download", "_download=csv", "the answer as a file, in this form", ("http",), _ALL
    ),
    QueryParameter(
        "_cut", "_cut=1000", "leave longer payloads of events out", ("http",), _ALL
    ),
    QueryParameter(
        "_readable",
        "_readable=…",
        "keys that the asker may read; routers with access control write it",
        (
            "lake", "@lake/sql", "@lake/tables", "@lake/without_table", "@lake/views",
            "@lake/alerts", "@journal",
        ),
        passed_over_by=("recorder", "storage", "@lake/decode", "@"),
        repeats=True,
    ),
    QueryParameter(
        "_asker",
        "_asker=…",
        "a name for who asks, so that askers are answered in turn; routers write it, and replace "
        "what an asker wrote",
        tuple(one for one in SERVICES if one not in LENIENT),
    ),
)  # fmt: skip
"""Every parameter that a service of ours or Zenoh itself knows, in the order of the docs."""

KNOWN: Final = {one.name: one for one in TABLE}

LAKE: Final = tuple(one.name for one in TABLE if one.for_lake)
"""What a lake answers to. A query with one of these is left to it where it records the keys."""
