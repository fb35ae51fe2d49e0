"""The same as `zenlake`, for programs that run on asyncio.

    import asyncio
    import zenlake.aio

    async def main() -> None:
        async with zenlake.aio.open() as session:
            async with session.declare_subscriber("demo/**") as subscriber:
                async for sample in subscriber:
                    print(sample.key_expr, sample.payload.to_string())

    asyncio.run(main())

The node runs on the loop of the program: no thread is started. What would make a thread wait makes
a task wait, and every wait may be cancelled. All that a session declares, asks or has under way
ends with it.
"""

from __future__ import annotations

from zenlake.aio.entity import Declaring
from zenlake.aio.handler import Handler
from zenlake.aio.info import LinkEventsListener, SessionInfo, TransportEventsListener
from zenlake.aio.liveliness import Liveliness, LivelinessToken
from zenlake.aio.matching import MatchingListener
from zenlake.aio.publish import Publisher
from zenlake.aio.querier import Querier, Replies
from zenlake.aio.query import Query
from zenlake.aio.queryable import Queryable
from zenlake.aio.scout import Scout, scout
from zenlake.aio.session import Session, open
from zenlake.aio.subscribe import Subscriber

__all__ = [
    "Declaring",
    "Handler",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessToken",
    "MatchingListener",
    "Publisher",
    "Querier",
    "Query",
    "Queryable",
    "Replies",
    "Scout",
    "Session",
    "SessionInfo",
    "Subscriber",
    "TransportEventsListener",
    "open",
    "scout",
]
