"""What becomes of several answers for one key."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.newest.oracle import Said, answers
from zenlake.node.queries.gets import LATEST, MONOTONIC, NONE, Get, newer
from zenlake.testing.recorders import ReplyRecorder
from zenlake.wire.codec_zenoh import Del, Err, Put, Reply, Timestamp


def at(time: int | None) -> Timestamp | None:
    return None if time is None else Timestamp(seconds=time, fraction=0, id=b"\x01")


def answered(consolidation: int, replies: list[tuple[str, int | None, bytes]]) -> list[bytes]:
    """The payloads that a program is given for answers: (key, time, payload)."""
    answers = ReplyRecorder()
    get = Get("k/**", consolidation, False, answers, 0x0D, 10.0)
    for key, time, payload in replies:
        get.reply(key, Reply(body=Put(payload=payload, timestamp=at(time))), None)
    get.final()
    get.final()
    assert answers.finals == 1
    return [payload for _, payload in answers.values()]


TWICE = [("k/a", 1, b"old"), ("k/a", 2, b"new"), ("k/b", 1, b"other")]
BACKWARDS = [("k/a", 2, b"new"), ("k/a", 1, b"old")]
SAME_TIME = [("k/a", 1, b"first"), ("k/a", 1, b"second")]
NO_TIME = [("k/a", None, b"first"), ("k/a", None, b"second")]
THEN_NO_TIME = [("k/a", 1, b"timed"), ("k/a", None, b"untimed")]


@pytest.mark.parametrize(
    ("replies", "none", "monotonic", "latest"),
    [
        (TWICE, ["old", "new", "other"], ["old", "new", "other"], ["new", "other"]),
        (BACKWARDS, ["new", "old"], ["new"], ["new"]),
        (SAME_TIME, ["first", "second"], ["first", "second"], ["second"]),
        (NO_TIME, ["first", "second"], ["first", "second"], ["second"]),
        (THEN_NO_TIME, ["timed", "untimed"], ["timed"], ["timed"]),
    ],
)
def test_consolidation_by_the_table(
    replies: list[tuple[str, int | None, bytes]],
    none: list[str],
    monotonic: list[str],
    latest: list[str],
) -> None:
    assert answered(NONE, replies) == [text.encode() for text in none]
    assert answered(MONOTONIC, replies) == [text.encode() for text in monotonic]
    assert answered(LATEST, replies) == [text.encode() for text in latest]


def test_latest_keeps_everything_back_until_the_end() -> None:
    answers = ReplyRecorder()
    get = Get("k", LATEST, False, answers, 0x0D, 10.0)
    get.reply("k", Reply(body=Put(payload=b"1")), None)
    assert answers.all == []
    get.finish(True)
    assert answers.values() == [("k", b"1")]
    assert answers.errors() == [b"Timeout"]


class Bounded(ReplyRecorder):
    """Takes two keys, and payloads of three bytes together."""

    size = 0

    def keeps(self, key: str, many: int, size: int) -> bool:
        if many > 2 or self.size + size > 3:
            return False
        self.size += size
        return True


def test_what_a_sink_does_not_keep_is_not_its_reply() -> None:
    answers = Bounded()
    get = Get("k/**", LATEST, False, answers, 0x0D, 10.0)
    for key, time, payload in [
        ("k/a", 1, b"1"), ("k/b", 1, b"22"), ("k/c", 1, b""), ("k/b", 3, b"3"), ("k/b", 2, b"no"),
        ("k/a", 4, b"too large"),
    ]:  # fmt: skip
        get.reply(key, Reply(body=Put(payload=payload, timestamp=at(time))), None)
    assert answers.all == []
    get.final()
    # Of a key whose newest value finds no room none is passed on.
    assert answers.values() == [("k/b", b"3")]


def test_errors_are_never_kept_back() -> None:
    answers = ReplyRecorder()
    get = Get("k", LATEST, False, answers, 0x0D, 10.0)
    get.reply("elsewhere", Err(payload=b"no"), None)
    assert answers.errors() == [b"no"]


def test_a_deletion_may_be_the_latest() -> None:
    answers = ReplyRecorder()
    get = Get("k", LATEST, False, answers, 0x0D, 10.0)
    get.reply("k", Reply(body=Put(payload=b"1", timestamp=at(1))), None)
    get.reply("k", Reply(body=Del(timestamp=at(2))), None)
    get.final()
    assert [type(body) for _, body, _ in answers.all] == [Del]


def test_answers_after_the_end_are_nothing() -> None:
    answers = ReplyRecorder()
    get = Get("k", NONE, False, answers, 0x0D, 10.0)
    get.final()
    get.reply("k", Reply(body=Put(payload=b"1")), None)
    assert answers.all == []


def test_newer_compares_seconds_then_fractions_then_ids() -> None:
    base = Timestamp(seconds=1, fraction=5, id=b"\x02")
    assert newer(Timestamp(seconds=2, fraction=0, id=b"\x01"), base)
    assert newer(Timestamp(seconds=1, fraction=6, id=b"\x01"), base)
    assert newer(Timestamp(seconds=1, fraction=5, id=b"\x03"), base)
    assert not newer(base, base)
    assert newer(base, None)
    assert not newer(None, base)


replies = st.lists(
    st.tuples(
        st.sampled_from(["k/a", "k/b", "k/c"]),
        st.one_of(st.none(), st.integers(0, 5)),
        st.binary(max_size=3),
    ),
    max_size=20,
)


@given(replies)
def test_latest_gives_one_answer_a_key_and_no_newer_one_was_left_out(
    said: list[tuple[str, int | None, bytes]],
) -> None:
    answers = ReplyRecorder()
    get = Get("k/**", LATEST, False, answers, 0x0D, 10.0)
    for key, time, payload in said:
        get.reply(key, Reply(body=Put(payload=payload, timestamp=at(time))), None)
    get.final()
    keys = [key for key, _ in answers.values()]
    assert sorted(keys) == sorted({key for key, _, _ in said})
    for key, body, _ in answers.all:
        assert isinstance(body, Put)
        for other, time, _ in said:
            assert other != key or not newer(at(time), body.timestamp)
    assert len(answers.all) + get.superseded == len(said)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["k/a", "k/b"]), st.integers(1, 6), st.sampled_from([b"\x01", b"\x02"])
        ),
        min_size=1,
        unique_by=lambda said: said[1:],
    ),
    st.randoms(),
)
def test_consolidation_agrees_with_what_storages_call_the_newest(
    moments: list[tuple[str, int, bytes]], random: Random
) -> None:
    said = [Said(key, time, id, f"{time}{id.hex()}") for key, time, id in moments]
    truth = {key: value.encode() for key, (_, _, value) in answers(said).items()}
    random.shuffle(said)
    for consolidation in (LATEST, MONOTONIC):
        given = ReplyRecorder()
        get = Get("k/**", consolidation, False, given, 0x0D, 10.0)
        for one in said:
            assert one.value is not None
            stamp = Timestamp(seconds=one.time, fraction=0, id=one.id)
            body = Put(payload=one.value.encode(), timestamp=stamp)
            get.reply(one.key, Reply(body=body), None)
        get.final()
        get.final()
        assert dict(given.values()) == truth, "the last one given of each key"
