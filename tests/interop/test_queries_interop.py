"""Questions of one side are answered by the other, with every option."""

from __future__ import annotations

import hashlib
import time

import pytest

from tests.interop.conftest import Together, Way
from tests.interop.peer import SECONDS, Plain, large
from tests.interop.processes import meanwhile

pytestmark = pytest.mark.interop

# The listener of a way is the one that is asked.


def answered(way: Way, *answers: Plain, **options: object) -> None:
    """Have the listener answer what the speaker asks."""
    way.listener.queryable("q", f"{way.key}/**", list(answers), **options)
    way.speaker.querier("ready", f"{way.key}/**")
    way.speaker.until("ready")


def payloads(replies: list[Plain]) -> list[str]:
    """What the answers say, in a fixed order."""
    return sorted(str(one.get("payload", one.get("error"))) for one in replies)


def test_every_option_of_a_question_is_seen_alike(way: Way) -> None:
    answered(way)
    plain = {
        "key": f"{way.key}/a",
        "parameters": "",
        "payload": None,
        "encoding": None,
        "attachment": None,
        "accepts": "MATCHING_QUERY",
        "source": None,
    }
    cases: list[tuple[str, Plain, Plain]] = [
        ("", {}, {}),
        ("?x=1;y=a|b;z", {}, {"parameters": "x=1;y=a|b;z"}),
        ("", {"payload": "p"}, {"payload": "p", "encoding": "zenoh/bytes"}),
        (
            "",
            {"payload": "p", "encoding": "text/plain;x"},
            {"payload": "p", "encoding": "text/plain;x"},
        ),
        ("", {"encoding": "text/json"}, {"payload": "", "encoding": "text/json"}),
        ("", {"attachment": "beside"}, {"attachment": "beside"}),
        ("", {"accept_replies": "ANY"}, {"accepts": "ANY", "parameters": "_anyke"}),
        ("", {"target": "ALL"}, {}),
        ("", {"consolidation": "NONE"}, {}),
        ("", {"priority": "REAL_TIME", "congestion_control": "BLOCK", "express": True}, {}),
        ("", {"source": 5}, {"source": "asked"}),
    ]
    for suffix, options, seen in cases:
        assert way.speaker.get(f"{way.key}/a{suffix}", **options) == []
        [query] = way.listener.take("q")
        if seen.get("source"):
            zid, _, number = query["source"]
            assert (zid, number) == (way.speaker.zid(), 5)
            seen = {"source": query["source"]}
        assert query == {**plain, **seen}, options


def test_every_option_of_an_answer_is_seen_alike(way: Way) -> None:
    answered(
        way,
        {"key": f"{way.key}/1", "payload": "plain"},
        {"key": f"{way.key}/2", "payload": "x", "encoding": "text/plain;y", "attachment": "z"},
        {"key": f"{way.key}/3", "payload": "x", "timestamp": True},
        {"key": f"{way.key}/4", "attachment": "gone"},
        {"error": "wrong", "encoding": "text/plain"},
    )
    replies = way.speaker.get(f"{way.key}/*", consolidation="NONE")
    one, two, three, four, five = replies
    assert [one["key"], one["payload"], one["kind"]] == [f"{way.key}/1", "plain", "PUT"]
    assert one["encoding"] == "zenoh/bytes"
    assert one["attachment"] is None
    assert [two["payload"], two["encoding"], two["attachment"]] == ["x", "text/plain;y", "z"]
    assert three["timestamp"].endswith(f"/{way.listener.zid()}")
    assert [four["key"], four["kind"], four["attachment"]] == [f"{way.key}/4", "DELETE", "gone"]
    assert five == {"error": "wrong", "encoding": "text/plain"}


def test_an_answer_is_as_urgent_as_its_question(way: Way) -> None:
    answered(way, {"payload": "x"})
    options = {"priority": "INTERACTIVE_HIGH", "congestion_control": "DROP", "express": True}
    [reply] = way.speaker.get(f"{way.key}/a", **options)
    assert {name: reply[name] for name in options} == options


def test_a_question_without_answers_ends(way: Way) -> None:
    answered(way)
    assert way.speaker.get(f"{way.key}/a") == []
    assert way.speaker.get(f"{way.key}elsewhere") == []


