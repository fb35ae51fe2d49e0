"""A reader that stops in the middle of an answer: others go on, and so does the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import zenlake
from tests.api.sessions import connected, listening
from tests.storage_manager.test_storages import manager, memory, settled, values
from tests.waiting import SECONDS, until
from zenlake.handlers import FifoChannel
from zenlake.storage_manager import Storages
from zenlake.storage_manager.answers import THREADS

#: More than sockets and queues hold of one answer.
VALUES, SIZE = 1500, 20_000


@contextmanager
def filled(patience: float) -> Iterator[zenlake.Session]:
    """A router with much to answer, which gives up who does not read for so many seconds."""
    with listening(
        mode='"router"',
        plugins=manager(s=memory()),
        transport__link__tx__queue__congestion_control__block__wait_before_close=str(
            int(1e6 * patience)
        ),
    ) as session:
        for n in range(VALUES):
            session.put(f"s/large/{n}", bytes(SIZE))
        session.put("s/small/1", "1")
        settled(session)
        until(lambda: values(session, "s/small/*") == {"s/small/1": "1"})
        yield session


def stopped(client: zenlake.Session, selector: str) -> object:
    """Ask, and read nothing; gives what is not read."""
    return client.get(
        selector, FifoChannel(1), consolidation=zenlake.ConsolidationMode.NONE, timeout=4 * SECONDS
    )


def storage(session: zenlake.Session) -> zenlake.storage_manager.Storage:
    (service,) = session.runtime.services.values()
    assert isinstance(service, Storages)
    return service.running["s"]


def test_a_reader_that_stops_delays_nobody_and_holds_little() -> None:
    with (
        filled(4 * SECONDS) as router,  # nobody is given up: who waits shows
        connected(router, mode='"client"') as slow,
        connected(router, mode='"client"') as other,
    ):
        # More than there are threads, and single values too, which are answered at once.
        unread = [stopped(slow, "s/**") for _ in range(THREADS + 4)]
        unread += [stopped(slow, f"s/large/{n}") for n in range(200)]
        until(lambda: storage(router).counts.queries >= len(unread))
        assert values(other, "s/small/*") == {"s/small/1": "1"}
        assert values(other, "s/small/1") == {"s/small/1": "1"}
        # Of so many answers, most are not made before they are read.
        assert storage(router).counts.replies < VALUES * 4


def test_a_storage_ends_while_a_reader_keeps_it_waiting() -> None:
    with filled(1.0) as router, connected(router, mode='"client"') as slow:
        unread = stopped(slow, "s/**")
        until(lambda: storage(router).counts.queries >= 2)
        ended = threading.Thread(target=router.close)
        ended.start()
        ended.join(SECONDS)
        assert not ended.is_alive()
        del unread
