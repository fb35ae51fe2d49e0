"""Order, gaps, history and duplicates: what an advanced subscriber delivers, misses and asks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node import advanced
from zenlake.node.advanced import HistoryRequest, Missed, Sources
from zenlake.node.advanced_cache import Cache
from zenlake.node.advanced_keys import SERIALS, SourceId, publisher_key
from zenlake.node.sample import Sample, sample_of
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Del, Put, SourceInfo, Timestamp

KEY = "demo/*"
ZID = b"\x01\x02"
SOURCE = SourceId(ZID, 7)
NAME = "demo/a/@adv/pub/201/7/_"


def put(sn: int | None, time: int | None = None, payload: bytes = b"") -> Put:
    return Put(
        payload=payload or str(sn if sn is not None else time).encode(),
        source_info=None if sn is None else SourceInfo(zid=ZID, eid=7, sn=sn),
        timestamp=None if time is None else Timestamp(seconds=time, fraction=0, id=ZID),
    )


def sample(body: Put | Del, key: str = "demo/a") -> Sample:
    return sample_of(KeyExpr.trusted(key), Push(scope=0, suffix=key, body=body), True)


def numbered(*sns: int) -> list[Sample]:
    return [sample(put(sn)) for sn in sns]


def stamped(*times: int) -> list[Sample]:
    return [sample(put(None, time)) for time in times]


def hear(sources: Sources, samples: list[Sample], now: float = 0.0) -> None:
    for one in samples:
        sources.heard(one, now)


def answer(sources: Sources, samples: list[Sample], now: float = 0.0) -> None:
    """Answer the oldest open question."""
    ask = sources.requests.pop(0)
    for one in samples:
        sources.replied(one, now)
    sources.over(ask, now)


def said(sources: Sources) -> list[str]:
    return [one.content().decode() for one in sources.delivered]


def asked(sources: Sources) -> list[str]:
    return [f"{ask.key}?{ask.parameters}" for ask in sources.requests]


def test_samples_in_order_are_delivered_at_once() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5, 6, 7))
    assert said(sources) == ["5", "6", "7"]
    assert not sources.requests
    assert not sources.missed


def test_what_came_twice_is_delivered_once() -> None:
    sources = Sources(KEY)
    hear(sources, numbered(5, 6, 5, 6, 7))
    assert said(sources) == ["5", "6", "7"]


def test_without_recovery_a_gap_is_missed_and_passed_over() -> None:
    sources = Sources(KEY)
    hear(sources, numbered(5, 9))
    assert said(sources) == ["5", "9"]
    assert sources.missed == [Missed(SOURCE, 3)]


def test_a_gap_is_asked_for_and_filled_in_order() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5, 8, 9))
    assert said(sources) == ["5"]
    assert asked(sources) == ["demo/*/@adv/*/201/7/**?_sn=6.."]
    answer(sources, numbered(6, 7, 8, 9))
    assert said(sources) == ["5", "6", "7", "8", "9"]
    assert not sources.missed


def test_what_nobody_remembers_is_missed() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5, 8))
    answer(sources, numbered(7))
    assert said(sources) == ["5", "7", "8"]
    assert sources.missed == [Missed(SOURCE, 1)]


def test_one_question_is_asked_for_a_gap_however_much_comes_behind_it() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5, 8, 9, 12))
    assert len(sources.requests) == 1
    answer(sources, [])
    assert said(sources) == ["5", "8", "9", "12"]
    assert sources.missed == [Missed(SOURCE, 2), Missed(SOURCE, 2)]


def test_a_late_sample_closes_the_gap_before_the_answer() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5, 7, 6))
    assert said(sources) == ["5", "6", "7"]


def test_numbers_go_round() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(0xFFFF_FFFF, 0, 2))
    assert asked(sources) == ["demo/*/@adv/*/201/7/**?_sn=1.."]
    answer(sources, numbered(1))
    assert said(sources) == ["4294967295", "0", "1", "2"]


def test_history_comes_before_what_is_live() -> None:
    sources = Sources(KEY, HistoryRequest(max_samples=3))
    sources.begin()
    assert asked(sources) == ["demo/*/@adv/**?_max=3"]
    hear(sources, numbered(4, 5))
    assert said(sources) == []
    answer(sources, numbered(2, 3, 4))
    assert said(sources) == ["2", "3", "4", "5"]


def test_history_is_asked_for_by_age_too() -> None:
    assert HistoryRequest(2, 1.5).parameters() == ["_max=2", "_time=[now(-1500ms)..]"]
    assert HistoryRequest().parameters() == []


def test_samples_without_number_or_time_pass() -> None:
    sources = Sources(KEY, HistoryRequest())
    sources.begin()
    hear(sources, [sample(put(None, None, b"plain"))])
    assert said(sources) == ["plain"]


def test_stamped_samples_are_merged_with_their_history_by_time() -> None:
    sources = Sources(KEY, HistoryRequest())
    sources.begin()
    hear(sources, stamped(30, 40))
    answer(sources, stamped(10, 20, 30))
    assert said(sources) == ["10", "20", "30", "40"]
    hear(sources, stamped(35, 40, 50))
    assert said(sources)[4:] == ["50"]


def test_answers_about_other_keys_are_not_for_us() -> None:
    sources = Sources(KEY, HistoryRequest())
    sources.begin()
    answer(sources, [sample(put(1), "other/a")])
    assert said(sources) == []


def test_a_heartbeat_tells_of_a_gap_at_the_end() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(5))
    sources.beat(NAME, 5, 0.0)
    assert asked(sources) == []
    sources.beat(NAME, 7, 0.0)
    sources.beat(NAME, 7, 0.0)
    assert asked(sources) == [f"{NAME}?_sn=6..7"]
    answer(sources, numbered(6, 7))
    assert said(sources) == ["5", "6", "7"]


def test_a_heartbeat_of_an_unknown_source_asks_for_all_it_remembers() -> None:
    sources = Sources(KEY, recovery=True)
    sources.beat(NAME, 2, 0.0)
    assert asked(sources) == [f"{NAME}?_sn=..2"]


def test_a_heartbeat_waits_for_the_first_question() -> None:
    sources = Sources(KEY, HistoryRequest(), recovery=True)
    sources.begin()
    sources.beat(NAME, 2, 0.0)
    assert asked(sources) == ["demo/*/@adv/**?"]


def test_heartbeats_of_nobody_are_ignored() -> None:
    sources = Sources(KEY, recovery=True)
    for key in ("demo/a", "demo/a/@adv/pub/xyz/7/_", "demo/a/@adv/pub/201/uhlc/_", "@adv"):
        sources.beat(key, 2, 0.0)
    sources.beat(NAME, SERIALS, 0.0)
    sources.beat(publisher_key("demo/a", ZID, SERIALS), 1, 0.0)
    assert sources.requests == []
    assert len(sources) == 0


def test_a_late_publisher_is_asked_for_its_past() -> None:
    sources = Sources(KEY, HistoryRequest(max_samples=2))
    sources.appeared(NAME, 0.0)
    assert asked(sources) == [f"{NAME}?_max=2"]
    hear(sources, numbered(6))
    answer(sources, numbered(4, 5))
    assert said(sources) == ["4", "5", "6"]


def test_a_publisher_that_comes_back_is_asked_for_what_was_lost() -> None:
    sources = Sources(KEY, HistoryRequest(max_samples=2), recovery=True)
    hear(sources, numbered(4))
    sources.disappeared(NAME, 0.0)
    sources.appeared(NAME, 0.0)
    assert asked(sources) == [f"{NAME}?_sn=5.."]


def test_a_late_publisher_of_times_is_merged_by_time() -> None:
    sources = Sources(KEY, HistoryRequest())
    sources.appeared(publisher_key("demo/a", ZID, None), 0.0)
    hear(sources, stamped(9))
    answer(sources, stamped(7, 8))
    assert said(sources) == ["7", "8", "9"]


def test_sources_are_asked_every_period() -> None:
    sources = Sources(KEY, recovery=True, period=2.0)
    hear(sources, numbered(5), now=1.0)
    assert sources.deadline() == 3.0
    sources.tick(2.9)
    assert sources.requests == []
    sources.tick(3.0)
    assert asked(sources) == ["demo/*/@adv/*/201/7/**?_sn=6.."]
    assert sources.deadline() == 5.0
    sources.tick(5.0)
    assert len(sources.requests) == 1
    answer(sources, numbered(6))
    assert said(sources) == ["5", "6"]


def test_a_silent_source_is_forgotten_and_a_living_one_is_not() -> None:
    sources = Sources(KEY, HistoryRequest(), retention=10.0)
    hear(sources, [*numbered(5), *stamped(3)], now=0.0)
    sources.appeared(NAME, 1.0)
    answer(sources, [], now=1.0)
    sources.tick(50.0)
    assert len(sources) == 1
    sources.disappeared(NAME, 60.0)
    assert sources.deadline() == 70.0
    sources.tick(70.0)
    assert len(sources) == 0
    assert sources.deadline() == float("inf")


def test_too_many_sources_push_out_the_one_silent_for_longest() -> None:
    sources = Sources(KEY, HistoryRequest())
    for eid in range(advanced.SOURCES + 2):
        sources.appeared(publisher_key("demo/a", ZID, eid), float(eid))
    sources.appeared(publisher_key("demo/a", ZID, None), 1e6)
    assert len(sources) == advanced.SOURCES
    assert len(sources.requests) == advanced.CONCURRENT_QUERIES


def test_questions_beyond_the_bound_wait_for_their_turn() -> None:
    sources = Sources(KEY, HistoryRequest())
    for eid in range(advanced.CONCURRENT_QUERIES + 1):
        sources.appeared(publisher_key("demo/a", ZID, eid), 0.0)
    last = publisher_key("demo/a", ZID, advanced.CONCURRENT_QUERIES)
    assert last not in [ask.key for ask in sources.requests]
    answer(sources, [])
    assert last in [ask.key for ask in sources.requests]


def test_what_is_held_has_a_bound() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, numbered(0))
    hear(sources, numbered(*range(2, advanced.HELD + 3)))
    assert len(sources.delivered) == advanced.HELD + 2
    assert sources.missed == [Missed(SOURCE, 1)]


def test_at_the_end_nothing_is_kept_back() -> None:
    sources = Sources(KEY, recovery=True)
    hear(sources, [*numbered(1, 5)])
    sources.end()
    assert said(sources) == ["1", "5"]


@given(
    sent=st.integers(1, 40),
    start=st.sampled_from([0, 3, SERIALS - 5]),
    kept=st.integers(1, 40),
    lost=st.sets(st.integers(0, 39)),
    swaps=st.lists(st.integers(0, 38), max_size=10),
    patience=st.integers(1, 5),
)
def test_everything_is_delivered_once_in_order_or_missed(
    sent: int, start: int, kept: int, lost: set[int], swaps: list[int], patience: int
) -> None:
    """A publisher with a cache, a network that loses and swaps, a subscriber that recovers."""
    cache = Cache(kept)
    sources = Sources(KEY, recovery=True)
    order = [n for n in range(sent) if n == 0 or n not in lost]
    for at in swaps:
        if 0 < at < len(order) - 1:
            order[at], order[at + 1] = order[at + 1], order[at]
    published = 0
    for step, n in enumerate(order):
        while published <= max(n, published - 1):
            cache.add(put((start + published) % SERIALS))
            published += 1
        hear(sources, numbered((start + n) % SERIALS))
        if step % patience == 0:
            while sources.requests:
                parameters = sources.requests[0].parameters
                answer(sources, [sample(one) for one in cache.select(parameters, 0)])
    while published < sent:
        cache.add(put((start + published) % SERIALS))
        published += 1
    sources.beat(NAME, (start + sent - 1) % SERIALS, 0.0)
    while sources.requests:
        parameters = sources.requests[0].parameters
        answer(sources, [sample(one) for one in cache.select(parameters, 0)])
    delivered = [(int(text) - start) % SERIALS for text in said(sources)]
    assert delivered == sorted(set(delivered))
    assert delivered[0] == 0
    assert delivered[-1] == sent - 1
    assert len(delivered) + sum(miss.nb for miss in sources.missed) == sent
    if kept >= sent:
        assert not sources.missed