def test_a_question_ends_when_it_is_let_go_of_and_not_before(way: Way) -> None:
    way.listener.queryable("q", f"{way.key}/**")
    way.speaker.querier("ready", f"{way.key}/**")
    way.speaker.until("ready")
    asking = meanwhile(way.speaker.get, f"{way.key}/a")
    way.listener.take("q")
    assert not asking.done()
    way.listener.let_go()
    assert asking.result(SECONDS) == []


def test_a_question_that_nobody_finalises_times_out(way: Way) -> None:
    way.listener.queryable("q", f"{way.key}/**")
    way.speaker.querier("ready", f"{way.key}/**")
    way.speaker.until("ready")
    began = time.monotonic()
    replies = way.speaker.get(f"{way.key}/a", timeout=0.2)
    assert time.monotonic() - began >= 0.2
    # A router on the way may say so too.
    assert set(payloads(replies)) == {"Timeout"}
    way.listener.take("q")


def test_what_came_before_the_time_was_up_is_given(way: Way) -> None:
    answered(way, {"key": f"{way.key}/1", "payload": "one"})
    way.listener.queryable("slow", f"{way.key}/slow")
    way.speaker.querier("both", f"{way.key}/slow")
    way.speaker.until("both")
    # What comes in time depends on the machine.
    timeout, given = 0.3, {"Timeout"}
    while given == {"Timeout"} and timeout < SECONDS:
        given = set(payloads(way.speaker.get(f"{way.key}/*", target="ALL", timeout=timeout)))
        timeout *= 3
    assert given == {"Timeout", "one"}


def test_a_thousand_answers_all_arrive(way: Way) -> None:
    answered(way, *({"key": f"{way.key}/{n}", "payload": str(n)} for n in range(1000)))
    replies = way.speaker.get(f"{way.key}/*")
    assert payloads(replies) == sorted(str(n) for n in range(1000))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("NONE", ["1", "2", "3", "4"]),
        ("MONOTONIC", ["1", "2", "3", "4"]),
        ("LATEST", ["2", "4"]),
        ("AUTO", ["2", "4"]),
    ],
)
def test_consolidation_passes_on_the_same_answers(way: Way, mode: str, expected: list[str]) -> None:
    answered(
        way,
        {"key": f"{way.key}/a", "payload": "1", "timestamp": True},
        {"key": f"{way.key}/a", "payload": "2", "timestamp": True},
        {"key": f"{way.key}/b", "payload": "3", "timestamp": True},
        {"key": f"{way.key}/b", "payload": "4", "timestamp": True},
    )
    assert payloads(way.speaker.get(f"{way.key}/*", consolidation=mode)) == expected


def test_a_question_about_time_is_not_consolidated_by_default(way: Way) -> None:
    answered(
        way,
        {"key": f"{way.key}/a", "payload": "1", "timestamp": True},
        {"key": f"{way.key}/a", "payload": "2", "timestamp": True},
    )
    assert payloads(way.speaker.get(f"{way.key}/a?_time=[now(-1h)..now()]")) == ["1", "2"]
    assert payloads(way.speaker.get(f"{way.key}/a")) == ["2"]


def test_an_answer_about_another_key_needs_leave(way: Way) -> None:
    answered(way, {"key": f"{way.key}/other", "payload": "x"})
    [reply] = way.speaker.get(f"{way.key}/a", accept_replies="ANY")
    assert reply["key"] == f"{way.key}/other"
    # Without leave the queryable is refused, and answers nothing.
    assert way.speaker.get(f"{way.key}/a") == []


def test_targets_choose_who_is_asked(way: Way) -> None:
    way.listener.queryable("complete", f"{way.key}/**", [{"payload": "complete"}], complete=True)
    way.listener.queryable("partial", f"{way.key}/a/*", [{"payload": "partial"}])
    way.speaker.querier("ready", f"{way.key}/a/b", target="ALL")
    way.speaker.until("ready")

    def ask(target: str) -> list[str]:
        return payloads(way.speaker.get(f"{way.key}/a/b", target=target, consolidation="NONE"))

    assert ask("ALL") == ["complete", "partial"]
    assert ask("ALL_COMPLETE") == ["complete"]
    # Which one matches best is for the node in between to say; one answers at least.
    assert "complete" in ask("BEST_MATCHING")


