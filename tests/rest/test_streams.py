"""Those who read the same keys share a subscriber; each misses only what it was too slow for."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator

import httpx
import pytest

import zenlake
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.http.shares import Holding, Shares
from zenlake.rest import streams
from zenlake.rest.samples import Row
from zenlake.rest.streams import WAITING_BYTES, EventFeed, EventReader, SampleEvent, Streams
from zenlake.transport.drops import DropLog

MUCH = 1 << 30
EVENTS = {"accept": "text/event-stream"}


def reading(feed: EventFeed, most: int = 9, shares: Shares | None = None) -> EventReader:
    return EventReader(feed, most, Holding(Shares(MUCH) if shares is None else shares, "a"))


def told(number: int) -> SampleEvent:
    return SampleEvent(Row("a", str(number).encode(), "application/json"))


def test_a_slow_reader_misses_the_oldest_and_knows_how_many() -> None:
    feed = EventFeed("a", DropLog())
    slow, quick = reading(feed, 2), reading(feed)
    samples = [told(number) for number in range(5)]
    for one in samples:
        slow.offer(one)
        quick.offer(one)
    assert asyncio.run(slow.take()) == samples[3:]
    assert asyncio.run(quick.take()) == samples
    assert (slow.missed, quick.missed, feed.missed) == (3, 0, 3)
    assert feed.lost.tallies["events"].rows == {"a": 3}


def test_a_reader_gets_what_waits_before_the_end() -> None:
    reader = reading(EventFeed("a", DropLog()))
    reader.offer(one := told(1))
    reader.ended = True
    assert asyncio.run(reader.take()) == [one]
    assert asyncio.run(reader.take()) is None


def large(number: int) -> SampleEvent:
    return SampleEvent(Row("a", bytes(WAITING_BYTES // 4), str(number)))


def test_what_waits_for_a_reader_is_bounded_in_bytes_and_one_sample_always_may() -> None:
    feed, shares = EventFeed("a", DropLog()), Shares(MUCH)
    reader = reading(feed, 100, shares)
    for number in range(10):
        reader.offer(large(number))
    assert reader.missed == 7
    assert shares.taken <= WAITING_BYTES
    assert [one.row.encoding for one in asyncio.run(reader.take()) or []] == ["7"]
    assert shares.taken > 0  # of what is being sent
    huge = SampleEvent(Row("a", bytes(2 * WAITING_BYTES), ""))
    reader.offer(huge)
    assert asyncio.run(reader.take()) == [huge]
    reader.close()
    assert shares.taken == 0


def test_readers_that_hold_all_the_memory_miss_samples_and_others_get_them() -> None:
    feed, shares = EventFeed("a", DropLog()), Shares(3 * WAITING_BYTES)
    slow = [reading(feed, 100, shares) for _ in range(9)]
    other = EventReader(feed, 100, Holding(shares, "b"))
    for number in range(3):
        for reader in slow:
            reader.offer(large(number))
        other.offer(large(number))
        assert shares.taken <= shares.most
        assert len(asyncio.run(other.take()) or []) == 1
    assert sum(reader.missed for reader in slow) == 27 - 8
    for reader in [*slow, other]:
        reader.close()
    assert shares.taken == 0


def test_who_joins_after_the_subscriber_of_others_has_ended_gets_another() -> None:
    async def work() -> None:
        alone = zenlake.Config.from_json5("{scouting: {multicast: {enabled: false}}}")
        async with zenlake.aio.open(alone) as session:
            feeds = Streams(session, 9)
            held = [Holding(Shares(MUCH), "a") for _ in range(3)]
            early = await feeds.join("a/**", held[0])
            assert early.feed.subscriber is not None
            assert early.feed.running is not None
            await early.feed.subscriber.undeclare()
            await early.feed.running
            late = await feeds.join("a/**", held[1])
            await session.put("a/b", "1")
            assert await early.take() is None
            assert [one.row.key for one in await late.take() or []] == ["a/b"]
            await feeds.leave(early)
            assert await feeds.join("a/**", held[2]) in late.feed.readers

    asyncio.run(work())


def test_a_silent_stream_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ALIVE", 0.01)
    assert asyncio.run(reading(EventFeed("a", DropLog())).take()) == []


def test_an_event_is_written_once_for_all_and_once_without_its_payload() -> None:
    one = SampleEvent(Row("a", b'"0123456789"', "application/json"))
    assert one.text(None) is one.text(99)
    cut = one.text(5)
    assert cut is one.text(3)
    assert json.loads(cut.split(b"data: ")[1]) == {
        "key": "a", "value": None, "encoding": "application/json", "timestamp": None, "cut": 12,
    }  # fmt: skip


def test_streams_of_one_key_expression_share_a_subscriber_to_the_last(
    bus: zenlake.Session, web: httpx.Client
) -> None:
    key = f"@/{bus.zid()}/router/subscriber/shared/**"

    def first_value(lines: Iterator[str]) -> str:
        return next(line for line in lines if line.startswith("data:"))

    with httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as other:
        with web.stream("GET", "/shared/**", headers=EVENTS) as stays:
            lines = stays.iter_lines()
            assert next(lines) == ": zenlake"
            with other.stream("GET", "/shared/**", headers=EVENTS) as leaves:
                others = leaves.iter_lines()
                assert next(others) == ": zenlake"
                known = bus.runtime.node.local.subscribers.values()
                assert [one.key for one in known].count("shared/**") == 1
                bus.put("shared/a", "1")
                assert first_value(others) == first_value(lines)
            place = "status/plugins/rest/streams"
            until(lambda: web.get("/status").json()["services"][place]["open"] == 1)
            bus.put("shared/a", "2")
            assert "Mg==" in first_value(lines)
        until(lambda: not list(bus.get(key)), "the subscriber is gone with the last stream")


@pytest.mark.parametrize("behind", ["", "Upgrade: websocket\r\nConnection: Upgrade\r\n"])
def test_a_stream_ends_with_its_connection_though_another_request_came_behind_it(
    monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # asyncio's loop says nothing of what is gone
    monkeypatch.setattr(streams, "ALIVE", 0.01)
    asked = "GET /behind/** HTTP/1.1\r\nHost: localhost\r\n"
    with router(plugins()) as bus:
        key = f"@/{bus.zid()}/router/subscriber/behind/**"
        host, _, port = url_of(bus).removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as link:
            link.sendall(f"{asked}Accept: text/event-stream\r\n\r\n".encode())
            assert link.recv(1 << 16).startswith(b"HTTP/1.1 200")
            until(lambda: list(bus.get(key)))
            link.sendall(f"{asked}{behind}\r\n".encode())
            assert behind or link.recv(1 << 16)  # it goes on
        until(lambda: not list(bus.get(key)), "the stream is over")
