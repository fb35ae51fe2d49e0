"""Advanced publishers and subscribers between two sessions."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

import zenlake
from tests.api.sessions import config, connected, listening, where
from tests.ext.cable import Cable
from tests.waiting import SECONDS, until
from zenlake import ext
from zenlake.errors import ZError

NUMBERED = ext.MissDetectionConfig()
ALL = ext.CacheConfig(max_samples=100)
BEATING = ext.RecoveryConfig(heartbeat=True)


@pytest.fixture
def here() -> Iterator[zenlake.Session]:
    """A session that others can connect to."""
    with listening() as session:
        yield session


def take(source: ext.AdvancedSubscriber[zenlake.Handler[zenlake.Sample]], count: int) -> list[str]:
    """The next samples, whatever they say."""
    return [source.recv().payload.to_string() for _ in range(count)]


def say(publisher: ext.AdvancedPublisher, *words: str) -> None:
    for word in words:
        publisher.put(word)


def fake(session: zenlake.Session, publisher: ext.AdvancedPublisher, sn: int, payload: str) -> None:
    """Publish under a number of a publisher: all in between are lost for those who listen."""
    session.put(publisher.key_expr, payload, source_info=zenlake.SourceInfo(publisher.id, sn))


def test_a_late_subscriber_gets_the_past_then_the_present(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "past/a", cache=ext.CacheConfig(3), sample_miss_detection=NUMBERED
    )
    say(publisher, "1", "2", "3", "4")
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(there, "past/*", history=ext.HistoryConfig())
        assert take(subscriber, 3) == ["2", "3", "4"]
        say(publisher, "5")
        assert take(subscriber, 1) == ["5"]


def test_a_publisher_knows_whether_somebody_listens(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(here, "heard")
    assert publisher.reliability is zenlake.Reliability.RELIABLE
    assert not publisher.matching_status
    with publisher.declare_matching_listener() as listener:
        subscriber = here.declare_subscriber("heard")
        assert listener.recv().matching
        assert publisher.matching_status
        subscriber.undeclare()
        assert not listener.recv().matching


def test_of_the_past_only_as_much_comes_as_is_wanted(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "past/b", cache=ALL, sample_miss_detection=NUMBERED
    )
    say(publisher, "1", "2", "3")
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(
            there, "past/b", history=ext.HistoryConfig(max_samples=2)
        )
        assert take(subscriber, 2) == ["2", "3"]


def test_a_sample_of_the_past_is_as_it_was() -> None:
    with listening(timestamping__enabled="true") as here:
        publisher = ext.declare_advanced_publisher(
            here, "whole", cache=ALL, sample_miss_detection=NUMBERED, encoding="text/plain"
        )
        publisher.put("value", attachment="beside", encoding="text/json")
        publisher.delete(attachment="gone")
        id = publisher.id
        with connected(here) as there:
            subscriber = ext.declare_advanced_subscriber(
                there, "whole", history=ext.HistoryConfig(max_age=60)
            )
            put, delete = subscriber.recv(), subscriber.recv()
    assert put.key_expr == "whole"
    assert (put.kind, delete.kind) == (zenlake.SampleKind.PUT, zenlake.SampleKind.DELETE)
    assert put.encoding == "text/json"
    assert put.attachment == b"beside"
    assert delete.attachment == b"gone"
    assert put.source_info == zenlake.SourceInfo(id, 0)
    assert delete.source_info == zenlake.SourceInfo(id, 1)
    assert put.timestamp is not None
    assert delete.timestamp is not None
    assert put.timestamp < delete.timestamp


def test_times_order_the_past_where_there_are_no_numbers() -> None:
    with listening(timestamping__enabled="true") as here:
        publisher = ext.declare_advanced_publisher(here, "timed", cache=ALL)
        say(publisher, "1", "2")
        with connected(here) as there:
            subscriber = ext.declare_advanced_subscriber(
                there, "timed", history=ext.HistoryConfig()
            )
            assert take(subscriber, 2) == ["1", "2"]
            say(publisher, "3")
            assert take(subscriber, 1) == ["3"]


def test_a_cache_without_order_is_refused(here: zenlake.Session) -> None:
    with pytest.raises(ZError, match=r"sample_miss_detection.*timestamping/enabled"):
        ext.declare_advanced_publisher(here, "k", cache=ALL)


def test_a_gap_is_filled_from_the_cache(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "gap", cache=ALL, sample_miss_detection=NUMBERED
    )
    say(publisher, "0", "1", "2", "3")
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(
            there, "gap", recovery=ext.RecoveryConfig(periodic_queries=timedelta(hours=1))
        )
        misses = subscriber.sample_miss_listener()
        plain = here.declare_publisher("gap")
        _until_matched(plain)
        fake(here, publisher, 0, "0")
        fake(here, publisher, 3, "3")
        assert take(subscriber, 4) == ["0", "1", "2", "3"]
        assert misses.try_recv() is None


def test_what_the_cache_has_forgotten_is_reported_as_missed(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "miss", cache=ext.CacheConfig(2), sample_miss_detection=NUMBERED
    )
    say(publisher, "0", "1", "2", "3", "4")
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(there, "miss", recovery=BEATING)
        with subscriber.sample_miss_listener() as misses:
            _until_matched(here.declare_publisher("miss"))
            fake(here, publisher, 0, "0")
            fake(here, publisher, 4, "4")
            assert take(subscriber, 3) == ["0", "3", "4"]
            miss = misses.recv()
            assert (miss.source, miss.nb) == (publisher.id, 2)
            assert repr(miss) == f"<Miss 2 of {publisher.id}>"


def test_without_recovery_a_gap_is_reported_at_once(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(here, "tell", sample_miss_detection=NUMBERED)
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(there, "tell")
        reports: queue.Queue[ext.Miss] = queue.Queue()
        listener = subscriber.sample_miss_listener(reports.put)
        _until_matched(here.declare_publisher("tell"))
        say(publisher, "0")
        fake(here, publisher, 5, "5")
        assert take(subscriber, 2) == ["0", "5"]
        assert reports.get(timeout=SECONDS).nb == 4
        listener.undeclare()
        with pytest.raises(ZError, match="sample miss listener"):
            listener.undeclare()


@pytest.mark.parametrize(
    "detection",
    [
        ext.MissDetectionConfig(heartbeat=0.01),
        ext.MissDetectionConfig(sporadic_heartbeat=0.01),
    ],
    ids=["periodic", "sporadic"],
)
def test_a_heartbeat_recovers_the_last_sample(
    here: zenlake.Session, detection: ext.MissDetectionConfig
) -> None:
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(there, "beat", recovery=BEATING)
        publisher = ext.declare_advanced_publisher(
            here,
            "beat",
            cache=ALL,
            sample_miss_detection=detection,
            allowed_destination=zenlake.Locality.ANY,
        )
        _until_matched(here.declare_publisher("beat"))
        say(publisher, "0")
        assert take(subscriber, 1) == ["0"]
        # Lost on its way: it is only in the cache, and its number only in the heartbeat.
        publication = publisher.publication
        publication.version, publication.remotes = here.runtime.node.tables.version, []
        say(publisher, "1")
        assert take(subscriber, 1) == ["1"]


def test_asking_every_so_often_recovers_the_last_sample(here: zenlake.Session) -> None:
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(
            there, "ask", recovery=ext.RecoveryConfig(periodic_queries=0.02)
        )
        publisher = ext.declare_advanced_publisher(
            here, "ask", cache=ALL, sample_miss_detection=NUMBERED
        )
        _until_matched(here.declare_publisher("ask"))
        say(publisher, "0")
        assert take(subscriber, 1) == ["0"]
        publication = publisher.publication
        publication.version, publication.remotes = here.runtime.node.tables.version, []
        say(publisher, "1")
        assert take(subscriber, 1) == ["1"]


def far_away(place: str) -> zenlake.Session:
    """A session that opens at once, and is connected when somebody is there."""
    return zenlake.open(
        config(
            connect__endpoints=f'["{place}"]',
            connect__exit_on_failure="false",
            connect__retry="{period_init_ms: 20, period_max_ms: 20}",
            scouting__delay="1",
        )
    )


def test_a_late_publisher_is_asked_for_its_past(here: zenlake.Session) -> None:
    with Cable(where(here), joined=False) as cable, far_away(cable.place) as there:
        subscriber = ext.declare_advanced_subscriber(
            there, "late/*", history=ext.HistoryConfig(detect_late_publishers=True)
        )
        publisher = ext.declare_advanced_publisher(
            here, "late/a", cache=ALL, sample_miss_detection=NUMBERED, publisher_detection=True
        )
        say(publisher, "1", "2")
        cable.join()
        assert take(subscriber, 2) == ["1", "2"]


def test_what_was_published_while_the_cable_was_cut_is_recovered(here: zenlake.Session) -> None:
    with Cable(where(here)) as cable, far_away(cable.place) as there:
        subscriber = ext.declare_advanced_subscriber(there, "cut", recovery=BEATING)
        publisher = ext.declare_advanced_publisher(
            here, "cut", cache=ALL, sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.02)
        )
        say(publisher, "0")
        assert take(subscriber, 1) == ["0"]
        with here.info.declare_transport_events_listener() as events:
            cable.cut()
            while events.recv().kind is not zenlake.SampleKind.DELETE:
                pass
        say(publisher, "1", "2")
        cable.join()
        assert take(subscriber, 2) == ["1", "2"]


def test_publishers_are_detected_as_they_come_and_go(here: zenlake.Session) -> None:
    with connected(here) as there:
        subscriber = ext.declare_advanced_subscriber(there, "who/*")
        with subscriber.detect_publishers(history=True) as detected:
            publisher = ext.declare_advanced_publisher(here, "who/a", publisher_detection=True)
            came = detected.recv()
            name = f"who/a/@adv/pub/{here.zid()}/uhlc/_"
            assert (came.kind, str(came.key_expr)) == (zenlake.SampleKind.PUT, name)
            publisher.undeclare()
            went = detected.recv()
            assert (went.kind, str(went.key_expr)) == (zenlake.SampleKind.DELETE, name)


def test_subscribers_are_detected(here: zenlake.Session) -> None:
    subscriber = ext.declare_advanced_subscriber(here, "seen", subscriber_detection=True)
    alive = [str(reply.ok.key_expr) for reply in here.liveliness().get("seen/@adv/**") if reply.ok]
    assert alive == [f"seen/@adv/sub/{here.zid()}/{subscriber.id.eid}/_"]
    subscriber.undeclare()
    assert list(here.liveliness().get("seen/@adv/**")) == []


def test_publisher_and_subscriber_of_one_session_understand_each_other(
    here: zenlake.Session,
) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "own", cache=ALL, sample_miss_detection=NUMBERED, publisher_detection=True
    )
    say(publisher, "1")
    subscriber = ext.declare_advanced_subscriber(
        here, "own", history=ext.HistoryConfig(detect_late_publishers=True), recovery=BEATING
    )
    assert take(subscriber, 1) == ["1"]
    say(publisher, "2")
    assert take(subscriber, 1) == ["2"]
    fake(here, publisher, 9, "9")
    assert take(subscriber, 1) == ["9"]


def test_a_callback_on_the_hearing_thread_may_publish_what_it_hears(
    here: zenlake.Session,
) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "echo", cache=ALL, sample_miss_detection=NUMBERED
    )
    heard: queue.Queue[str] = queue.Queue()

    def hear(sample: zenlake.Sample) -> None:
        number = int(sample.payload.to_string())
        heard.put(str(number))
        if number < 3:
            publisher.put(str(number + 1))

    handler = zenlake.handlers.Callback(hear, indirect=False)
    with ext.declare_advanced_subscriber(here, "echo", handler, recovery=BEATING) as subscriber:
        assert subscriber.handler is None
        publisher.put("0")
        assert [heard.get(timeout=SECONDS) for _ in range(4)] == ["0", "1", "2", "3"]


def test_many_threads_publish_without_a_gap(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(here, "many", sample_miss_detection=NUMBERED)
    subscriber = ext.declare_advanced_subscriber(here, "many")
    misses = subscriber.sample_miss_listener()
    threads = [threading.Thread(target=say, args=(publisher, *[str(n)] * 50)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(take(subscriber, 200)) == sorted(str(n) for n in range(4) for _ in range(50))
    assert misses.try_recv() is None


def test_what_is_undeclared_refuses_and_is_not_found(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here,
        "end",
        cache=ALL,
        sample_miss_detection=ext.MissDetectionConfig(heartbeat=60),
        publisher_detection=True,
    )
    subscriber = ext.declare_advanced_subscriber(here, "end", recovery=BEATING)
    misses = subscriber.sample_miss_listener()
    publisher.undeclare()
    subscriber.undeclare()
    with pytest.raises(ZError, match="Undeclared publisher"):
        publisher.put("late")
    with pytest.raises(ZError, match="Undeclared subscriber"):
        subscriber.recv()
    assert list(misses) == []
    local = here.runtime.node.local
    assert not local.queryables
    assert not local.publications
    assert not local.liveliness.tokens
    assert not local.subscribers


def test_what_a_program_forgets_is_undeclared(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here, "lost", cache=ALL, sample_miss_detection=ext.MissDetectionConfig(heartbeat=60)
    )
    subscriber = ext.declare_advanced_subscriber(here, "lost", recovery=BEATING)
    say(publisher, "1")
    assert take(subscriber, 1) == ["1"]
    del publisher, subscriber
    gc.collect()
    local = here.runtime.node.local
    until(lambda: not local.publications and not local.subscribers and not local.queryables)


def test_a_closed_session_ends_them() -> None:
    with listening() as here:
        publisher = ext.declare_advanced_publisher(
            here, "k", sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.01)
        )
        subscriber = ext.declare_advanced_subscriber(here, "k", history=ext.HistoryConfig())
        say(publisher, "1")
    assert [sample.payload.to_string() for sample in subscriber] == ["1"]
    with pytest.raises(ZError, match="closed"):
        publisher.put("2")


def test_they_say_what_they_are(here: zenlake.Session) -> None:
    publisher = ext.declare_advanced_publisher(
        here,
        "self",
        encoding="text/plain",
        priority=zenlake.Priority.DATA_HIGH,
        congestion_control=zenlake.CongestionControl.BLOCK,
    )
    assert publisher.key_expr == "self"
    assert publisher.encoding == "text/plain"
    assert publisher.priority is zenlake.Priority.DATA_HIGH
    assert publisher.congestion_control is zenlake.CongestionControl.BLOCK
    assert publisher.id.zid == here.zid()
    assert repr(publisher) == "<AdvancedPublisher self>"
    subscriber = ext.declare_advanced_subscriber(here, "self")
    assert subscriber.key_expr == "self"
    assert subscriber.id.zid == here.zid()
    assert repr(subscriber) == "<AdvancedSubscriber self>"
    assert subscriber.try_recv() is None
    publisher.put("x")
    assert next(iter(subscriber)).payload == b"x"


def _until_matched(publisher: zenlake.Publisher) -> None:
    with publisher.declare_matching_listener() as listener:
        while not listener.recv().matching:
            pass
    publisher.undeclare()