def test_only_complete_queryables_match_a_querier_that_wants_them(way: Way) -> None:
    way.speaker.querier("all", f"{way.key}/a", target="ALL")
    way.speaker.querier("complete", f"{way.key}/a", target="ALL_COMPLETE")
    way.listener.queryable("partial", f"{way.key}/**", [])
    way.speaker.until("all")
    assert not way.speaker.matches("complete")
    way.listener.queryable("whole", f"{way.key}/a", [], complete=True)
    way.speaker.until("complete")


def test_a_querier_asks_as_it_was_declared(way: Way) -> None:
    way.listener.queryable(
        "q",
        f"{way.key}/**",
        [{"key": f"{way.key}/x", "payload": str(n), "timestamp": True} for n in range(3)],
    )
    way.speaker.querier(
        "plain", f"{way.key}/*", consolidation="NONE", priority="DATA_HIGH", target="ALL"
    )
    way.speaker.until("plain")
    replies = way.speaker.ask(
        "plain", parameters="a=1", payload="p", encoding="text/plain", attachment="beside"
    )
    assert payloads(replies) == ["0", "1", "2"]
    assert {one["priority"] for one in replies} == {"DATA_HIGH"}
    [query] = way.listener.take("q")
    assert query["parameters"] == "a=1"
    assert [query["payload"], query["encoding"]] == ["p", "text/plain"]
    assert query["attachment"] == "beside"


def test_a_querier_knows_whether_somebody_answers(way: Way) -> None:
    way.speaker.querier("q", f"{way.key}/a")
    way.speaker.watch_matching("changes", "q")
    assert not way.speaker.matches("q")
    way.listener.queryable("one", f"{way.key}/*", [])
    assert way.speaker.take("changes") == [True]
    assert way.speaker.matches("q")
    way.listener.undeclare("one")
    assert way.speaker.take("changes") == [False]
    assert not way.speaker.matches("q")


def test_locality_decides_who_is_asked(way: Way) -> None:
    answered(way, {"payload": "there"})
    way.speaker.queryable("own", f"{way.key}/**", [{"payload": "here"}])
    way.listener.queryable(
        "home", f"{way.key}/**", [{"payload": "x"}], allowed_origin="SESSION_LOCAL"
    )

    def ask(**options: object) -> list[str]:
        return payloads(
            way.speaker.get(f"{way.key}/a", target="ALL", consolidation="NONE", **options)
        )

    assert ask() == ["here", "there"]
    assert ask(allowed_destination="REMOTE") == ["there"]
    assert ask(allowed_destination="SESSION_LOCAL") == ["here"]


def test_large_questions_and_answers_arrive_whole(way: Way) -> None:
    size = 3 << 20
    answered(way, {"payload": size})
    digest = [size, hashlib.md5(large(size)).hexdigest()]
    text = large(size // 2).hex()
    [reply] = way.speaker.get(f"{way.key}/a", payload=text)
    assert reply["payload"] == digest
    [query] = way.listener.take("q")
    assert query["payload"] == [len(text), hashlib.md5(text.encode()).hexdigest()]


def test_many_questions_at_once_get_their_own_answers(way: Way) -> None:
    answered(way, {"payload": "x", "timestamp": True})
    asking = [meanwhile(way.speaker.get, f"{way.key}/{number}") for number in range(50)]
    for number, future in enumerate(asking):
        assert [one["key"] for one in future.result(SECONDS)] == [f"{way.key}/{number}"]


def test_each_may_ask_the_other_at_once(together: Together) -> None:
    ours, theirs, key = together.ours, together.theirs, together.key
    ours.queryable("q", f"{key}/ours", [{"key": f"{key}/ours", "payload": "ours"}])
    theirs.queryable("q", f"{key}/theirs", [{"key": f"{key}/theirs", "payload": "theirs"}])
    for peer, other in ((ours, "theirs"), (theirs, "ours")):
        peer.querier("k", f"{key}/{other}")
        peer.until("k")
    asking = [
        meanwhile(peer.get, f"{key}/*", target="ALL") for peer in (ours, theirs) for _ in range(20)
    ]
    for future in asking:
        assert payloads(future.result(SECONDS)) == ["ours", "theirs"]
