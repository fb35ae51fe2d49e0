"""zenlake: a complete Zenoh stack in Python whose data pipeline runs on Apache Spark.

    import zenlake

    with zenlake.open() as session:
        session.put("demo/hello", "world")

Importing this package costs next to nothing: each name is fetched from its room when it is used.
"""

from __future__ import annotations

import os.path
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES

# Known to type checkers by its name, and cheaper than importing it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from zenlake import aio, ext, handlers, shm
    from zenlake.api.cancellation import CancellationToken
    from zenlake.api.consolidation import QueryConsolidation
    from zenlake.api.info import (
        Link,
        LinkEvent,
        LinkEventsListener,
        SessionInfo,
        Transport,
        TransportEvent,
        TransportEventsListener,
    )
    from zenlake.api.liveliness import Liveliness, LivelinessToken
    from zenlake.api.log import (
        init_log_from_env_or,
        try_init_log_from_env,
    )
    from zenlake.api.matching import (
        MatchingListener,
        MatchingStatus,
    )
    from zenlake.api.outcome import PutOutcome
    from zenlake.api.publish import Publisher
    from zenlake.api.querier import Querier
    from zenlake.api.query import Query
    from zenlake.api.queryable import Queryable
    from zenlake.api.reply import Reply, ReplyError
    from zenlake.api.scout import Scout, scout
    from zenlake.api.session import Session, open
    from zenlake.api.subscribe import Subscriber
    from zenlake.clock import (
        NTP64,
        Timestamp,
        TimestampId,
        ZenohId,
    )
    from zenlake.config import Config
    from zenlake.engine.handlers import Handler
    from zenlake.errors import ZError
    from zenlake.keys import (
        KeyExpr,
        Parameters,
        Selector,
        SetIntersectionLevel,
    )
    from zenlake.node.sample import Sample
    from zenlake.values import (
        CongestionControl,
        ConsolidationMode,
        Encoding,
        EntityGlobalId,
        Hello,
        InterceptionPoint,
        Locality,
        Priority,
        QueryTarget,
        Reliability,
        ReplyKeyExpr,
        SampleKind,
        SourceInfo,
        TimestampContext,
        TimestampInstrumentation,
        TimestampInstrumentationBuilder,
        TimestampStack,
        TimestampStackRecord,
        WhatAmI,
        WhatAmIMatcher,
        ZBytes,
    )

__all__ = [
    "NTP64",
    "CancellationToken",
    "Config",
    "CongestionControl",
    "ConsolidationMode",
    "Encoding",
    "EntityGlobalId",
    "Handler",
    "Hello",
    "InterceptionPoint",
    "KeyExpr",
    "Link",
    "LinkEvent",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessToken",
    "Locality",
    "MatchingListener",
    "MatchingStatus",
    "Parameters",
    "Priority",
    "Publisher",
    "PutOutcome",
    "Querier",
    "Query",
    "QueryConsolidation",
    "QueryTarget",
    "Queryable",
    "Reliability",
    "Reply",
    "ReplyError",
    "ReplyKeyExpr",
    "Sample",
    "SampleKind",
    "Scout",
    "Selector",
    "Session",
    "SessionInfo",
    "SetIntersectionLevel",
    "SourceInfo",
    "Subscriber",
    "Timestamp",
    "TimestampContext",
    "TimestampId",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
    "Transport",
    "TransportEvent",
    "TransportEventsListener",
    "WhatAmI",
    "WhatAmIMatcher",
    "ZBytes",
    "ZError",
    "ZenohId",
    "__version__",
    "aio",
    "compiled",
    "ext",
    "handlers",
    "init_log_from_env_or",
    "open",
    "scout",
    "shm",
    "try_init_log_from_env",
]

__version__ = "0.1.0"
"""The version of the package."""

compiled: bool = any(
    os.path.isfile(os.path.join(os.path.dirname(__path__[0]), "zenlake__mypyc" + suffix))
    for suffix in EXTENSION_SUFFIXES
)
"""Whether the hot modules run as extensions: they share one library, which is there or is not."""

_ROOMS = {
    "zenlake.api.cancellation": ("CancellationToken",),
    "zenlake.api.consolidation": ("QueryConsolidation",),
    "zenlake.api.info": (
        "Link",
        "LinkEvent",
        "LinkEventsListener",
        "SessionInfo",
        "Transport",
        "TransportEvent",
        "TransportEventsListener",
    ),
    "zenlake.api.liveliness": (
        "Liveliness",
        "LivelinessToken",
    ),
    "zenlake.api.log": (
        "init_log_from_env_or",
        "try_init_log_from_env",
    ),
    "zenlake.api.matching": (
        "MatchingListener",
        "MatchingStatus",
    ),
    "zenlake.api.outcome": ("PutOutcome",),
    "zenlake.api.publish": ("Publisher",),
    "zenlake.api.querier": ("Querier",),
    "zenlake.api.query": ("Query",),
    "zenlake.api.queryable": ("Queryable",),
    "zenlake.api.reply": (
        "Reply",
        "ReplyError",
    ),
    "zenlake.api.scout": (
        "Scout",
        "scout",
    ),
    "zenlake.api.session": (
        "Session",
        "open",
    ),
    "zenlake.api.subscribe": ("Subscriber",),
    "zenlake.clock": (
        "NTP64",
        "Timestamp",
        "TimestampId",
        "ZenohId",
    ),
    "zenlake.config": ("Config",),
    "zenlake.engine.handlers": ("Handler",),
    "zenlake.errors": ("ZError",),
    "zenlake.keys": (
        "KeyExpr",
        "Parameters",
        "Selector",
        "SetIntersectionLevel",
    ),
    "zenlake.node.sample": ("Sample",),
    "zenlake.values": (
        "CongestionControl",
        "ConsolidationMode",
        "Encoding",
        "EntityGlobalId",
        "Hello",
        "InterceptionPoint",
        "Locality",
        "Priority",
        "QueryTarget",
        "Reliability",
        "ReplyKeyExpr",
        "SampleKind",
        "SourceInfo",
        "TimestampContext",
        "TimestampInstrumentation",
        "TimestampInstrumentationBuilder",
        "TimestampStack",
        "TimestampStackRecord",
        "WhatAmI",
        "WhatAmIMatcher",
        "ZBytes",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Fetch a name from its room, once."""
    if name in ("aio", "ext", "handlers", "shm"):
        return import_module(f"zenlake.{name}")
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'zenlake' has no attribute {name!r}")
    value: object = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything there is, fetched or not."""
    return sorted({*globals(), *__all__})
