"""Those who read the same keys share a subscriber; each misses only what it was too slow for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest

import zenlake
from tests.rest.conftest import url_of
from tests.waiting import until
from zenlake.rest import streams
from zenlake.rest.samples import Row
from zenlake.rest.streams import EventFeed, EventReader, Told

EVENTS = {"accept": "text/event-stream"}


def told(number: int) -> Told:
    return Told(Row("a", str(number).encode(), "application/json"))


def test_a_slow_reader_misses_the_oldest_and_knows_how_many() -> None:
    feed = EventFeed("a")
    slow, quick = EventReader(feed, 2), EventReader(feed, 9)
    samples = [told(number) for number in range(5)]
    for one in samples:
        slow.offer(one)
        quick.offer(one)
    assert asyncio.run(slow.take()) == samples[3:]
    assert asyncio.run(quick.take()) == samples
    assert (slow.missed, quick.missed, feed.missed) == (3, 0, 3)


def test_a_reader_gets_what_waits_before_the_end() -> None:
    reader = EventReader(EventFeed("a"), 9)
    reader.offer(one := told(1))
    reader.ended = True
    assert asyncio.run(reader.take()) == [one]
    assert asyncio.run(reader.take()) is None


def test_a_silent_stream_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ALIVE", 0.01)
    assert asyncio.run(EventReader(EventFeed("a"), 9).take()) == []


def test_an_event_is_written_once_for_all_and_once_without_its_payload() -> None:
    one = Told(Row("a", b'"0123456789"', "application/json"))
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

    with httpx.Client(base_url=url_of(bus), timeout=20, trust_env=False) as other:
        with web.stream("GET", "/shared/**", headers=EVENTS) as stays:
            lines = stays.iter_lines()
            assert next(lines) == ": zenlake"
            with other.stream("GET", "/shared/**", headers=EVENTS) as leaves:
                others = leaves.iter_lines()
                assert next(others) == ": zenlake"
                known = bus._runtime.node.local.subscribers.values()
                assert [one.key for one in known].count("shared/**") == 1
                bus.put("shared/a", "1")
                assert first_value(others) == first_value(lines)
            place = "status/plugins/rest/streams"
            until(lambda: web.get("/status").json()["services"][place]["open"] == 1)
            bus.put("shared/a", "2")
            assert "Mg==" in first_value(lines)
        until(lambda: not list(bus.get(key)), "the subscriber is gone with the last stream")
